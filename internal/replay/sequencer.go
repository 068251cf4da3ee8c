package replay

import (
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// sequencer restores the order in which a process's policy decided, like a reorder buffer. Threads record a decision
// some time after it was made, and records are sorted by time: where two threads asked at nearly the same time, only
// the numbers of the decisions give the order (enum gmtorder of event.h).
//
//	records ──► emit(number, steps) ──► number == next ──► ops ──► players
//	                  └──► pending[number] ──► when its turn comes, or flush
type sequencer struct {
	next    uint64 // number of the decision that comes next; 0: none was recorded yet
	highest uint64 // of those that wait
	pending map[uint64][]op
	threads map[uint32]*threadOrder

	// unnumbered says that numbers cannot be used: the recording predates them, lacks a pool or events, or is a time
	// range of a run. Steps then come in the order of records.
	unnumbered bool
}

// firstNumber is that of a process's first decision.
const firstNumber = 2

// mostWaiting bounds how many decisions may wait for an earlier one. A thread may spend long in the driver between the
// decision on its request and its record; a thread that never reports must not block the others forever. Its records
// are then left out, or come late.
const mostWaiting = 1 << 20

// A thread that recorded COOLED records the decision's number at once, or with its next event. For a thread that stays
// silent for overdueAfter ns the number is the one after its last; this is checked whenever overdueEvery more decisions
// are pending.
const (
	overdueAfter = 1e9
	overdueEvery = 64
)

// threadOrder numbers the decisions of one thread.
type threadOrder struct {
	last     uint64            // number of its latest recorded decision
	after    map[uint64]uint64 // the number that follows another one, where others have those between
	separate map[uint64]bool   // numbers recorded by an ORDER of their own
	deferred []op              // blocks that cooled: of these it tells before the policy decides
	grown    bool              // its next decision but one was that a slab is there
	attempts []attempt         // for the request that it records next
}

// attempt is a plan that was given up.
type attempt struct {
	plan, grown, end uint64 // numbers; grown: 0 when it had no slab made
	returned         bool   // it was a block that could not be used; else the driver refused
	class            wire.Class
}

// of returns a thread, nil where numbers are of no use.
func (s *sequencer) of(thread uint32) *threadOrder {
	if s.unnumbered {
		return nil
	}
	t := s.threads[thread]
	s.unnumbered = t == nil
	return t
}

// newcomer returns the thread that recorded COOLED, which may be its first decision, with the ORDER behind it.
func (s *sequencer) newcomer(thread uint32) *threadOrder {
	if s.next != 0 && !s.unnumbered && s.threads[thread] == nil {
		s.threads[thread] = newThreadOrder()
	}
	return s.of(thread)
}

func newThreadOrder() *threadOrder {
	return &threadOrder{after: map[uint64]uint64{}, separate: map[uint64]bool{}}
}

// next returns the number of the thread's next decision that an ordinary event records.
func (t *threadOrder) next() uint64 {
	for {
		number := t.last + 1
		if len(t.after) > 0 {
			if jump, there := t.after[t.last]; there {
				delete(t.after, t.last)
				number = jump
			}
		}
		t.last = number
		if len(t.separate) == 0 || !t.separate[number] {
			return number
		}
		delete(t.separate, number)
	}
}

// emit appends the steps of the decision with that number to ops, or keeps them until its turn. Steps without a number
// are queued behind everything pending.
func (r *resolver) emit(s *sequencer, number uint64, ops []op, steps ...op) []op {
	switch {
	case s.unnumbered:
		return r.appendOps(r.flush(s, ops), steps)
	case number == 0 && len(s.pending) == 0:
		return r.appendOps(ops, steps)
	case number == 0:
		number = s.highest
		fallthrough
	case number > s.next:
		s.pending[number] = append(s.pending[number], steps...)
		s.highest = max(s.highest, number)
		if len(s.pending) <= mostWaiting {
			return ops
		}
		return r.flush(s, ops)
	}
	ops = r.appendOps(ops, steps)
	if number < s.next {
		return ops
	}
	for s.next++; len(s.pending) > 0; s.next++ {
		held, there := s.pending[s.next]
		if !there {
			break
		}
		delete(s.pending, s.next)
		ops = r.appendOps(ops, held)
	}
	return ops
}

// appendOps appends steps to ops and frees the slots of buffers that end with them.
func (r *resolver) appendOps(ops, steps []op) []op {
	for i := range steps {
		if steps[i].code.ends() {
			r.free = append(r.free, steps[i].slot)
		}
	}
	return append(ops, steps...)
}

// flush appends all that waits, as far as it is known in order.
func (r *resolver) flush(s *sequencer, ops []op) []op {
	if len(s.pending) == 0 {
		return ops
	}
	for _, number := range slices.Sorted(maps.Keys(s.pending)) {
		ops = r.appendOps(ops, s.pending[number])
		s.next = number + 1
	}
	clear(s.pending)
	return ops
}

// finish appends what waits, of all processes: nothing more comes.
func (r *resolver) finish(ops []op) []op {
	for _, number := range slices.Sorted(maps.Keys(r.processes)) {
		ops = r.end(r.processes[number], ops)
	}
	return ops
}

// end appends what waits of a process.
func (r *resolver) end(o *recordedProcess, ops []op) []op {
	for _, thread := range slices.Sorted(maps.Keys(o.order.threads)) {
		ops = r.emitDeferred(o, o.order.threads[thread], ops)
	}
	return r.flush(&o.order, ops)
}

// emitDeferred emits the coolings that a thread recorded before their decisions had numbers, now that it goes on.
func (r *resolver) emitDeferred(o *recordedProcess, t *threadOrder, ops []op) []op {
	for _, step := range t.deferred {
		ops = r.emit(&o.order, t.next(), ops, step)
	}
	t.deferred = t.deferred[:0]
	return ops
}

// emitOverdue emits the deferred coolings of threads that have been silent since, while others wait.
func (r *resolver) emitOverdue(o *recordedProcess, now int64, ops []op) []op {
	for _, thread := range slices.Sorted(maps.Keys(o.order.threads)) {
		t := o.order.threads[thread]
		if t.last != 0 && len(t.deferred) > 0 && now-t.deferred[len(t.deferred)-1].time > overdueAfter {
			ops = r.emitDeferred(o, t, ops)
		}
	}
	return ops
}

// eventsLost abandons the numbers, because events are missing.
func (r *resolver) eventsLost(ops []op) []op {
	ops = r.finish(ops)
	for _, o := range r.processes {
		o.order.unnumbered = true
	}
	return ops
}

// order handles ORDER.
func (r *resolver) order(o *recordedProcess, record *wire.Record, ops []op) []op {
	s, e := &o.order, record.AsOrder()
	if s.unnumbered {
		return ops
	}
	t := s.threads[record.Thread]
	if e.Previous() == 0 { // a thread's first
		if s.threads == nil {
			s.threads, s.pending, s.next = map[uint32]*threadOrder{}, map[uint64][]op{}, firstNumber
		}
		if t != nil && t.last != 0 { // of a thread that has ended, whose number another has now
			ops = r.emitDeferred(o, t, ops)
			t = nil
		}
		if t == nil {
			t = newThreadOrder()
			s.threads[record.Thread] = t
		}
	} else if t == nil {
		s.unnumbered = true
		return ops
	}
	number := e.Number()
	if number != e.Previous()+1 {
		t.after[e.Previous()] = number
	}
	ops = r.emitDeferred(o, t, ops)
	if e.Order() == wire.OrderNext {
		return ops
	}
	t.separate[number] = true
	step := op{time: moment(e.Time()), slot: o.number, mark: numbered}
	switch e.Order() {
	case wire.OrderAbort, wire.OrderReturn:
		t.noteAttempt(e)
		return ops
	case wire.OrderDrain:
		step.code, step.size = opDrain, e.Bytes()
	case wire.OrderExpire:
		step.code = opExpire
	case wire.OrderDrop:
		class, known := o.classes[e.Class()]
		if !known {
			return r.emit(s, number, ops)
		}
		step.code = opEnd
		return r.emit(s, number, ops, step, op{code: opDrop, time: step.time, class: class})
	default:
		return r.emit(s, number, ops)
	}
	return r.emit(s, number, ops, step)
}

// noteAttempt notes a plan that was given up.
func (t *threadOrder) noteAttempt(e wire.OrderView) {
	t.separate[e.Decision()] = true
	if e.Slab() != 0 {
		t.separate[e.Slab()] = true
	}
	t.grown = false
	t.attempts = append(t.attempts, attempt{e.Decision(), e.Slab(), e.Number(), e.Order() == wire.OrderReturn, e.Class()})
}

// emitAttempts emits the plans for a request that were given up before it was served otherwise, and returns the mark of
// what follows.
func (r *resolver) emitAttempts(o *recordedProcess, t *threadOrder, e wire.CreateView, ops []op) ([]op, mark) {
	if t == nil || len(t.attempts) == 0 {
		return ops, wholes(e)
	}
	step := op{
		time: moment(e.Start()), size: max(e.Requested(), 1), tag: allocator.Tag(e.Tag()), mark: numbered | wholes(e),
	}
	for _, try := range t.attempts {
		if try.class.Shape() == 0 {
			try.class = e.Class() // older recordings lack it
		}
		step.class = r.classOf(o, try.class)
		step.slot, step.code = r.slot(), opTry
		ops = r.emit(&o.order, try.plan, ops, step)
		step.code = opGrown
		if try.grown != 0 {
			ops = r.emit(&o.order, try.grown, ops, step)
		}
		step.code = opAbort
		if try.returned {
			step.code = opReturn
		}
		ops = r.emit(&o.order, try.end, ops, step)
		step.mark |= retried
	}
	t.attempts = t.attempts[:0]
	return ops, step.mark
}

// request emits a request that was served: one decision, and one or two more by which the slab and the block existed.
func (r *resolver) request(o *recordedProcess, t *threadOrder, e wire.CreateView, ops []op, step op) []op {
	if t == nil {
		return r.emit(&o.order, 0, ops, step)
	}
	step.mark |= numbered
	s := &o.order
	plan := t.next()
	if e.Outcome() == wire.OutcomeHit && !e.SubAllocation() {
		return r.emit(s, plan, ops, step)
	}
	grown := uint64(0)
	if t.grown {
		grown, t.grown = t.next(), false
	}
	commit := t.next()
	if grown == 0 && commit == plan+1 || grown == plan+1 && commit == plan+2 { // no other thread decided in between
		ops = r.emit(s, plan, ops, step)
		if grown != 0 {
			ops = r.emit(s, grown, ops)
		}
		return r.emit(s, commit, ops)
	}
	step.code = opPlan
	ops = r.emit(s, plan, ops, step)
	if grown != 0 {
		step.code = opGrown
		ops = r.emit(s, grown, ops, step)
	}
	step.code = opCommit
	return r.emit(s, commit, ops, step)
}

// wholes returns the mark of a request that no part of a slab could have served.
func wholes(e wire.CreateView) mark {
	if e.NeedsBlock() {
		return whole
	}
	return 0
}
