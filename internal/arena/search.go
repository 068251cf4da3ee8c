package arena

import "slices"

// outcome is how a search ended.
type outcome uint8

const (
	failed  outcome = iota // there is no placement
	solved                 // a placement was found
	stopped                // it is unknown whether there is one
)

// search looks for a placement of all buffers below a capacity.
//
// Every step picks a section in which few buffers can be the lowest, and tries these one after the other at the floor;
// finally it lets no buffer begin there, if the section has room to waste. No neighbouring section is lower as far as
// these buffers reach, so no other buffer can be placed below them. The remaining buffers are split where no buffer
// spans two sections, and the parts are solved separately. Floors, the inference that a section is too full, the parts,
// and the rule that a failure elsewhere is no reason to try another buffer here are Moffitt's ideas. States without a
// solution are remembered, in whatever order they were reached.
type search struct {
	*state
	rank  []int32 // by buffer: lower ranks are tried earlier
	pick  picker
	steps int64 // steps that are left
	stop  func() bool

	table      []uint64 // hashes of states without a solution
	taken      []step
	candidates []int32 // a stack of buffers to try
	items      []int32 // a stack of unplaced buffers
	// The sections that caused the last failure.
	failedLow, failedHigh int32
}

// step is a placed buffer, or a raised floor.
type step struct {
	buffer int32 // -1: a floor
	mark   int32 // length of the trail before the step
}

const (
	tableBits = 20      // the table has 2^tableBits entries
	stopEvery = 1024    // steps between two checks of the time
	nowhere   = 1 << 61 // an offset beyond every capacity
)

func newSearch(p *problem) *search {
	return &search{state: newState(p), table: make([]uint64, 1<<tableBits)}
}

// searchWithin searches with at most that many steps. The placement is in offset until undoAll.
func (x *search) searchWithin(capacity, steps int64) outcome {
	x.steps = steps
	if !x.computeFirstFloors(capacity) {
		return failed
	}
	return x.placeItems(x.p.order)
}

// undoAll undoes all steps.
func (x *search) undoAll() {
	x.undoStepsTo(0)
	x.undoTo(0)
}

func (x *search) undoStepsTo(to int) {
	for len(x.taken) > to {
		last := x.taken[len(x.taken)-1]
		x.undoTo(int(last.mark))
		if last.buffer >= 0 {
			x.removeLastPlaced(last.buffer)
		}
		x.taken = x.taken[:len(x.taken)-1]
	}
}

// itemRange is a range of a list of buffers that shares no section with the other buffers.
type itemRange struct{ from, to int32 }

// placeItems places the items that are not yet placed. They are in the order of their first sections.
func (x *search) placeItems(items []int32) outcome {
	base, depth := len(x.items), len(x.taken)
	defer func() { x.items = x.items[:base] }()
	for _, b := range items {
		if !x.placed[b] {
			x.items = append(x.items, b)
		}
	}
	rest := x.items[base:len(x.items):len(x.items)]
	var few [8]itemRange
	parts := x.splitIntoParts(few[:0], rest)
	for _, c := range parts {
		if r := x.placePart(rest[c.from:c.to]); r != solved {
			x.undoStepsTo(depth)
			return r
		}
	}
	return solved
}

// splitIntoParts splits the items into parts, the smallest first, because a failure of a small part shows soon.
func (x *search) splitIntoParts(parts []itemRange, items []int32) []itemRange {
	for i := 0; i < len(items); {
		end, j := x.p.lastSection(items[i]), i+1
		for ; j < len(items) && x.p.firstSection(items[j]) <= end; j++ {
			end = max(end, x.p.lastSection(items[j]))
		}
		parts = append(parts, itemRange{int32(i), int32(j)})
		i = j
	}
	if len(parts) > 1 {
		slices.SortStableFunc(parts, func(a, b itemRange) int { return int(a.to - a.from - b.to + b.from) })
	}
	return parts
}

// placePart places one part.
func (x *search) placePart(items []int32) outcome {
	low, high := x.p.firstSection(items[0]), int32(0)
	for _, b := range items {
		high = max(high, x.p.lastSection(b))
	}
	x.steps--
	if x.steps < 0 || x.steps%stopEvery == 0 && x.stop() {
		return stopped
	}
	key := x.hashOfState(items)
	slot := &x.table[key>>(64-tableBits)]
	if *slot == key {
		x.failedLow, x.failedHigh = low, high
		return failed
	}
	r, elsewhere := x.tryChoices(x.pick.chooseSection(x, low, high), items)
	if r == failed {
		*slot = key
		if !elsewhere {
			x.failedLow, x.failedHigh = low, high
		}
	}
	return r
}

// tryChoices tries all choices at the floor of a section. elsewhere says that a failure was not caused by these
// choices.
func (x *search) tryChoices(t int32, items []int32) (r outcome, elsewhere bool) {
	base := len(x.candidates)
	defer func() { x.candidates = x.candidates[:base] }()
	above := int64(nowhere)
	for _, e := range x.live[t][:x.left[t]] {
		if from := x.offset[e.buffer] + e.lo; from == x.floor[t] {
			x.candidates = append(x.candidates, e.buffer)
		} else {
			above = min(above, from)
		}
	}
	places := x.candidates[base:]
	slices.SortFunc(places, func(a, b int32) int { return int(x.rank[a] - x.rank[b]) })
	next := x.nextFloor(t, places, above)
	for i, b := range places {
		if x.hasTriedTwin(places[:i], b) {
			continue
		}
		if r, elsewhere = x.tryChoice(b, t, 0, items); r != failed || elsewhere {
			return r, elsewhere
		}
	}
	if next+x.rest[t] > x.capacity {
		return failed, false
	}
	return x.tryChoice(-1, t, next, items)
}

// tryChoice places a buffer, or raises the floor of a section if b is -1, and continues with the remaining items.
func (x *search) tryChoice(b, t int32, floor int64, items []int32) (r outcome, elsewhere bool) {
	depth := len(x.taken)
	x.taken = append(x.taken, step{b, int32(len(x.trail))})
	x.low, x.high = int32(len(x.floor)), -1
	possible := b >= 0 && x.placeLowest(b) || b < 0 && x.raiseFloor(t, floor)
	low, high := x.low, x.high
	if possible {
		if r = x.placeItems(items); r == solved {
			return r, false
		}
		elsewhere = r == failed && (x.failedHigh < low || x.failedLow > high)
	}
	x.undoStepsTo(depth)
	return r, elsewhere
}

// hasTriedTwin reports whether an equal buffer was tried.
func (x *search) hasTriedTwin(tried []int32, b int32) bool {
	p := x.p
	return p.plain && slices.ContainsFunc(tried, func(c int32) bool {
		return p.exactSize[c] == p.exactSize[b] && p.align[c] == p.align[b] && p.firstSection(c) == p.firstSection(b) && p.lastSection(c) == p.lastSection(b)
	})
}

// nextFloor returns the lowest offset at which a buffer of the section can begin if none of the candidates begins at
// the floor. That buffer then lies on another buffer that does not begin below the floor either, and that does not live
// in this section.
func (x *search) nextFloor(t int32, places []int32, above int64) int64 {
	floor := x.floor[t]
	if floor+x.rest[t] == x.capacity {
		return nowhere
	}
	for _, b := range places {
		for _, c := range x.p.cells[b] {
			for _, e := range x.live[c.section][:x.left[c.section]] {
				if floor+e.size < above && (x.p.firstSection(e.buffer) > t || x.p.lastSection(e.buffer) < t) {
					above = floor + e.size
				}
			}
		}
	}
	return above
}

// hashOfState identifies the state of a part: its unplaced buffers, and the lowest offset of each. All floors follow from
// these.
func (x *search) hashOfState(items []int32) uint64 {
	key := spreadBits(uint64(x.exact))
	for _, b := range items {
		key += spreadBits(uint64(x.offset[b])*0x9e3779b97f4a7c15 + uint64(b) + 1)
	}
	return key
}

// spreadBits spreads a number over all bits.
func spreadBits(h uint64) uint64 {
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return h ^ h>>32
}
