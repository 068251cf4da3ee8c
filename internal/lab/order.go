package lab

import (
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// order brings what a recording says to a process's policy into the order in which the policy decided. Threads note what
// was decided a while after it was, and what they note stands in the order of its times: where two of them asked at nearly
// the same time, only the numbers of the decisions tell who was first (enum gmtorder of event.h).
type order struct {
	next    uint64 // number of the decision that comes next; 0: none was told of yet
	highest uint64 // of those that wait
	waiting map[uint64][]op
	threads map[uint32]*teller

	// adrift says that numbers are of no use: the recording is from before there were any, of a program without a pool or
	// only a part of a run, or misses events. What it says then comes as it comes.
	adrift bool
}

// firstNumber is that of a process's first decision.
const firstNumber = 2

// mostWaiting is how many decisions may wait for one that was made before them. A thread may be in the driver for long,
// between the decision on its request and its word of it; one that never tells must not hold up all others for ever. What
// it would have told of is left out then, or comes late.
const mostWaiting = 1 << 20

// A thread that told of a block that cooled tells what number that had at once, or with whatever it does next. One that
// does nothing for so long (ns) had the number that follows its last; that is looked at whenever so many decisions more
// wait.
const (
	overdueAfter = 1e9
	overdueEvery = 64
)

// teller is a thread that tells of its decisions.
type teller struct {
	last   uint64            // number of the latest decision that it told of
	after  map[uint64]uint64 // the number that follows another one, where others have those between
	apart  map[uint64]bool   // numbers that an event of their own tells of
	owed   []op              // blocks that cooled: of these it tells before the policy decides
	grown  bool              // its next decision but one was that a slab is there
	trials []trial           // for the request that it will tell of next
}

// trial is a plan that came to nothing.
type trial struct {
	plan, grown, end uint64 // numbers; grown: 0 when it had no slab made
	returned         bool   // it was a block that could not be used; else the driver refused
}

// of returns a thread, nil where numbers are of no use.
func (s *order) of(thread uint32) *teller {
	if s.adrift {
		return nil
	}
	t := s.threads[thread]
	s.adrift = t == nil
	return t
}

// newcomer returns a thread that tells of a block that cooled: its first decision may be that, and the ORDER behind it.
func (s *order) newcomer(thread uint32) *teller {
	if s.next != 0 && !s.adrift && s.threads[thread] == nil {
		s.threads[thread] = newTeller()
	}
	return s.of(thread)
}

func newTeller() *teller { return &teller{after: map[uint64]uint64{}, apart: map[uint64]bool{}} }

// next returns the number of the thread's next decision that the events tell of.
func (t *teller) next() uint64 {
	for {
		number := t.last + 1
		if len(t.after) > 0 {
			if jump, there := t.after[t.last]; there {
				delete(t.after, t.last)
				number = jump
			}
		}
		t.last = number
		if len(t.apart) == 0 || !t.apart[number] {
			return number
		}
		delete(t.apart, number)
	}
}

// tell appends to ops what is told by the decision of that number, or keeps it until its turn has come. What comes without
// a number comes behind all that wait.
func (r *resolver) tell(s *order, number uint64, ops []op, told ...op) []op {
	switch {
	case s.adrift:
		return r.put(r.flush(s, ops), told)
	case number == 0 && len(s.waiting) == 0:
		return r.put(ops, told)
	case number == 0:
		number = s.highest
		fallthrough
	case number > s.next:
		s.waiting[number] = append(s.waiting[number], told...)
		s.highest = max(s.highest, number)
		if len(s.waiting) <= mostWaiting {
			return ops
		}
		return r.flush(s, ops)
	}
	ops = r.put(ops, told)
	if number < s.next {
		return ops
	}
	for s.next++; len(s.waiting) > 0; s.next++ {
		held, there := s.waiting[s.next]
		if !there {
			break
		}
		delete(s.waiting, s.next)
		ops = r.put(ops, held)
	}
	return ops
}

// put appends told to ops. Slots whose buffers are gone with it may have others from here on.
func (r *resolver) put(ops, told []op) []op {
	for i := range told {
		if told[i].code.ends() {
			r.free = append(r.free, told[i].slot)
		}
	}
	return append(ops, told...)
}

// flush appends all that waits, as far as it is known in order.
func (r *resolver) flush(s *order, ops []op) []op {
	if len(s.waiting) == 0 {
		return ops
	}
	for _, number := range slices.Sorted(maps.Keys(s.waiting)) {
		ops = r.put(ops, s.waiting[number])
		s.next = number + 1
	}
	clear(s.waiting)
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
func (r *resolver) end(o *origin, ops []op) []op {
	for _, thread := range slices.Sorted(maps.Keys(o.order.threads)) {
		ops = r.pay(o, o.order.threads[thread], ops)
	}
	return r.flush(&o.order, ops)
}

// pay tells of what a thread has told of before it was decided, now that the thread goes on.
func (r *resolver) pay(o *origin, t *teller, ops []op) []op {
	for _, step := range t.owed {
		ops = r.tell(&o.order, t.next(), ops, step)
	}
	t.owed = t.owed[:0]
	return ops
}

// overdue pays for threads that have been silent since a block cooled, while others wait.
func (r *resolver) overdue(o *origin, now int64, ops []op) []op {
	for _, thread := range slices.Sorted(maps.Keys(o.order.threads)) {
		t := o.order.threads[thread]
		if t.last != 0 && len(t.owed) > 0 && now-t.owed[len(t.owed)-1].time > overdueAfter {
			ops = r.pay(o, t, ops)
		}
	}
	return ops
}

// lost gives the numbers up, because events are missing.
func (r *resolver) lost(ops []op) []op {
	ops = r.finish(ops)
	for _, o := range r.processes {
		o.order.adrift = true
	}
	return ops
}

// ordered handles ORDER.
func (r *resolver) ordered(o *origin, record *wire.Record, ops []op) []op {
	s, e := &o.order, &record.Event
	if s.adrift {
		return ops
	}
	t := s.threads[record.Thread]
	if e.Link == 0 { // a thread's first
		if s.threads == nil {
			s.threads, s.waiting, s.next = map[uint32]*teller{}, map[uint64][]op{}, firstNumber
		}
		if t != nil && t.last != 0 { // of a thread that has ended, whose number another has now
			ops = r.pay(o, t, ops)
			t = nil
		}
		if t == nil {
			t = newTeller()
			s.threads[record.Thread] = t
		}
	} else if t == nil {
		s.adrift = true
		return ops
	}
	if e.Object != e.Link+1 {
		t.after[e.Link] = e.Object
	}
	ops = r.pay(o, t, ops)
	if wire.Order(e.Op) == wire.OrderNext {
		return ops
	}
	t.apart[e.Object] = true
	step := op{time: moment(e.Time), slot: o.number, mark: numbered}
	switch wire.Order(e.Op) {
	case wire.OrderAbort, wire.OrderReturn:
		t.try(e)
		return ops
	case wire.OrderDrain:
		step.code, step.size = opDrain, e.Size
	case wire.OrderExpire:
		step.code = opExpire
	case wire.OrderDrop:
		class, known := o.classes[uint32(e.Scope)<<16|uint32(e.Access)]
		if !known {
			return r.tell(s, e.Object, ops)
		}
		step.code = opEnd
		return r.tell(s, e.Object, ops, step, op{code: opDrop, time: step.time, class: class})
	default:
		return r.tell(s, e.Object, ops)
	}
	return r.tell(s, e.Object, ops, step)
}

// try notes a plan that came to nothing.
func (t *teller) try(e *wire.Event) {
	t.apart[e.Size] = true
	if e.Granted != 0 {
		t.apart[e.Granted] = true
	}
	t.grown = false
	t.trials = append(t.trials, trial{e.Size, e.Granted, e.Object, wire.Order(e.Op) == wire.OrderReturn})
}

// tryFirst tells of the plans for a request that came to nothing, before it was met otherwise, and returns the mark of
// what follows.
func (r *resolver) tryFirst(o *origin, t *teller, e *wire.Event, ops []op) ([]op, mark) {
	if t == nil || len(t.trials) == 0 {
		return ops, wholes(e)
	}
	step := op{
		time: moment(e.Start()), size: max(e.Size, 1), class: r.classOf(o, e), tag: allocator.Tag(e.Tag), mark: numbered | wholes(e),
	}
	for _, try := range t.trials {
		step.slot, step.code = r.slot(), opTry
		ops = r.tell(&o.order, try.plan, ops, step)
		step.code = opGrown
		if try.grown != 0 {
			ops = r.tell(&o.order, try.grown, ops, step)
		}
		step.code = opAbort
		if try.returned {
			step.code = opReturn
		}
		ops = r.tell(&o.order, try.end, ops, step)
		step.mark |= again
	}
	t.trials = t.trials[:0]
	return ops, step.mark
}

// request tells of a request that was met: by one decision, and one or two more by which the slab and the block were
// there.
func (r *resolver) request(o *origin, t *teller, e *wire.Event, ops []op, step op) []op {
	if t == nil {
		return r.tell(&o.order, 0, ops, step)
	}
	step.mark |= numbered
	s := &o.order
	plan := t.next()
	if e.Outcome == wire.OutcomeHit && e.Flags&wire.FlagPart == 0 {
		return r.tell(s, plan, ops, step)
	}
	grown := uint64(0)
	if t.grown {
		grown, t.grown = t.next(), false
	}
	commit := t.next()
	if grown == 0 && commit == plan+1 || grown == plan+1 && commit == plan+2 { // nobody came between
		ops = r.tell(s, plan, ops, step)
		if grown != 0 {
			ops = r.tell(s, grown, ops)
		}
		return r.tell(s, commit, ops)
	}
	step.code = opPlan
	ops = r.tell(s, plan, ops, step)
	if grown != 0 {
		step.code = opGrown
		ops = r.tell(s, grown, ops, step)
	}
	step.code = opCommit
	return r.tell(s, commit, ops, step)
}

// wholes returns the mark of a request that no part of a slab could have served.
func wholes(e *wire.Event) mark {
	if e.Flags&wire.FlagWhole != 0 {
		return whole
	}
	return 0
}
