package lab

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// by says which thread wrote the latest record.
func (tape *tape) by(thread uint32) *wire.Event {
	r := &tape.records[len(tape.records)-1]
	r.Thread = thread
	return &r.Event
}

// order adds an ORDER of a thread: the decision after link is number.
func (tape *tape) order(thread uint32, op wire.Order, link, number uint64) *wire.Event {
	tape.add(wire.Event{Kind: wire.KindOrder, Op: uint8(op), Object: number, Link: link})
	return tape.by(thread)
}

// served adds a CREATE of 4096 bytes that was met with a block.
func (tape *tape) served(thread uint32, object, block uint64, outcome wire.Outcome, reason wire.Miss) {
	tape.create(object, 4096)
	e := tape.by(thread)
	e.Link, e.Outcome, e.Reason = block, outcome, uint8(reason)
}

// cached adds the RELEASE of buffer 1.
func (tape *tape) cached(thread uint32) {
	tape.release(1, wire.OutcomeCached, 0)
	tape.by(thread).Link = block1
}

// Numbers of the first blocks that a policy makes.
const (
	block1 = 1
	block2 = 2
)

// twoThreads is a recording in which thread 2 says before thread 1 what was decided after: it found the block that thread 1
// had let go.
func twoThreads(numbers bool) *tape {
	s := newTape()
	if numbers {
		s.order(1, wire.OrderNext, 0, 2)
	}
	s.served(1, 1, block1, wire.OutcomeMiss, wire.MissCold) // 2 and 3
	if numbers {
		s.order(2, wire.OrderNext, 0, 5)
	}
	s.served(2, 2, block1, wire.OutcomeHit, wire.MissNone) // 5
	s.cached(1)                                            // 4
	if numbers {
		s.order(1, wire.OrderNext, 4, 7)
		s.order(2, wire.OrderDrop, 5, 6)
	}
	s.served(1, 3, block2, wire.OutcomeMiss, wire.MissCold) // 7 and 8
	return s
}

func compared(t *testing.T, s *tape) *Comparison {
	t.Helper()
	c, err := Compare(s, ReplayOptions{Policy: "futhark"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNumbersTellTheOrder in which the policy was asked, where times do not.
func TestNumbersTellTheOrder(t *testing.T) {
	if c := compared(t, twoThreads(true)); !c.Exact() || c.Requests != 3 || c.First != "" {
		t.Errorf("%+v", c)
	}
	if c := compared(t, twoThreads(false)); c.Exact() {
		t.Errorf("without numbers the hit is found: %+v", c)
	}
}

// TestLostEventsEndTheOrder, but nothing waits for ever.
func TestLostEventsEndTheOrder(t *testing.T) {
	s := newTape()
	s.order(1, wire.OrderNext, 0, 2)
	s.served(1, 1, block1, wire.OutcomeMiss, wire.MissCold)
	s.order(1, wire.OrderNext, 3, 9) // what is between is lost
	s.cached(1)
	s.add(wire.Event{Kind: wire.KindLost, Size: 5})
	s.served(1, 2, block1, wire.OutcomeHit, wire.MissNone)
	r := s.replay(t, "futhark", 0)
	if r.Requests != 2 || r.Hits != 1 || r.Misses != 1 || r.Lost != 5 {
		t.Errorf("%+v", r)
	}
}

// TestAPartOfARunHasNoOrder: its threads' first decisions are not in it.
func TestAPartOfARunHasNoOrder(t *testing.T) {
	s := newTape()
	s.order(1, wire.OrderNext, 70, 99)
	s.served(1, 1, block1, wire.OutcomeMiss, wire.MissCold)
	s.order(2, wire.OrderNext, 0, 105)
	s.cached(2)
	if r := s.replay(t, "futhark", 0); r.Requests != 1 || r.Cached != 4096 {
		t.Errorf("%+v", r)
	}
}

// TestWhatCooledIsPaid: the number of a COOLED may come behind it.
func TestWhatCooledIsPaid(t *testing.T) {
	s := newTape()
	s.order(1, wire.OrderNext, 0, 2)
	s.served(1, 1, block1, wire.OutcomeMiss, wire.MissCold) // 2 and 3
	s.release(1, wire.OutcomeCooling, wire.FlagWouldRace)   // 4
	s.by(1).Link = block1
	s.add(wire.Event{Kind: wire.KindCooled, Link: block1, Granted: 4096}) // 7
	s.by(1)
	s.order(2, wire.OrderNext, 0, 5)
	s.served(2, 2, block2, wire.OutcomeMiss, wire.MissCooling) // 5 and 6
	s.order(1, wire.OrderNext, 4, 7)
	s.served(1, 3, block1, wire.OutcomeHit, wire.MissNone) // 8
	if c := compared(t, s); !c.Exact() || c.Requests != 3 {
		t.Errorf("%+v", c)
	}
}

// TestSilenceHoldsNobodyUp: a thread that says nothing after a block has cooled, or whose number another thread has later,
// does not keep others waiting for ever.
func TestSilenceHoldsNobodyUp(t *testing.T) {
	start := func() *tape {
		s := newTape()
		s.order(1, wire.OrderNext, 0, 2)
		s.served(1, 1, block1, wire.OutcomeMiss, wire.MissCold) // 2 and 3
		s.release(1, wire.OutcomeCooling, wire.FlagWouldRace)   // 4
		s.by(1).Link = block1
		s.add(wire.Event{Kind: wire.KindCooled, Link: block1, Granted: 4096}) // 5
		s.by(1)
		return s
	}
	requests := func(s *tape, n int, ns uint64) (ops int) {
		s.order(2, wire.OrderNext, 0, 6)
		for i := range uint64(n) {
			s.served(2, 2+i, 2+i, wire.OutcomeMiss, wire.MissCold)
			s.by(2).Time += i * ns
			s.by(2).Cost = 0
		}
		return resolved(s)
	}
	const before = 2 // the first request and its release
	if got := requests(start(), 200, 1000); got != before {
		t.Errorf("%d ops: what comes later was not kept waiting", got)
	}
	if got := requests(start(), 200, 1e8); got < before+1+150 {
		t.Errorf("%d ops: silence holds others up", got)
	}
	s := start()
	s.order(1, wire.OrderNext, 0, 300)
	if got := requests(s, 100, 1000); got != before+1+100 {
		t.Errorf("%d ops: what a thread with the same number owed is not told", got)
	}
}

// TestWhatNeverComesIsLeftOut, and what follows it is in order again.
func TestWhatNeverComesIsLeftOut(t *testing.T) {
	r := newResolver()
	s := &order{next: firstNumber, waiting: map[uint64][]op{}}
	for i := range uint64(mostWaiting) {
		if ops := r.tell(s, firstNumber+1+i, nil, op{}); ops != nil {
			t.Fatalf("%d wait, and one is told", i)
		}
	}
	if ops := r.tell(s, firstNumber+1+mostWaiting, nil, op{}); len(ops) != mostWaiting+1 || len(s.waiting) != 0 {
		t.Errorf("%d are told, %d wait", len(ops), len(s.waiting))
	}
	if ops := r.tell(s, s.next+1, nil, op{}); ops != nil {
		t.Error("order ends where one is missing")
	}
	if ops := r.tell(s, s.next, nil, op{}); len(ops) != 2 {
		t.Errorf("%d in order again", len(ops))
	}
}

// TestAThreadMayBeginWithWhatCooled: its first ORDER stands behind it.
func TestAThreadMayBeginWithWhatCooled(t *testing.T) {
	s := newTape()
	s.order(1, wire.OrderNext, 0, 2)
	s.served(1, 1, block1, wire.OutcomeMiss, wire.MissCold) // 2 and 3
	s.release(1, wire.OutcomeCooling, wire.FlagWouldRace)   // 4
	s.by(1).Link = block1
	s.add(wire.Event{Kind: wire.KindCooled, Link: block1, Granted: 4096}) // 5
	s.by(2)
	s.order(2, wire.OrderNext, 0, 5)
	s.order(1, wire.OrderNext, 4, 7)
	s.served(1, 2, block2, wire.OutcomeMiss, wire.MissCold) // 7 and 8
	s.served(2, 3, block1, wire.OutcomeHit, wire.MissNone)  // 6
	if c := compared(t, s); !c.Exact() || c.Requests != 3 {
		t.Errorf("%+v", c)
	}
}

// resolved returns how many ops records come to by the time when the last was read.
func resolved(s *tape) int {
	r := newResolver()
	n := 0
	for i := range s.records {
		for _, step := range r.take(&s.records[i], nil) {
			if step.code != opNone {
				n++
			}
		}
	}
	return n
}

// TestWhatWasAskedInVain is asked again: the card had no memory for the first, and the policy gave a block up for it.
func TestWhatWasAskedInVain(t *testing.T) {
	s := newTape()
	s.order(1, wire.OrderNext, 0, 2)
	s.served(1, 1, block1, wire.OutcomeMiss, wire.MissCold) // 2 and 3
	s.cached(1)                                             // 4
	s.order(1, wire.OrderDrain, 5, 6).Size = 1              // 5 is the plan
	s.add(wire.Event{Kind: wire.KindEvict, Link: block1, Granted: 4096, Reason: uint8(wire.EvictDrain)})
	s.by(1)
	s.order(1, wire.OrderAbort, 6, 7).Size = 5
	s.create(2, 8192)
	e := s.by(1)
	e.Outcome, e.Status, e.Link = wire.OutcomeFailed, -4, 0
	s.served(1, 3, 1<<32|2, wire.OutcomeMiss, wire.MissDrained) // 8 and 9
	c := compared(t, s)
	if !c.Exact() || c.Requests != 2 || c.Evictions != 1 {
		t.Errorf("%+v", c)
	}
	if r := s.replay(t, "futhark", 0); r.Evictions != 0 || r.Hits != 1 {
		t.Errorf("another replay follows: %+v", r)
	}
}

// TestChangesOfThePolicyAreFollowed where the replay is as recorded, and counted where not.
func TestChangesOfThePolicyAreFollowed(t *testing.T) {
	s := newTape()
	s.create(1, 3000)
	s.release(1, wire.OutcomeCached, 0)
	s.records = append(s.records, tapeLimit("policy=pow2,min_block=16"))
	s.create(2, 3000)
	r, err := Replay(s, ReplayOptions{Policy: "futhark", AsRecorded: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Hits != 0 || r.Evictions != 1 || r.InUse != 4096 || r.Switches != 0 {
		t.Errorf("as recorded: %+v", r)
	}
	if r := s.replay(t, "futhark", 0); r.Hits != 1 || r.InUse != 3000 || r.Switches != 1 {
		t.Errorf("under another configuration: %+v", r)
	}
}

func tapeLimit(text string) (r wire.Record) {
	r.Kind, r.Process, r.Time, r.Payload = wire.KindLimit, 1, 5000, []byte(text)
	return r
}

// TestRoundingStopsAtConstant, and what no part could have served gets none.
func TestRoundingStopsAtConstant(t *testing.T) {
	s := newTape()
	s.records[0].Cost = 5000
	s.create(1, 4500)
	s.create(2, 6000)
	if r := s.replay(t, "pow2", 0); r.InUse != 5000+8192 {
		t.Errorf("%d in use, want 5000 and 8192", r.InUse)
	}
	s.by(0).Flags = wire.FlagWhole
	if r := s.replay(t, "slab", 0); r.Slabs != 1 || r.DriverCreates != 2 {
		t.Errorf("%+v, want a slab and a block", r)
	}
}

// TestARefusalIsWhenTheProgramAskedForIt: not when the driver had taken back what the policy refused, which is what tells
// why.
func TestARefusalIsWhenTheProgramAskedForIt(t *testing.T) {
	s := newTape()
	s.order(1, wire.OrderNext, 0, 2)
	s.served(1, 1, block1, wire.OutcomeMiss, wire.MissCold)
	s.release(1, wire.OutcomeRefused, 0)
	asked := s.by(1)
	asked.Link = block1
	s.add(wire.Event{Kind: wire.KindEvict, Reason: uint8(wire.EvictLimit), Link: block1, Granted: 4096})
	s.by(1).Time = asked.Time + 1000
	r := newResolver()
	var ops []op
	for i := range s.records {
		ops = r.take(&s.records[i], ops)
	}
	ops = r.finish(ops)
	if last := ops[len(ops)-1]; last.code != opFree || last.time != moment(asked.Time) {
		t.Errorf("%+v, want a free at %d", ops, asked.Time)
	}
}
