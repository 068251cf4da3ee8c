// Package litmus visits all executions of small programs with atomic accesses that C11 allows, by the axioms of RC11 (Lahav,
// Vafeiadis, Kang, Hur, Dreyer: Repairing sequential consistency in C/C++11, PLDI 2017), for programs without fences.
package litmus

import (
	"maps"
	"slices"
)

// order is a memory order of C11; plain is none.
type order int

const (
	plain order = iota
	relaxed
	acquire
	release
	acquireRelease
	seqCst
)

func (o order) acquires() bool { return o == acquire || o >= acquireRelease }
func (o order) releases() bool { return o >= release }

// event is one access in an execution. What it reads was written by event from.
type event struct {
	thread, place      int // thread -1: the initial value
	location           string
	reads, writes      bool
	order              order
	from, value, wrote int
	before             uint64 // the events that happen before it, as bits
}

// execution is a prefix of a run: events in an order in which each comes after those that its thread did before, and after what it
// reads. So no value comes out of thin air.
type execution struct {
	events   []event
	written  map[string][]int // by location, the events that wrote it, in their modification order
	own      [][]int          // by thread
	racy     bool
	returned []int
}

// access is what a thread does next.
type access struct {
	location string
	order    order
	fits     func(int) bool // nil, or which values a read waits for
	change   func(int) int  // of a write that reads: what it writes
	reads    bool
	value    int
}

// thread runs the code of a thread up to its first access that the execution does not have.
type thread struct {
	x       *execution
	own     []int
	pending *access
}

func (t *thread) next(a access) int {
	if len(t.own) == 0 {
		t.pending = &a
		panic("paused")
	}
	at := t.own[0]
	t.own = t.own[1:]
	return t.x.events[at].value
}

func (t *thread) load(location string, o order) int {
	return t.next(access{location: location, order: o, reads: true})
}

func (t *thread) store(location string, value int, o order) {
	t.next(access{location: location, order: o, value: value})
}

// exchange returns the former value. It waits for a value that fits; any value does if fits is nil.
func (t *thread) exchange(location string, value int, o order, fits func(int) bool) int {
	return t.next(access{location: location, order: o, reads: true, fits: fits, change: func(int) int { return value }})
}

func (t *thread) add(location string, by int, o order) int {
	return t.next(access{location: location, order: o, reads: true, change: func(was int) int { return was + by }})
}

// run returns the access that comes next, or nil and what the thread returns.
func (x *execution) run(code func(*thread) int, own []int) (pending *access, returned int) {
	t := &thread{x: x, own: own}
	defer func() {
		if pending = t.pending; pending != nil {
			_ = recover()
		}
	}()
	return nil, code(t)
}

// explorer visits all executions of a program once.
type explorer struct {
	threads []func(*thread) int
	seen    map[string]bool
	whole   func(*execution)
}

func explore(initial map[string]int, threads []func(*thread) int, whole func(*execution)) {
	x := &execution{written: map[string][]int{}, own: make([][]int, len(threads))}
	for location, value := range initial {
		x.written[location] = []int{len(x.events)}
		x.events = append(x.events, event{thread: -1, location: location, writes: true, order: relaxed, value: value, wrote: value})
	}
	(&explorer{threads, map[string]bool{}, whole}).visit(x)
}

func (e *explorer) visit(x *execution) {
	key := x.key()
	if e.seen[key] {
		return
	}
	e.seen[key] = true
	x.returned = make([]int, len(e.threads))
	ended := 0
	for i, code := range e.threads {
		pending, returned := x.run(code, x.own[i])
		if pending == nil {
			x.returned[i] = returned
			ended++
			continue
		}
		for at, writer := range x.written[pending.location] {
			e.try(x, i, pending, at, writer)
		}
	}
	if ended == len(e.threads) {
		e.whole(x)
	}
}

// try continues with an access that reads from a writer, or comes after it in the modification order.
func (e *explorer) try(x *execution, thread int, a *access, at, writer int) {
	was := x.events[writer].wrote
	next := event{thread: thread, place: len(x.own[thread]), location: a.location, order: a.order, reads: a.reads, writes: !a.reads, wrote: a.value}
	if a.reads {
		if a.fits != nil && !a.fits(was) {
			return
		}
		next.from, next.value = writer, was
		if a.change != nil {
			next.wrote, next.writes = a.change(was), true
		}
	}
	if y := x.with(next, at); y != nil {
		e.visit(y)
	}
}

// with returns the execution with one more event, whose write comes after the one at a place of the modification order; nil if C11
// forbids it.
func (x *execution) with(next event, at int) *execution {
	order := x.written[next.location]
	if next.writes && at+1 < len(order) && x.events[order[at+1]].reads {
		return nil // a write that reads comes at once after what it read
	}
	number := len(x.events)
	next.before = x.before(&next)
	y := &execution{events: append(slices.Clone(x.events), next), written: map[string][]int{}, own: slices.Clone(x.own), racy: x.racy}
	for location, all := range x.written {
		y.written[location] = all
	}
	if next.writes {
		y.written[next.location] = slices.Insert(slices.Clone(order), at+1, number)
	}
	y.own[next.thread] = append(slices.Clone(x.own[next.thread]), number)
	for i := range x.events {
		other := &x.events[i]
		conflict := other.location == next.location && (other.writes || next.writes) && (other.order == plain || next.order == plain)
		y.racy = y.racy || conflict && next.before>>i&1 == 0
	}
	if !y.coherent() || y.circular() {
		return nil
	}
	return y
}

// before returns which events happen before the next one: those of its thread, and of what released the value that it acquires.
func (x *execution) before(next *event) (all uint64) {
	add := func(i int) { all |= x.events[i].before | 1<<i }
	for i := range x.events {
		if x.events[i].thread == -1 || x.events[i].thread == next.thread {
			add(i)
		}
	}
	for from, more := next.from, next.reads && next.order.acquires(); more; { // along the release sequence
		source := &x.events[from]
		if source.order.releases() && source.thread >= 0 {
			add(from)
		}
		from, more = source.from, source.reads
	}
	return all
}

// positions returns where in the modification order of its location an event reads, and where it stands afterwards.
func (x *execution) positions(i int) (read, after int) {
	e := &x.events[i]
	order := x.written[e.location]
	if e.reads {
		read = slices.Index(order, e.from)
	}
	if !e.writes {
		return read, read
	}
	return read, slices.Index(order, i)
}

// coherent reports whether what happens before an event comes before it in the modification order of its location.
func (x *execution) coherent() bool {
	for i := range x.events {
		read, after := x.positions(i)
		for j := range x.events {
			if x.events[i].before>>j&1 == 0 || x.events[j].location != x.events[i].location {
				continue
			}
			_, earlier := x.positions(j)
			if x.events[i].reads && earlier > read || x.events[i].writes && earlier >= after {
				return false
			}
		}
	}
	return true
}

// circular reports whether seq_cst events have no order that all threads agree on (psc of RC11, without fences).
func (x *execution) circular() bool {
	var edges [64]uint64
	for a := range x.events {
		for b := range x.events {
			if x.events[a].order == seqCst && x.events[b].order == seqCst && a != b && x.agreed(a, b) {
				edges[a] |= 1 << b
			}
		}
	}
	for k := range x.events {
		for a := range x.events {
			if edges[a]>>k&1 == 1 {
				edges[a] |= edges[k]
			}
		}
	}
	for a := range x.events {
		if edges[a]>>a&1 == 1 {
			return true
		}
	}
	return false
}

// agreed reports whether seq_cst event a comes before b: by their thread, by what they read and write, or by other locations between.
func (x *execution) agreed(a, b int) bool {
	one, two := &x.events[a], &x.events[b]
	if one.thread == two.thread {
		return one.place < two.place
	}
	if one.location == two.location {
		read, after := x.positions(a)
		_, other := x.positions(b)
		return two.before>>a&1 == 1 || two.writes && (one.writes && after < other || one.reads && read < other)
	}
	for c := range x.events {
		for d := range x.events {
			first, last := &x.events[c], &x.events[d]
			if first.thread == one.thread && first.place > one.place && first.location != one.location && last.before>>c&1 == 1 &&
				last.thread == two.thread && last.place < two.place && last.location != two.location {
				return true
			}
		}
	}
	return false
}

// key is the same for executions that differ only in the order in which their events were found.
func (x *execution) key() string {
	var key []byte
	name := func(i int) { key = append(key, byte(x.events[i].thread), byte(x.events[i].place)) }
	for _, own := range x.own {
		for _, i := range own {
			if x.events[i].reads {
				name(x.events[i].from)
			}
			key = append(key, 254)
		}
		key = append(key, 253)
	}
	for _, location := range slices.Sorted(maps.Keys(x.written)) {
		for _, i := range x.written[location] {
			name(i)
		}
		key = append(key, 252)
	}
	return string(key)
}
