package replay

import (
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// sequencer restores the order in which a process's policy decided, like a reorder buffer. A thread records a decision
// some time after it was made, and records are sorted by time: where two threads asked at nearly the same time, only
// the numbers of the decisions give the order (enum gmtorder of event.h).
//
//	records ──► emitInOrder(number, steps) ──► number == next ──► ops ──► simulations
//	                  └──► pending[number] ──► when its turn comes, or flush
type sequencer struct {
	next    uint64 // number of the next decision; 0: none was recorded yet
	highest uint64 // the highest pending number
	pending map[uint64][]op
	threads map[uint32]*threadOrder

	// unnumbered says that numbers cannot be used: the recording predates them, lacks a pool or events, or is a time
	// range of a run. Steps then come in the order of records.
	unnumbered bool
}

// firstNumber is the number of a process's first decision.
const firstNumber = 2

// mostWaiting bounds how many decisions may be pending. A thread may spend a long time in the driver between its
// decision and the record, but a thread that never records must not block the others forever. Its records are then left
// out, or come late.
const mostWaiting = 1 << 20

// A thread that recorded COOLED records the decision's number at once, or with its next event. If the thread stays
// silent for overdueAfter ns, the number is taken to be the one after its last; this is checked whenever overdueEvery
// more decisions are pending.
const (
	overdueAfter = 1e9
	overdueEvery = 64
)

// threadOrder numbers the decisions of one thread.
type threadOrder struct {
	last     uint64            // number of its latest recorded decision
	jumps    map[uint64]uint64 // the number that follows another, where other threads decided in between
	separate map[uint64]bool   // numbers that have an ORDER record of their own
	deferred []op              // coolings, which a thread records before the policy decides
	slabNext bool              // its next decision but one is a created slab
	attempts []attempt         // given up, for the request that the thread records next
}

// attempt is a decision that was given up.
type attempt struct {
	decision, slab, end uint64 // numbers; slab: 0 if no slab was created
	returned            bool   // the block could not be used; otherwise the driver refused
	class               wire.Class
}

// threadIfOrdered returns a thread, nil if numbers cannot be used.
func (s *sequencer) threadIfOrdered(threadOf uint32) *threadOrder {
	if s.unnumbered {
		return nil
	}
	t := s.threads[threadOf]
	s.unnumbered = t == nil
	return t
}

// threadOrNew returns a thread that recorded COOLED. COOLED may be the record of its first decision; its ORDER record
// then comes later.
func (s *sequencer) threadOrNew(thread uint32) *threadOrder {
	if s.next != 0 && !s.unnumbered && s.threads[thread] == nil {
		s.threads[thread] = newThreadOrder()
	}
	return s.threadIfOrdered(thread)
}

func newThreadOrder() *threadOrder {
	return &threadOrder{jumps: map[uint64]uint64{}, separate: map[uint64]bool{}}
}

// nextDecisionNumber returns the number of the thread's next decision that an ordinary event records.
func (t *threadOrder) nextDecisionNumber() uint64 {
	for {
		number := t.last + 1
		if len(t.jumps) > 0 {
			if jump, there := t.jumps[t.last]; there {
				delete(t.jumps, t.last)
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

// emitInOrder appends the steps of the decision with that number to ops, or keeps them until its turn. Steps without a number
// are queued after everything pending.
func (r *resolver) emitInOrder(s *sequencer, number uint64, ops []op, steps ...op) []op {
	switch {
	case s.unnumbered:
		return r.appendStepsAndFreeSlots(r.emitPendingSteps(s, ops), steps)
	case number == 0 && len(s.pending) == 0:
		return r.appendStepsAndFreeSlots(ops, steps)
	case number == 0:
		number = s.highest
		fallthrough
	case number > s.next:
		s.pending[number] = append(s.pending[number], steps...)
		s.highest = max(s.highest, number)
		if len(s.pending) <= mostWaiting {
			return ops
		}
		return r.emitPendingSteps(s, ops)
	}
	ops = r.appendStepsAndFreeSlots(ops, steps)
	if number < s.next {
		return ops
	}
	for s.next++; len(s.pending) > 0; s.next++ {
		held, there := s.pending[s.next]
		if !there {
			break
		}
		delete(s.pending, s.next)
		ops = r.appendStepsAndFreeSlots(ops, held)
	}
	return ops
}

// appendStepsAndFreeSlots appends steps to ops and frees the slots of buffers that end with them.
func (r *resolver) appendStepsAndFreeSlots(ops, steps []op) []op {
	for i := range steps {
		if steps[i].code.emptiesSlot() {
			r.free = append(r.free, steps[i].slot)
		}
	}
	return append(ops, steps...)
}

// emitPendingSteps appends all pending steps, in the order of their numbers.
func (r *resolver) emitPendingSteps(s *sequencer, ops []op) []op {
	if len(s.pending) == 0 {
		return ops
	}
	for _, number := range slices.Sorted(maps.Keys(s.pending)) {
		ops = r.appendStepsAndFreeSlots(ops, s.pending[number])
		s.next = number + 1
	}
	clear(s.pending)
	return ops
}

// emitAllPendingSteps appends the pending steps of all processes, because no more records come.
func (r *resolver) emitAllPendingSteps(ops []op) []op {
	for _, number := range slices.Sorted(maps.Keys(r.processes)) {
		ops = r.emitPendingStepsOfProcess(r.processes[number], ops)
	}
	return ops
}

// emitPendingStepsOfProcess appends the pending steps of a process.
func (r *resolver) emitPendingStepsOfProcess(p *recordedProcess, ops []op) []op {
	for _, thread := range slices.Sorted(maps.Keys(p.order.threads)) {
		ops = r.emitDeferredCoolings(p, p.order.threads[thread], ops)
	}
	return r.emitPendingSteps(&p.order, ops)
}

// emitDeferredCoolings emits the coolings that a thread recorded before their decisions had numbers.
func (r *resolver) emitDeferredCoolings(p *recordedProcess, t *threadOrder, ops []op) []op {
	for _, step := range t.deferred {
		ops = r.emitInOrder(&p.order, t.nextDecisionNumber(), ops, step)
	}
	t.deferred = t.deferred[:0]
	return ops
}

// emitOverdueCoolings emits the deferred coolings of threads that stay silent while others wait.
func (r *resolver) emitOverdueCoolings(p *recordedProcess, now int64, ops []op) []op {
	for _, thread := range slices.Sorted(maps.Keys(p.order.threads)) {
		t := p.order.threads[thread]
		if t.last != 0 && len(t.deferred) > 0 && now-t.deferred[len(t.deferred)-1].time > overdueAfter {
			ops = r.emitDeferredCoolings(p, t, ops)
		}
	}
	return ops
}

// stopUsingDecisionNumbers ends the use of numbers, because events are missing.
func (r *resolver) stopUsingDecisionNumbers(ops []op) []op {
	ops = r.emitAllPendingSteps(ops)
	for _, p := range r.processes {
		p.order.unnumbered = true
	}
	return ops
}

// resolveOrder handles ORDER.
func (r *resolver) resolveOrder(p *recordedProcess, record *wire.Record, ops []op) []op {
	s, e := &p.order, record.AsOrder()
	if s.unnumbered {
		return ops
	}
	t := s.threads[record.Thread]
	if e.Previous() == 0 { // the thread's first decision
		if s.threads == nil {
			s.threads, s.pending, s.next = map[uint32]*threadOrder{}, map[uint64][]op{}, firstNumber
		}
		if t != nil && t.last != 0 { // the old thread has ended, and a new thread has its number
			ops = r.emitDeferredCoolings(p, t, ops)
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
		t.jumps[e.Previous()] = number
	}
	ops = r.emitDeferredCoolings(p, t, ops)
	if e.Order() == wire.OrderNext {
		return ops
	}
	t.separate[number] = true
	step := op{time: toPolicyTime(e.Time()), slot: p.number, mark: numbered}
	switch e.Order() {
	case wire.OrderAbort, wire.OrderReturn:
		t.noteGivenUpDecision(e)
		return ops
	case wire.OrderDrain:
		step.code, step.size = opDrain, e.Bytes()
	case wire.OrderExpire:
		step.code = opExpire
	case wire.OrderDrop:
		class, known := p.classes[e.Class()]
		if !known {
			return r.emitInOrder(s, number, ops)
		}
		step.code = opEnd
		return r.emitInOrder(s, number, ops, step, op{code: opDrop, time: step.time, class: class})
	default:
		return r.emitInOrder(s, number, ops)
	}
	return r.emitInOrder(s, number, ops, step)
}

// noteGivenUpDecision notes a decision that was given up.
func (t *threadOrder) noteGivenUpDecision(e wire.OrderView) {
	t.separate[e.Decision()] = true
	if e.Slab() != 0 {
		t.separate[e.Slab()] = true
	}
	t.slabNext = false
	t.attempts = append(t.attempts, attempt{e.Decision(), e.Slab(), e.Number(), e.Order() == wire.OrderReturn, e.Class()})
}

// emitGivenUpDecisions emits the decisions on a request that were given up before it was served, and returns the mark of the
// final decision.
func (r *resolver) emitGivenUpDecisions(p *recordedProcess, t *threadOrder, e wire.CreateView, ops []op) ([]op, mark) {
	if t == nil || len(t.attempts) == 0 {
		return ops, markOfWholeBlock(e)
	}
	step := op{
		time: toPolicyTime(e.Start()), size: max(e.Requested(), 1), tag: allocator.Tag(e.Tag()), mark: numbered | markOfWholeBlock(e),
	}
	for _, attempt := range t.attempts {
		if attempt.class.Shape() == 0 {
			attempt.class = e.Class() // older recordings lack the class
		}
		step.class = r.classOf(p, attempt.class)
		step.slot, step.code = r.newSlot(), opTry
		ops = r.emitInOrder(&p.order, attempt.decision, ops, step)
		step.code = opGrown
		if attempt.slab != 0 {
			ops = r.emitInOrder(&p.order, attempt.slab, ops, step)
		}
		step.code = opAbort
		if attempt.returned {
			step.code = opReturn
		}
		ops = r.emitInOrder(&p.order, attempt.end, ops, step)
		step.mark |= retried
	}
	t.attempts = t.attempts[:0]
	return ops, step.mark
}

// emitRequest emits a served request: one decision, and one or two more when the slab and the block were created.
func (r *resolver) emitRequest(p *recordedProcess, t *threadOrder, e wire.CreateView, ops []op, step op) []op {
	if t == nil {
		return r.emitInOrder(&p.order, 0, ops, step)
	}
	step.mark |= numbered
	s := &p.order
	decision := t.nextDecisionNumber()
	if e.Outcome() == wire.OutcomeHit && !e.SubAllocation() {
		return r.emitInOrder(s, decision, ops, step)
	}
	grown := uint64(0)
	if t.slabNext {
		grown, t.slabNext = t.nextDecisionNumber(), false
	}
	commit := t.nextDecisionNumber()
	if grown == 0 && commit == decision+1 || grown == decision+1 && commit == decision+2 { // no other thread decided in between
		ops = r.emitInOrder(s, decision, ops, step)
		if grown != 0 {
			ops = r.emitInOrder(s, grown, ops)
		}
		return r.emitInOrder(s, commit, ops)
	}
	step.code = opDecide
	ops = r.emitInOrder(s, decision, ops, step)
	if grown != 0 {
		step.code = opGrown
		ops = r.emitInOrder(s, grown, ops, step)
	}
	step.code = opCommit
	return r.emitInOrder(s, commit, ops, step)
}

// markOfWholeBlock returns the mark of a request that no sub-allocation could have served.
func markOfWholeBlock(e wire.CreateView) mark {
	if e.NeedsBlock() {
		return needsBlock
	}
	return 0
}
