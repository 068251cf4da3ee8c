package spill

import (
	"container/heap"
	"math"
)

// Order says which object leaves first.
type Order bool

// Orders.
const (
	Oldest   Order = false // the one whose last use is longest ago
	Farthest Order = true  // the one whose next use is farthest, which needs to know the future
)

// Moves are bytes that --spill would move.
type Moves struct {
	Out uint64 `json:"out"` // to the host
	In  uint64 `json:"in"`  // back
}

// state is where an object is.
type state struct {
	resident, contents, clean, taken bool
	pins                             int
	command                          int // the last that used it
	key                              uint64
}

// device runs a trace with little memory.
type device struct {
	trace    *trace
	next     []int32 // for each use, the step of the next of the same object
	capacity uint64
	used     uint64
	order    Order
	states   []state
	command  int
	leaving  queue
	aside    []entry // of the queue, in use now
	moves    Moves
}

// entry says when an object that is resident should leave: it is stale if the object's key is another now.
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

// nexts finds for each use the next of the same object.
func (t *trace) nexts() []int32 {
	next, seen := make([]int32, len(t.steps)), make([]int32, len(t.objects))
	for i := range seen {
		seen[i] = math.MaxInt32
	}
	for i := len(t.steps) - 1; i >= 0; i-- {
		if s := &t.steps[i]; s.kind == use {
			next[i] = seen[s.object]
			seen[s.object] = int32(i)
		}
	}
	return next
}

// simulate runs a trace in a device with that capacity; false: some command found no room.
func (t *trace) simulate(capacity uint64, order Order, next []int32) (Moves, bool) {
	d := &device{trace: t, capacity: capacity, order: order, next: next, states: make([]state, len(t.objects)), command: 1}
	for i := range t.objects {
		d.states[i].contents = t.objects[i].copied
		d.states[i].clean = t.objects[i].copied
	}
	for i := range t.steps {
		if !d.step(i, &t.steps[i]) {
			return d.moves, false
		}
	}
	return d.moves, true
}

func (d *device) step(i int, s *step) bool {
	o, now := &d.trace.objects[s.object], &d.states[s.object]
	switch s.kind {
	case use:
		now.command = d.command
		if !o.fixed && !now.resident && !d.load(s.object) {
			return false
		}
		if s.writes {
			now.contents, now.clean = true, false
		}
		d.push(i, s.object)
	case run:
		d.command++
		for _, e := range d.aside {
			heap.Push(&d.leaving, e)
		}
		d.aside = d.aside[:0]
	case born:
		return d.room(o.size)
	case gone:
		if o.fixed || now.resident {
			d.used -= o.size
		}
		now.resident = false
	case pinned:
		now.pins++
	case loose:
		now.pins = max(0, now.pins-1)
	}
	return true
}

// push notes when the object should leave.
func (d *device) push(i int, at int32) {
	now := &d.states[at]
	if now.key = uint64(i); d.order == Farthest {
		now.key = math.MaxUint32 - uint64(d.next[i])
	}
	if now.resident {
		heap.Push(&d.leaving, entry{at, now.key})
	}
}

// load gives an object memory.
func (d *device) load(at int32) bool {
	o, now := &d.trace.objects[at], &d.states[at]
	if !d.room(o.size) {
		return false
	}
	now.resident = true
	if now.taken && now.contents {
		d.moves.In += o.size
	}
	return true
}

// room takes bytes, for which others leave.
func (d *device) room(bytes uint64) bool {
	for bytes > d.capacity || d.used > d.capacity-bytes {
		if bytes > d.capacity || len(d.leaving) == 0 {
			return false
		}
		e := heap.Pop(&d.leaving).(entry)
		now := &d.states[e.object]
		if !now.resident || now.key != e.key {
			continue
		}
		if now.command == d.command || now.pins > 0 {
			d.aside = append(d.aside, e)
			continue
		}
		d.evict(e.object)
	}
	d.used += bytes
	return true
}

func (d *device) evict(at int32) {
	o, now := &d.trace.objects[at], &d.states[at]
	if now.contents && !now.clean {
		d.moves.Out += o.size
	}
	now.resident, now.clean, now.taken = false, true, true
	d.used -= o.size
}

// least is the most that one command needs beside what cannot go, and the largest object of that command.
func (t *trace) least() (bytes uint64, largest int32) {
	states := make([]state, len(t.objects))
	var fixed, needs uint64
	command, at := 1, int32(0)
	see := func(total uint64) {
		if total > bytes {
			bytes, largest = total, at
		}
	}
	for _, s := range t.steps {
		o, now := &t.objects[s.object], &states[s.object]
		switch s.kind {
		case use:
			if now.command == command || o.fixed || now.pins > 0 {
				continue
			}
			if now.command = command; needs == 0 || o.size > t.objects[at].size {
				at = s.object
			}
			needs += o.size
		case run:
			see(fixed + needs)
			command, needs = command+1, 0
		case born:
			fixed += o.size
			if needs == 0 {
				at = s.object
			}
			see(fixed)
		case gone:
			if o.fixed || now.pins > 0 {
				fixed -= o.size
			}
			now.pins = 0
		case pinned:
			if now.pins++; now.pins == 1 && !o.fixed {
				fixed += o.size
			}
		case loose:
			if now.pins > 0 {
				if now.pins--; now.pins == 0 && !o.fixed {
					fixed -= o.size
				}
			}
		}
	}
	return bytes, largest
}
