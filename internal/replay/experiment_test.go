package replay

import (
	"fmt"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// experiment does what the core does with a message about an experiment. A refused one has no number.
func (c *crew) experiment(w *worker) {
	var evictions []allocator.Eviction
	var text string
	switch n := c.rng.IntN(12); {
	case n == 0:
		text = fmt.Sprintf("arms=off,request=%d", c.policy.RequestCount())
		evictions = c.policy.EndExperiment(0, nil)
	case n < 3:
		what := []string{"none", "pow2", "pow2,min_block=16384", "futhark-2018", "mantissa,max_cached_bytes=20000"}[c.rng.IntN(5)]
		next, err := newRecordedPool(what)
		if err != nil {
			c.t.Fatal(err)
		}
		text = fmt.Sprintf("arms=%s,request=%d", what, c.policy.RequestCount())
		evictions = c.policy.BeginExperiment(next, 0, nil)
	case n == 3:
		text = fmt.Sprintf("arms=+max_cached_bytes=9000,request=%d", c.policy.RequestCount())
		var err error
		if evictions, err = c.policy.SetAlternativeLimit("max_cached_bytes", "9000", 0, nil); err != nil {
			return
		}
	default:
		arm, from := c.rng.IntN(2), c.policy.RequestCount()+1+c.rng.Uint64N(30)
		text = fmt.Sprintf("arm=%d,request=%d", arm, from)
		if c.policy.LetArmDecideFrom(arm, from) != nil {
			return
		}
	}
	c.decided(w)
	w.events = append(w.events, wire.Record{Event: wire.Event{Kind: wire.KindLimit, Size: uint64(len(text))}, Payload: []byte(text)})
	c.evicted(w, evictions)
}

// TestExperimentsReplayExactly: in whatever order threads record, the replay lets the same arm decide on each request, with the
// same evictions. Another policy serves the same requests, whatever the arms did.
func TestExperimentsReplayExactly(t *testing.T) {
	alternatives := 0
	for seed := range uint64(16) {
		c := newCrew(t, seed, 1+int(seed%6))
		c.experiments = true
		for range 4000 {
			c.step()
		}
		for i := range c.threads {
			if c.threads[i].making != nil {
				c.made(&c.threads[i])
			}
		}
		c.readAll()
		compared, err := CompareDecisions(c.tape, Options{Policy: "futhark"})
		if err != nil {
			t.Fatal(err)
		}
		if !compared.IsExact() || compared.Requests != c.object || compared.Evictions == 0 {
			t.Fatalf("seed %d: %+v", seed, compared)
		}
		for block := range c.sizes {
			alternatives += block.Arm()
		}
		if other := replay(t, c.tape, "pow2", 0); other.Hits+other.Misses != c.object {
			t.Errorf("seed %d: another policy serves %d requests, want %d", seed, other.Hits+other.Misses, c.object)
		}
	}
	if alternatives < 100 {
		t.Errorf("alternatives made %d blocks", alternatives)
	}
}

// TestARetryIsNoNewRequest: the driver refused the plan for the second request, which was planned again. The alternative decides
// on the third.
func TestARetryIsNoNewRequest(t *testing.T) {
	s := labtest.NewTape()
	s.SetThread(9).AddOrder(wire.OrderNext, 0, 2)
	s.SetThread(9).AddLimit("arms=none,request=0", 0) // 2
	s.SetThread(9).AddLimit("arm=1,request=3", 0)     // 3
	s.SetThread(1).AddOrder(wire.OrderNext, 0, 4)
	s.SetThread(1).AddServedCreate(1, block1, wire.OutcomeMiss, wire.MissCold)                                    // 4 and 5
	s.SetThread(1).AddOrder(wire.OrderAbort, 6, 7).Size = 6                                                       // 6 is the plan
	s.SetThread(1).AddServedCreate(2, 1<<32|2, wire.OutcomeMiss, wire.MissCold)                                   // 8 and 9
	s.SetThread(1).AddServedCreate(3, allocator.ArmBit|1, wire.OutcomeMiss, wire.MissPolicy).Flags = wire.FlagArm // 10 and 11
	if c := compared(t, s); !c.IsExact() || c.Requests != 3 || c.First != "" {
		t.Errorf("%+v", c)
	}
}
