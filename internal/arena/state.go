package arena

// state is a partial placement: some buffers lie, and the others will lie above the floors of their sections. Every
// step can be taken back.
type state struct {
	p        *problem
	exact    int64 // the capacity
	capacity int64 // the same for rounded sizes

	// By section: no buffer that is left will begin below floor; support of them could begin there; rest is what they
	// need in all; the first left of live are they.
	floor   []int64
	support []int32
	rest    []int64
	left    []int32
	live    [][]entry

	// By buffer: the lowest offset that is left to it, where it is in live, and whether it lies.
	offset []int64
	at     [][]int32
	placed []bool

	trail  []undo
	queue  []int32 // sections to look at again
	queued []bool
	// The sections that were changed since low and high were set.
	low, high int32
}

type undo struct {
	index   int32 // of a section; -1 and below: of a buffer
	support int32
	value   int64
}

func newState(p *problem) *state {
	n := len(p.sections)
	s := &state{
		p:     p,
		floor: make([]int64, n), support: make([]int32, n), rest: make([]int64, n), left: make([]int32, n), live: make([][]entry, n),
		offset: make([]int64, len(p.cells)), at: make([][]int32, len(p.cells)), placed: make([]bool, len(p.cells)), queued: make([]bool, n),
	}
	for b, cells := range p.cells {
		s.at[b] = make([]int32, len(cells))
	}
	for t, entries := range p.sections {
		s.live[t] = append([]entry(nil), entries...)
		s.left[t] = int32(len(entries))
		for i, e := range entries {
			s.at[e.buffer][e.cell] = int32(i)
			s.rest[t] += e.size
		}
	}
	return s
}

// begin finds the first floors. It reports whether all may find room in the capacity.
func (s *state) begin(capacity int64) bool {
	s.exact, s.capacity = capacity, roundUp(capacity, s.p.common)/s.p.unit*s.p.unit
	for t := range s.floor {
		s.enqueue(int32(t))
	}
	return s.settle()
}

func (s *state) enqueue(t int32) {
	if !s.queued[t] {
		s.queued[t] = true
		s.queue = append(s.queue, t)
	}
}

// put places a buffer at its lowest offset. It reports whether the others may still find room.
func (s *state) put(b int32) bool {
	s.placed[b] = true
	offset := s.offset[b]
	for i, c := range s.p.cells[b] {
		t := c.section
		s.remember(t)
		s.floor[t] = offset + c.hi
		s.rest[t] -= c.hi - c.lo
		s.drop(t, s.at[b][i])
		s.enqueue(t)
	}
	return s.settle()
}

// drop moves an entry behind those that are left.
func (s *state) drop(t, i int32) {
	live := s.live[t]
	last := s.left[t] - 1
	live[i], live[last] = live[last], live[i]
	s.at[live[i].buffer][live[i].cell] = i
	s.at[live[last].buffer][live[last].cell] = last
	s.left[t] = last
}

// lift raises a floor: nothing more is to begin below. It reports whether all may still find room.
func (s *state) lift(t int32, floor int64) bool {
	s.remember(t)
	s.floor[t] = floor
	s.enqueue(t)
	return s.settle()
}

// settle raises floors and offsets until no section can be entered below its floor and every floor can be reached.
func (s *state) settle() bool {
	ok := true
	for len(s.queue) > 0 {
		t := s.queue[len(s.queue)-1]
		s.queue = s.queue[:len(s.queue)-1]
		s.queued[t] = false
		ok = ok && s.look(t)
	}
	return ok
}

// look raises what begins below the floor of a section, and then the floor to the lowest that is left.
func (s *state) look(t int32) bool {
	if s.left[t] == 0 {
		return s.floor[t] <= s.capacity
	}
	floor := s.floor[t]
	lowest, highest, support := int64(1<<62), int64(0), int32(0)
	for _, e := range s.live[t][:s.left[t]] {
		from := s.offset[e.buffer] + e.lo
		if from < floor {
			s.raise(e.buffer, roundUp(floor-e.lo, s.p.align[e.buffer]), t)
			if s.offset[e.buffer]+s.p.raw[e.buffer] > s.exact {
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
		s.remember(t)
		s.floor[t], s.support[t] = lowest, support
	}
	return lowest+s.rest[t] <= s.capacity && s.stacks(t, highest)
}

// stacks reports whether what is left in a section fits when each of its buffers begins no lower than it can: stacked
// in the order of how low they can begin, they leave no more room unused than there is. highest is where the last can
// begin. They are unsorted: the top of those that can begin below it rises as long as it reaches others.
func (s *state) stacks(t int32, highest int64) bool {
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

// raise gives a buffer a higher lowest offset, and has the sections looked at that it was the last support of.
func (s *state) raise(b int32, offset int64, from int32) {
	old := s.offset[b]
	s.trail = append(s.trail, undo{-1 - b, 0, old})
	s.offset[b] = offset
	for _, c := range s.p.cells[b] {
		t := c.section
		if t == from || old+c.lo != s.floor[t] {
			continue
		}
		s.remember(t)
		if s.support[t]--; s.support[t] <= 0 {
			s.enqueue(t)
		}
	}
}

func (s *state) remember(t int32) {
	s.low, s.high = min(s.low, t), max(s.high, t)
	s.trail = append(s.trail, undo{t, s.support[t], s.floor[t]})
}

// back takes back what happened since the trail was as long as mark.
func (s *state) back(mark int) {
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

// take takes a buffer out again, the last that was put, after back.
func (s *state) take(b int32) {
	s.placed[b] = false
	for _, c := range s.p.cells[b] {
		s.left[c.section]++
		s.rest[c.section] += c.hi - c.lo
	}
}

// prepare sets the order of the next run.
func (x *search) prepare(sorted []int32, pick picker) {
	x.pick = pick
	if x.rank == nil {
		x.rank = make([]int32, len(x.p.size))
	}
	for i, b := range sorted {
		x.rank[b] = int32(i)
	}
}
