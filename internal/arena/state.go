package arena

// state is a partial placement: some buffers are placed, and the others will be placed above the floors of their
// sections. Every step can be undone.
type state struct {
	p        *problem
	exact    int64 // the capacity
	capacity int64 // the capacity for rounded sizes

	// By section: no unplaced buffer will begin below floor; support is how many could begin there; rest is the sum of
	// their bytes; they are the first left entries of live.
	floor   []int64
	support []int32
	rest    []int64
	left    []int32
	live    [][]entry

	// By buffer: the lowest offset that is still possible, the index of each cell in live, and whether it is placed.
	offset    []int64
	liveIndex [][]int32
	placed    []bool

	trail  []undo
	queue  []int32 // sections to update
	queued []bool
	// The range of sections that were changed since low and high were reset.
	low, high int32
}

type undo struct {
	index   int32 // a section; below 0: -1 - buffer
	support int32
	value   int64
}

func newState(p *problem) *state {
	n := len(p.sections)
	s := &state{
		p:     p,
		floor: make([]int64, n), support: make([]int32, n), rest: make([]int64, n), left: make([]int32, n), live: make([][]entry, n),
		offset: make([]int64, len(p.cells)), liveIndex: make([][]int32, len(p.cells)), placed: make([]bool, len(p.cells)), queued: make([]bool, n),
	}
	for b, cells := range p.cells {
		s.liveIndex[b] = make([]int32, len(cells))
	}
	for t, entries := range p.sections {
		s.live[t] = append([]entry(nil), entries...)
		s.left[t] = int32(len(entries))
		for i, e := range entries {
			s.liveIndex[e.buffer][e.cell] = int32(i)
			s.rest[t] += e.size
		}
	}
	return s
}

// computeFirstFloors computes the first floors. It reports whether all buffers may still fit into the capacity.
func (s *state) computeFirstFloors(capacity int64) bool {
	s.exact, s.capacity = capacity, roundUp(capacity, s.p.common)/s.p.unit*s.p.unit
	for t := range s.floor {
		s.queueSection(int32(t))
	}
	return s.raiseFloors()
}

func (s *state) queueSection(t int32) {
	if !s.queued[t] {
		s.queued[t] = true
		s.queue = append(s.queue, t)
	}
}

// placeLowest places a buffer at its lowest offset. It reports whether the others may still fit.
func (s *state) placeLowest(b int32) bool {
	s.placed[b] = true
	offset := s.offset[b]
	for i, c := range s.p.cells[b] {
		t := c.section
		s.saveSectionForUndo(t)
		s.floor[t] = offset + c.hi
		s.rest[t] -= c.hi - c.lo
		s.moveBehindUnplaced(t, s.liveIndex[b][i])
		s.queueSection(t)
	}
	return s.raiseFloors()
}

// moveBehindUnplaced moves an entry after the unplaced ones.
func (s *state) moveBehindUnplaced(t, i int32) {
	live := s.live[t]
	last := s.left[t] - 1
	live[i], live[last] = live[last], live[i]
	s.liveIndex[live[i].buffer][live[i].cell] = i
	s.liveIndex[live[last].buffer][live[last].cell] = last
	s.left[t] = last
}

// raiseFloor raises a floor: no buffer will begin below it. It reports whether all buffers may still fit.
func (s *state) raiseFloor(t int32, floor int64) bool {
	s.saveSectionForUndo(t)
	s.floor[t] = floor
	s.queueSection(t)
	return s.raiseFloors()
}

// raiseFloors raises floors and offsets until no buffer can begin below a floor and some buffer can begin at each floor.
func (s *state) raiseFloors() bool {
	ok := true
	for len(s.queue) > 0 {
		t := s.queue[len(s.queue)-1]
		s.queue = s.queue[:len(s.queue)-1]
		s.queued[t] = false
		ok = ok && s.updateSection(t)
	}
	return ok
}

// updateSection raises the offsets of buffers below the floor of a section, and then the floor to the lowest remaining
// offset.
func (s *state) updateSection(t int32) bool {
	if s.left[t] == 0 {
		return s.floor[t] <= s.capacity
	}
	floor := s.floor[t]
	lowest, highest, support := int64(1<<62), int64(0), int32(0)
	for _, e := range s.live[t][:s.left[t]] {
		from := s.offset[e.buffer] + e.lo
		if from < floor {
			s.raiseOffset(e.buffer, roundUp(floor-e.lo, s.p.align[e.buffer]), t)
			if s.offset[e.buffer]+s.p.exactSize[e.buffer] > s.exact {
				return false
			}
			from = s.offset[e.buffer] + e.lo
		}
		highest = max(highest, from)
		if from < lowest {
			lowest, support = from, 0
		}
		if from == lowest {
			support++
		}
	}
	if lowest != floor || support != s.support[t] {
		s.saveSectionForUndo(t)
		s.floor[t], s.support[t] = lowest, support
	}
	return lowest+s.rest[t] <= s.capacity && s.fitsAboveFloor(t, highest)
}

// fitsAboveFloor reports whether the unplaced buffers of a section fit if each begins no lower than it can: stacked in the
// order of their lowest offsets, they must not waste more room than there is. highest is the largest of these offsets.
// The buffers are unsorted, so the top of those that can begin below it is raised until it reaches no others.
func (s *state) fitsAboveFloor(t int32, highest int64) bool {
	spare := s.capacity - s.rest[t]
	for top := spare; top < highest; {
		reached := spare
		for _, e := range s.live[t][:s.left[t]] {
			if s.offset[e.buffer]+e.lo <= top {
				reached += e.size
			}
		}
		if reached == top {
			return false
		}
		top = reached
	}
	return true
}

// raiseOffset raises a buffer's lowest offset, and queues the sections whose last support the buffer was.
func (s *state) raiseOffset(b int32, offset int64, from int32) {
	old := s.offset[b]
	s.trail = append(s.trail, undo{-1 - b, 0, old})
	s.offset[b] = offset
	for _, c := range s.p.cells[b] {
		t := c.section
		if t == from || old+c.lo != s.floor[t] {
			continue
		}
		s.saveSectionForUndo(t)
		if s.support[t]--; s.support[t] <= 0 {
			s.queueSection(t)
		}
	}
}

// saveSectionForUndo saves a section's values for undoTo.
func (s *state) saveSectionForUndo(t int32) {
	s.low, s.high = min(s.low, t), max(s.high, t)
	s.trail = append(s.trail, undo{t, s.support[t], s.floor[t]})
}

// undoTo undoes all changes since the trail had that length.
func (s *state) undoTo(mark int) {
	for i := len(s.trail) - 1; i >= mark; i-- {
		u := &s.trail[i]
		if u.index < 0 {
			s.offset[-1-u.index] = u.value
		} else {
			s.floor[u.index], s.support[u.index] = u.value, u.support
		}
	}
	s.trail = s.trail[:mark]
}

// removeLastPlaced takes out the buffer that was placed last, after undoTo.
func (s *state) removeLastPlaced(b int32) {
	s.placed[b] = false
	for _, c := range s.p.cells[b] {
		s.left[c.section]++
		s.rest[c.section] += c.hi - c.lo
	}
}

// setOrderOfRun sets the order of the next run.
func (x *search) setOrderOfRun(sorted []int32, pick picker) {
	x.pick = pick
	if x.rank == nil {
		x.rank = make([]int32, len(x.p.size))
	}
	for i, b := range sorted {
		x.rank[b] = int32(i)
	}
}
