package arena

import "slices"

// outcome is how a search ended.
type outcome uint8

const (
	failed  outcome = iota // there is no placement
	solved                 // there is one
	stopped                // it is not known
)

// search looks for a placement of all buffers below a capacity.
//
// Every step picks a section in which the lowest buffer can be one of few, and tries these one after the other at the
// floor; at last it lets no buffer begin there, if the section has room to waste. No section beside it is lower as far
// as these buffers reach, so none of the others can come to lie below them. What remains is cut where no buffer spans
// two sections, and the parts are solved by themselves. The ideas of floors, of sections that are inferred to be too
// full, and of parts are Moffitt's, as is that a failure elsewhere is no reason to try another buffer here. States that
// had no solution are remembered, whatever way led to them.
type search struct {
	*state
	rank  []int32 // by buffer: the lower, the earlier it is tried
	pick  picker
	steps int64 // that are left
	stop  func() bool

	table  []uint64 // of states without a solution
	done   []step
	places []int32 // a stack of candidates
	items  []int32 // a stack of what is left
	// The sections that the last failure was about.
	failedLow, failedHigh int32
}

// step is a buffer that was placed, or a floor that was raised.
type step struct {
	buffer int32 // -1: a floor
	mark   int32 // how long the trail was before
}

const (
	tableBits = 20
	stopEvery = 1024    // steps between two looks at the time
	nowhere   = 1 << 61 // an offset beyond every capacity
)

func newSearch(p *problem) *search {
	return &search{state: newState(p), table: make([]uint64, 1<<tableBits)}
}

// run searches with at most that many steps. A placement is in offset until reset.
func (x *search) run(capacity, steps int64) outcome {
	x.steps = steps
	if !x.begin(capacity) {
		return failed
	}
	return x.solve(x.p.order)
}

// reset takes back all that was done.
func (x *search) reset() {
	x.rewind(0)
	x.back(0)
}

func (x *search) rewind(to int) {
	for len(x.done) > to {
		last := x.done[len(x.done)-1]
		x.back(int(last.mark))
		if last.buffer >= 0 {
			x.take(last.buffer)
		}
		x.done = x.done[:len(x.done)-1]
	}
}

// part is a range of a list of buffers that no other shares a section with.
type part struct{ from, to int32 }

// solve places those of the items that do not lie yet. They are in the order of their first sections.
func (x *search) solve(items []int32) outcome {
	base, depth := len(x.items), len(x.done)
	defer func() { x.items = x.items[:base] }()
	for _, b := range items {
		if !x.placed[b] {
			x.items = append(x.items, b)
		}
	}
	rest := x.items[base:len(x.items):len(x.items)]
	var few [8]part
	parts := x.divide(few[:0], rest)
	for _, c := range parts {
		if r := x.branch(rest[c.from:c.to]); r != solved {
			x.rewind(depth)
			return r
		}
	}
	return solved
}

// divide finds the parts, small ones first: if they fail that is known soon.
func (x *search) divide(parts []part, items []int32) []part {
	for i := 0; i < len(items); {
		end, j := x.p.last(items[i]), i+1
		for ; j < len(items) && x.p.first(items[j]) <= end; j++ {
			end = max(end, x.p.last(items[j]))
		}
		parts = append(parts, part{int32(i), int32(j)})
		i = j
	}
	if len(parts) > 1 {
		slices.SortStableFunc(parts, func(a, b part) int { return int(a.to - a.from - b.to + b.from) })
	}
	return parts
}

// branch places one part.
func (x *search) branch(items []int32) outcome {
	low, high := x.p.first(items[0]), int32(0)
	for _, b := range items {
		high = max(high, x.p.last(b))
	}
	x.steps--
	if x.steps < 0 || x.steps%stopEvery == 0 && x.stop() {
		return stopped
	}
	key := x.key(items)
	slot := &x.table[key>>(64-tableBits)]
	if *slot == key {
		x.failedLow, x.failedHigh = low, high
		return failed
	}
	r, elsewhere := x.tryAll(x.pick.choose(x, low, high), items)
	if r == failed {
		*slot = key
		if !elsewhere {
			x.failedLow, x.failedHigh = low, high
		}
	}
	return r
}

// tryAll tries all ways to go on at the floor of a section. elsewhere says that a failure has nothing to do with them.
func (x *search) tryAll(t int32, items []int32) (r outcome, elsewhere bool) {
	base := len(x.places)
	defer func() { x.places = x.places[:base] }()
	above := int64(nowhere)
	for _, e := range x.live[t][:x.left[t]] {
		if from := x.offset[e.buffer] + e.lo; from == x.floor[t] {
			x.places = append(x.places, e.buffer)
		} else {
			above = min(above, from)
		}
	}
	places := x.places[base:]
	slices.SortFunc(places, func(a, b int32) int { return int(x.rank[a] - x.rank[b]) })
	next := x.next(t, places, above)
	for i, b := range places {
		if x.hasTwin(places[:i], b) {
			continue
		}
		if r, elsewhere = x.try(b, t, 0, items); r != failed || elsewhere {
			return r, elsewhere
		}
	}
	if next+x.rest[t] > x.capacity {
		return failed, false
	}
	return x.try(-1, t, next, items)
}

// try places a buffer, or raises the floor of a section when it is -1, and goes on with what is left.
func (x *search) try(b, t int32, floor int64, items []int32) (r outcome, elsewhere bool) {
	depth := len(x.done)
	x.done = append(x.done, step{b, int32(len(x.trail))})
	x.low, x.high = int32(len(x.floor)), -1
	possible := b >= 0 && x.put(b) || b < 0 && x.lift(t, floor)
	low, high := x.low, x.high
	if possible {
		if r = x.solve(items); r == solved {
			return r, false
		}
		elsewhere = r == failed && (x.failedHigh < low || x.failedLow > high)
	}
	x.rewind(depth)
	return r, elsewhere
}

// hasTwin reports whether a buffer is as good as one that was tried.
func (x *search) hasTwin(tried []int32, b int32) bool {
	p := x.p
	return p.plain && slices.ContainsFunc(tried, func(c int32) bool {
		return p.raw[c] == p.raw[b] && p.align[c] == p.align[b] && p.first(c) == p.first(b) && p.last(c) == p.last(b)
	})
}

// next is where the lowest buffer of a section begins at least when none of those that could begins at the floor. It
// then rests on another that begins no lower, and that is not in the section.
func (x *search) next(t int32, places []int32, above int64) int64 {
	floor := x.floor[t]
	if floor+x.rest[t] == x.capacity {
		return nowhere
	}
	for _, b := range places {
		for _, c := range x.p.cells[b] {
			for _, e := range x.live[c.section][:x.left[c.section]] {
				if floor+e.size < above && (x.p.first(e.buffer) > t || x.p.last(e.buffer) < t) {
					above = floor + e.size
				}
			}
		}
	}
	return above
}

// key names a state of a part: what is left of it, and how low each may begin. All floors follow from that.
func (x *search) key(items []int32) uint64 {
	key := mix(uint64(x.exact))
	for _, b := range items {
		key += mix(uint64(x.offset[b])*0x9e3779b97f4a7c15 + uint64(b) + 1)
	}
	return key
}

// mix spreads a number over all bits.
func mix(h uint64) uint64 {
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return h ^ h>>32
}
