package stats

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestAlternative: what the alternative of an experiment served is neither hit nor miss of the present configuration, in no table,
// but the driver's creates count.
func TestAlternative(t *testing.T) {
	s := newStream(Options{Policy: "futhark"})
	s.feed(wire.Event{Kind: wire.KindProcess, Object: 1001, Link: 1}, []byte("/bin/tiny\x00")...)
	s.feed(wire.Event{Kind: wire.KindTag, Tag: 1})
	s.miss(1, 1, 64, 64, 1)
	s.release(1, wire.OutcomeCached)
	s.hit(2, 1, 64, 64, 1)
	const block = 1<<31 | 1
	arm := func(object uint64, e wire.Event) {
		e.Kind, e.Object, e.Link, e.Size, e.Granted, e.Tag, e.Flags = wire.KindCreate, object, block+object, 64, 64, 1, wire.FlagArm
		s.feed(e)
	}
	arm(3, wire.Event{Outcome: wire.OutcomeMiss, Reason: uint8(wire.MissPolicy), Duration: 1000, Cost: 800})
	arm(4, wire.Event{Outcome: wire.OutcomeHit, Duration: 100})
	shot := s.Snapshot()
	got := &shot.Totals
	if got.Hits != 1 || got.Misses != 1 || got.Alternative != 2 || got.Creates != 4 || got.DriverCreates != 2 || got.SteadyRequests != 1 ||
		got.MissReasons[wire.MissPolicy] != 0 || got.Unpooled != 0 || got.InUse != 192 {
		t.Errorf("%+v", *got)
	}
	if len(shot.Misses) != 1 || shot.Tags[0].Hits != 1 || shot.Tags[0].Misses != 1 || shot.Tags[0].Creates != 4 {
		t.Errorf("%+v, %+v", shot.Misses, shot.Tags[0])
	}
	s.AdvanceTime(streamStart + 500_000_000)
	shot = s.Snapshot()
	var late Rates // what the dashboard's hit rates are of
	for _, sample := range append(shot.Minute, shot.History...) {
		late.Hits, late.Misses, late.Creates = late.Hits+sample.Hits, late.Misses+sample.Misses, late.Creates+sample.Creates
	}
	if w := &shot.Window; late.Hits != 2 || late.Misses != 2 || late.Creates != 8 || w.Hits != 1 || w.Misses != 1 || w.Creates != 4 {
		t.Errorf("minute and history %+v, last second %+v", late, *w)
	}
	s.feed(wire.Event{Kind: wire.KindLimit, Object: 1}, []byte("arms=none,request=2")...)
	s.feed(wire.Event{Kind: wire.KindLimit, Object: 2}, []byte("arm=1,request=3")...)
	if shot := s.Snapshot(); shot.Policy != "futhark" || len(shot.Marks) != 0 {
		t.Errorf("policy %s, marks %+v", shot.Policy, shot.Marks)
	}
}
