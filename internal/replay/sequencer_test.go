package replay

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Numbers of the first blocks that a policy makes.
const (
	block1 = 1
	block2 = 2
)

// twoThreads is a recording in which thread 2 says before thread 1 what was decided after: it found the block that
// thread 1 had let go.
func twoThreads(numbers bool) *labtest.Tape {
	s := labtest.NewTape()
	if numbers {
		s.SetThread(1).AddOrder(wire.OrderNext, 0, 2)
	}
	s.SetThread(1).AddServedCreate(1, block1, wire.OutcomeMiss, wire.MissCold) // 2 and 3
	if numbers {
		s.SetThread(2).AddOrder(wire.OrderNext, 0, 5)
	}
	s.SetThread(2).AddServedCreate(2, block1, wire.OutcomeHit, wire.MissNone) // 5
	s.SetThread(1).AddRelease(1, wire.OutcomeCached)                          // 4
	if numbers {
		s.SetThread(1).AddOrder(wire.OrderNext, 4, 7)
		s.SetThread(2).AddOrder(wire.OrderDrop, 5, 6)
	}
	s.SetThread(1).AddServedCreate(3, block2, wire.OutcomeMiss, wire.MissCold) // 7 and 8
	return s
}

func compared(t *testing.T, s *labtest.Tape) *Comparison {
	t.Helper()
	c, err := CompareDecisions(s, Options{Policy: "futhark"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNumbersTellTheOrder: the numbers of decisions give the order in which the policy was asked, where times do not.
func TestNumbersTellTheOrder(t *testing.T) {
	if c := compared(t, twoThreads(true)); !c.IsExact() || c.Requests != 3 || c.First != "" {
		t.Errorf("%+v", c)
	}
	if c := compared(t, twoThreads(false)); c.IsExact() {
		t.Errorf("without numbers the hit is found: %+v", c)
	}
}

// TestLostEventsEndTheOrder: after lost events numbers are not used, and no decision waits forever.
func TestLostEventsEndTheOrder(t *testing.T) {
	s := labtest.NewTape()
	s.SetThread(1).AddOrder(wire.OrderNext, 0, 2)
	s.SetThread(1).AddServedCreate(1, block1, wire.OutcomeMiss, wire.MissCold)
	s.SetThread(1).AddOrder(wire.OrderNext, 3, 9) // what is between is lost
	s.SetThread(1).AddRelease(1, wire.OutcomeCached)
	s.SetThread(0).AddLost(5)
	s.SetThread(1).AddServedCreate(2, block1, wire.OutcomeHit, wire.MissNone)
	r := replay(t, s, "futhark", 0)
	if r.Requests != 2 || r.Hits != 1 || r.Misses != 1 || r.Lost != 5 {
		t.Errorf("%+v", r)
	}
}

// TestAPartOfARunHasNoOrder: a time range lacks the first decisions of its threads, so numbers are not used.
func TestAPartOfARunHasNoOrder(t *testing.T) {
	s := labtest.NewTape()
	s.SetThread(1).AddOrder(wire.OrderNext, 70, 99)
	s.SetThread(1).AddServedCreate(1, block1, wire.OutcomeMiss, wire.MissCold)
	s.SetThread(2).AddOrder(wire.OrderNext, 0, 105)
	s.SetThread(2).AddRelease(1, wire.OutcomeCached)
	if r := replay(t, s, "futhark", 0); r.Requests != 1 || r.Cached != 4096 {
		t.Errorf("%+v", r)
	}
}

// oneCools is a recording of thread 1: buffer 1 is released, and its block, which the latest command still uses, cools.
func oneCools() *labtest.Tape {
	s := labtest.NewTape()
	s.SetThread(1).AddOrder(wire.OrderNext, 0, 2)
	s.SetThread(1).AddServedCreate(1, block1, wire.OutcomeMiss, wire.MissCold)   // 2 and 3
	s.SetThread(1).AddRelease(1, wire.OutcomeCooling).Flags = wire.FlagWouldRace // 4
	return s
}

// TestCooledBeforeItsNumber: the number of a COOLED record's decision may come later.
func TestCooledBeforeItsNumber(t *testing.T) {
	s := oneCools()
	s.SetThread(1).AddCooled(block1, 4096) // 7
	s.SetThread(2).AddOrder(wire.OrderNext, 0, 5)
	s.SetThread(2).AddServedCreate(2, block2, wire.OutcomeMiss, wire.MissCooling) // 5 and 6
	s.SetThread(1).AddOrder(wire.OrderNext, 4, 7)
	s.SetThread(1).AddServedCreate(3, block1, wire.OutcomeHit, wire.MissNone) // 8
	if c := compared(t, s); !c.IsExact() || c.Requests != 3 {
		t.Errorf("%+v", c)
	}
}

// TestSilentThreadBlocksNoOther: a thread that stays silent after its block has cooled, or whose number another thread
// gets later, does not block others forever.
func TestSilentThreadBlocksNoOther(t *testing.T) {
	start := func() *labtest.Tape {
		s := oneCools()
		s.SetThread(1).AddCooled(block1, 4096) // 5
		return s
	}
	requests := func(s *labtest.Tape, n int, ns uint64) (ops int) {
		s.SetThread(2).AddOrder(wire.OrderNext, 0, 6)
		for i := range uint64(n) {
			s.SetThread(2).AddServedCreate(2+i, 2+i, wire.OutcomeMiss, wire.MissCold).Time += i * ns
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
	s.SetThread(1).AddOrder(wire.OrderNext, 0, 300)
	if got := requests(s, 100, 1000); got != before+1+100 {
		t.Errorf("%d ops: the deferred cooling of a thread with the same number is missing", got)
	}
}

// TestMissingDecisionIsLeftOut: a decision that is never recorded is left out, and later ones are in order again.
func TestMissingDecisionIsLeftOut(t *testing.T) {
	r := newResolver()
	s := &sequencer{next: firstNumber, pending: map[uint64][]op{}}
	for i := range uint64(mostWaiting) {
		if ops := r.emitInOrder(s, firstNumber+1+i, nil, op{}); ops != nil {
			t.Fatalf("%d wait, and one is emitted", i)
		}
	}
	if ops := r.emitInOrder(s, firstNumber+1+mostWaiting, nil, op{}); len(ops) != mostWaiting+1 || len(s.pending) != 0 {
		t.Errorf("%d are emitted, %d wait", len(ops), len(s.pending))
	}
	if ops := r.emitInOrder(s, s.next+1, nil, op{}); ops != nil {
		t.Error("order ends where one is missing")
	}
	if ops := r.emitInOrder(s, s.next, nil, op{}); len(ops) != 2 {
		t.Errorf("%d in order again", len(ops))
	}
}

// TestThreadBeginsWithCooled: a thread's first record may be a COOLED record, before its first ORDER record.
func TestThreadBeginsWithCooled(t *testing.T) {
	s := oneCools()
	s.SetThread(2).AddCooled(block1, 4096) // 5
	s.SetThread(2).AddOrder(wire.OrderNext, 0, 5)
	s.SetThread(1).AddOrder(wire.OrderNext, 4, 7)
	s.SetThread(1).AddServedCreate(2, block2, wire.OutcomeMiss, wire.MissCold) // 7 and 8
	s.SetThread(2).AddServedCreate(3, block1, wire.OutcomeHit, wire.MissNone)  // 6
	if c := compared(t, s); !c.IsExact() || c.Requests != 3 {
		t.Errorf("%+v", c)
	}
}

// resolved returns how many steps the records have become when the last one was read.
func resolved(s *labtest.Tape) int {
	r := newResolver()
	n := 0
	for i := range s.Records {
		for _, step := range r.appendStepsOf(&s.Records[i], nil) {
			if step.code != opNone {
				n++
			}
		}
	}
	return n
}

// TestFailedDecisionIsRepeated: the driver had no memory for the first decision, and the policy evicted a block for it.
func TestFailedDecisionIsRepeated(t *testing.T) {
	s := labtest.NewTape()
	s.SetThread(1).AddOrder(wire.OrderNext, 0, 2)
	s.SetThread(1).AddServedCreate(1, block1, wire.OutcomeMiss, wire.MissCold) // 2 and 3
	s.SetThread(1).AddRelease(1, wire.OutcomeCached)                           // 4
	s.SetThread(1).AddOrder(wire.OrderDrain, 5, 6).Size = 1                    // 5 is the plan
	s.SetThread(1).AddEvict(block1, 4096, wire.EvictDrain)
	s.SetThread(1).AddOrder(wire.OrderAbort, 6, 7).Size = 5
	e := s.SetThread(1).AddCreate(2, 8192)
	e.Outcome, e.Status, e.Link = wire.OutcomeFailed, -4, 0
	s.SetThread(1).AddServedCreate(3, 1<<32|2, wire.OutcomeMiss, wire.MissDrained) // 8 and 9
	c := compared(t, s)
	if !c.IsExact() || c.Requests != 2 || c.Evictions != 1 {
		t.Errorf("%+v", c)
	}
	if r := replay(t, s, "futhark", 0); r.Evictions != 0 || r.Hits != 1 {
		t.Errorf("another replay follows: %+v", r)
	}
}

// TestReturnedRange: a returned range counts for the size of the next slab, and its bytes are free again.
func TestReturnedRange(t *testing.T) {
	const slab = 1
	s := labtest.NewTape()
	part := func(object, block uint64, outcome wire.Outcome, reason wire.Miss) {
		s.SetThread(1).AddServedCreate(object, block, outcome, reason).Flags |= wire.FlagSubAlloc
	}
	s.SetThread(1).AddOrder(wire.OrderNext, 0, 2)
	s.SetThread(1).AddEvent(wire.Event{Kind: wire.KindSlab, Link: slab, Granted: 64 << 10})
	part(1, 2, wire.OutcomeMiss, wire.MissCold)             // 2, 3 and 4
	back := s.SetThread(1).AddOrder(wire.OrderReturn, 6, 7) // 5 is the plan, 6 says that it is in use
	back.Size, back.Granted = 5, 6
	s.SetThread(1).AddServedCreate(2, 1<<32|3, wire.OutcomeMiss, wire.MissCold) // 8 and 9, after a plan without ranges
	part(3, 4, wire.OutcomeHit, wire.MissNone)                                  // 10 and 11
	c, err := CompareDecisions(s, Options{Policy: "slab"})
	if err != nil {
		t.Fatal(err)
	}
	if !c.IsExact() || c.Requests != 3 {
		t.Errorf("%+v", c)
	}
}

// TestChangesOfThePolicyAreFollowed where the replay is as recorded; elsewhere they are counted.
func TestChangesOfThePolicyAreFollowed(t *testing.T) {
	s := labtest.NewTape()
	s.AddCreate(1, 3000)
	s.AddRelease(1, wire.OutcomeCached)
	s.AddLimit("policy=pow2,min_block=16", 0)
	s.AddCreate(2, 3000)
	r, err := Replay(s, Options{Policy: "futhark", AsRecorded: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Hits != 0 || r.Evictions != 1 || r.InUse != 4096 || r.Switches != 0 {
		t.Errorf("as recorded: %+v", r)
	}
	if r := replay(t, s, "futhark", 0); r.Hits != 1 || r.InUse != 3000 || r.Switches != 1 {
		t.Errorf("under another configuration: %+v", r)
	}
}

// TestRoundingStopsAtConstant, and requests that no sub-allocation could have served get none.
func TestRoundingStopsAtConstant(t *testing.T) {
	s := labtest.NewTape()
	s.Records[0].Cost = 5000
	s.AddCreate(1, 4500)
	second := s.AddCreate(2, 6000)
	if r := replay(t, s, "pow2", 0); r.InUse != 5000+8192 {
		t.Errorf("%d in use, want 5000 and 8192", r.InUse)
	}
	second.Flags = wire.FlagWhole
	if r := replay(t, s, "slab", 0); r.Slabs != 1 || r.DriverCreates != 2 {
		t.Errorf("%+v, want a slab and a block", r)
	}
}

// TestRefusalAtTheTimeOfTheRelease: a refused block is freed when the program released it, not when the eviction was
// recorded, which gives the reason.
func TestRefusalAtTheTimeOfTheRelease(t *testing.T) {
	s := labtest.NewTape()
	s.SetThread(1).AddOrder(wire.OrderNext, 0, 2)
	s.SetThread(1).AddServedCreate(1, block1, wire.OutcomeMiss, wire.MissCold)
	asked := s.SetThread(1).AddRelease(1, wire.OutcomeRefused).Time
	s.SetThread(1).AddEvict(block1, 4096, wire.EvictLimit)
	r := newResolver()
	var ops []op
	for i := range s.Records {
		ops = r.appendStepsOf(&s.Records[i], ops)
	}
	ops = r.emitAllPendingSteps(ops)
	if last := ops[len(ops)-1]; last.code != opFree || last.time != toPolicyTime(asked) {
		t.Errorf("%+v, want a free at %d", ops, asked)
	}
}
