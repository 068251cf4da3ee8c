package spill

import (
	"container/heap"
	"math"
)

// Order says which object is spilled first.
type Order bool

// Orders.
const (
	Oldest   Order = false // the object whose last use is longest ago
	Farthest Order = true  // the object whose next use is farthest, which requires knowing the future
)

// Moves are the bytes that --spill would move.
type Moves struct {
	Out uint64 `json:"out"` // to the host
	In  uint64 `json:"in"`  // back
}

// objectState is the state of an object.
type objectState struct {
	resident, contents, clean, evicted bool
	pins                               int
	command                            int // the last command that used it
	key                                uint64
}

// simulatedDevice plays a trace with little memory.
type simulatedDevice struct {
	trace    *trace
	next     []int32 // by step: the next use of the same object
	capacity uint64
	used     uint64
	order    Order
	states   []objectState
	command  int
	leaving  queue
	setAside []entry // entries of the queue whose objects are in use now
	moves    Moves
}

// entry says when a resident object should be spilled. It is stale if the object has another key by then.
type entry struct {
	object int32
	key    uint64 // the smallest leaves first
}

type queue []entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].key < q[j].key }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(entry)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// nextUses returns, for each use, the next use of the same object.
func (t *trace) nextUses() []int32 {
	next, seen := make([]int32, len(t.steps)), make([]int32, len(t.objects))
	for i := range seen {
		seen[i] = math.MaxInt32
	}
	for i := len(t.steps) - 1; i >= 0; i-- {
		if s := &t.steps[i]; s.kind == stepUse {
			next[i] = seen[s.object]
			seen[s.object] = int32(i)
		}
	}
	return next
}

// simulateSpilling plays a trace on a device with that capacity. It returns false if a command found no room.
func (t *trace) simulateSpilling(capacity uint64, order Order, next []int32) (Moves, bool) {
	d := &simulatedDevice{trace: t, capacity: capacity, order: order, next: next, states: make([]objectState, len(t.objects)), command: 1}
	for i := range t.objects {
		d.states[i].contents = t.objects[i].copied
		d.states[i].clean = t.objects[i].copied
	}
	for i := range t.steps {
		if !d.playStep(i, &t.steps[i]) {
			return d.moves, false
		}
	}
	return d.moves, true
}

func (d *simulatedDevice) playStep(i int, s *step) bool {
	o, state := &d.trace.objects[s.object], &d.states[s.object]
	switch s.kind {
	case stepUse:
		state.command = d.command
		if !o.fixed && !state.resident && !d.loadObject(s.object) {
			return false
		}
		if s.writes {
			state.contents, state.clean = true, false
		}
		d.noteWhenToSpill(i, s.object)
	case stepRun:
		d.command++
		for _, e := range d.setAside {
			heap.Push(&d.leaving, e)
		}
		d.setAside = d.setAside[:0]
	case stepCreate:
		return d.reserveBySpilling(o.size)
	case stepFree:
		if o.fixed || state.resident {
			d.used -= o.size
		}
		state.resident = false
	case stepMap:
		state.pins++
	case stepUnmap:
		state.pins = max(0, state.pins-1)
	}
	return true
}

// noteWhenToSpill notes when an object should be spilled.
func (d *simulatedDevice) noteWhenToSpill(i int, object int32) {
	state := &d.states[object]
	if state.key = uint64(i); d.order == Farthest {
		state.key = math.MaxUint32 - uint64(d.next[i])
	}
	if state.resident {
		heap.Push(&d.leaving, entry{object, state.key})
	}
}

// loadObject gives an object device memory.
func (d *simulatedDevice) loadObject(object int32) bool {
	o, state := &d.trace.objects[object], &d.states[object]
	if !d.reserveBySpilling(o.size) {
		return false
	}
	state.resident = true
	if state.evicted && state.contents {
		d.moves.In += o.size
	}
	return true
}

// reserveBySpilling reserves bytes, and spills other objects for them.
func (d *simulatedDevice) reserveBySpilling(bytes uint64) bool {
	for bytes > d.capacity || d.used > d.capacity-bytes {
		if bytes > d.capacity || len(d.leaving) == 0 {
			return false
		}
		e := heap.Pop(&d.leaving).(entry)
		state := &d.states[e.object]
		if !state.resident || state.key != e.key {
			continue
		}
		if state.command == d.command || state.pins > 0 {
			d.setAside = append(d.setAside, e)
			continue
		}
		d.spillObject(e.object)
	}
	d.used += bytes
	return true
}

func (d *simulatedDevice) spillObject(object int32) {
	o, state := &d.trace.objects[object], &d.states[object]
	if state.contents && !state.clean {
		d.moves.Out += o.size
	}
	state.resident, state.clean, state.evicted = false, true, true
	d.used -= o.size
}

// leastMemoryNeeded returns the most bytes that one command needs, including memory that cannot be spilled, and the largest
// object of that command.
func (t *trace) leastMemoryNeeded() (bytes uint64, largest int32) {
	states := make([]objectState, len(t.objects))
	var fixed, needs uint64
	command, largestUsed := 1, int32(0)
	consider := func(total uint64) {
		if total > bytes {
			bytes, largest = total, largestUsed
		}
	}
	for _, s := range t.steps {
		o, state := &t.objects[s.object], &states[s.object]
		switch s.kind {
		case stepUse:
			if state.command == command || o.fixed || state.pins > 0 {
				continue
			}
			if state.command = command; needs == 0 || o.size > t.objects[largestUsed].size {
				largestUsed = s.object
			}
			needs += o.size
		case stepRun:
			consider(fixed + needs)
			command, needs = command+1, 0
		case stepCreate:
			fixed += o.size
			if needs == 0 {
				largestUsed = s.object
			}
			consider(fixed)
		case stepFree:
			if o.fixed || state.pins > 0 {
				fixed -= o.size
			}
			state.pins = 0
		case stepMap:
			if state.pins++; state.pins == 1 && !o.fixed {
				fixed += o.size
			}
		case stepUnmap:
			if state.pins > 0 {
				if state.pins--; state.pins == 0 && !o.fixed {
					fixed -= o.size
				}
			}
		}
	}
	return bytes, largest
}
