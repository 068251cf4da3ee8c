package stats

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestCarriedOverIsInGaugesOnly: what was there before is in the gauges, and counts as nothing that happened. Peaks start from it.
func TestCarriedOverIsInGaugesOnly(t *testing.T) {
	s := newStream(Options{})
	carry := func(e wire.Event) {
		e.Flags |= wire.FlagCarried
		e.Time, e.Cost, e.Duration = 5, 900, 1000
		s.feed(e)
	}
	carry(wire.Event{Kind: wire.KindSlab, Link: 90, Granted: 1000})
	carry(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeHit, Object: 1, Link: 1, Size: 700, Granted: 700, Tag: 4})
	carry(wire.Event{Kind: wire.KindRelease, Outcome: wire.OutcomeCached, Object: 1, Link: 1})
	carry(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeHit, Object: 2, Link: 2, Size: 50, Granted: 50, Tag: 4})
	carry(wire.Event{Kind: wire.KindRelease, Outcome: wire.OutcomeCooling, Flags: wire.FlagWouldRace, Object: 2, Link: 2})
	carry(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: 3, Link: 3, Size: 90, Granted: 100, Tag: 4})
	carry(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Flags: wire.FlagSubAlloc, Object: 4, Link: 4, Size: 200, Granted: 200, Tag: 5})
	carry(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeDriver, Object: 5, Size: 10, Granted: 10, Tag: 5})
	carry(wire.Event{Kind: wire.KindRelease, Outcome: wire.OutcomePinned, Object: 5})
	carry(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeFailed, Size: 10})
	s.feed(wire.Event{Kind: wire.KindSync, Time: s.time + 5*slotNS}) // what was there is there from the start
	got := s.Snapshot()
	want := Totals{
		Syncs: 1,
		InUse: 310, Held: 310, Requested: 300, Cached: 1500, Idle: 1500, Cooling: 50, Slabs: 1, SlabBytes: 1000, SlabFree: 800, LiveBuffers: 2,
		CachedBlocks: 2, LargestCached: 800, Squares: 700*700 + 800*800,
		PeakInUse: 310, PeakInUseTime: streamStart, PeakRequested: 300, PeakCached: 1500, PeakIdle: 1500, PeakCooling: 50, PeakSlabs: 1, PeakReserved: 1860,
	}
	if got.Totals != want || got.Processes[0].Totals != want || got.Unknown != 0 {
		t.Errorf("totals\n%+v\nwant\n%+v\nof the process %+v, %d unknown", got.Totals, want, got.Processes[0].Totals, got.Unknown)
	}
	tag := tagNamed(t, got, "tag 4")
	if tag.Live != 1 || tag.InUse != 100 || tag.Cached != 700 || tag.Cooling != 50 || tag.PeakInUse != 100 || tag.Creates+tag.Hits+tag.Misses != 0 {
		t.Errorf("row %+v", tag)
	}
	if tag.Free[0].Oldest != 5 {
		t.Errorf("free since %d, want 5", tag.Free[0].Oldest)
	}
	for _, share := range got.Buckets {
		if share.Creates+share.Hits+share.Misses != 0 {
			t.Errorf("bucket %+v", share)
		}
	}
	s.AdvanceTime(s.time + 6*slotNS)
	if w := s.Snapshot().Window; w.Events != 1 || w.Creates+w.DriverCreates+w.DriverNanos+w.Releases != 0 {
		t.Errorf("in the last second %+v", w)
	}
	s.hit(6, 1, 700, 700, 4)
	if now := s.Snapshot().Totals; now.Hits != 1 || now.Creates != 1 || now.PeakInUse != 1010 || now.Saved.NS != 0 {
		t.Errorf("after a hit %+v", now)
	}
}

// TestCarriedAgain: a carried-over create of a known object replaces what was known and counts as no unknown record.
func TestCarriedAgain(t *testing.T) {
	s := newStream(Options{})
	for _, size := range []uint64{0, 100, 300} {
		s.feed(wire.Event{Kind: wire.KindCreate, Flags: wire.FlagCarried, Object: 1, Size: size, Granted: size, Tag: 4})
		s.feed(wire.Event{Kind: wire.KindSync})
	}
	got := s.Snapshot()
	if u := &got.Totals; u.InUse != 300 || u.LiveBuffers != 1 || u.PeakInUse != 300 || u.Creates != 0 || got.Unknown != 0 {
		t.Errorf("in use %d, peak %d, live %d, creates %d, unknown %d", u.InUse, u.PeakInUse, u.LiveBuffers, u.Creates, got.Unknown)
	}
	if tag := tagNamed(t, got, "tag 4"); tag.Live != 1 || tag.InUse != 300 {
		t.Errorf("row %+v", tag)
	}
}

// TestCarriedOfTwoProcesses: the peak of each starts from what it had.
func TestCarriedOfTwoProcesses(t *testing.T) {
	s := newStream(Options{})
	for s.process = 1; s.process <= 2; s.process++ {
		size := uint64(s.process) * 100
		s.feed(wire.Event{Kind: wire.KindCreate, Flags: wire.FlagCarried, Object: 1, Size: size, Granted: size})
	}
	s.process = 1
	s.miss(2, 2, 10, 10, 0)
	got := s.Snapshot()
	for i, want := range []uint64{110, 200} {
		if peak := got.Processes[i].Tags[0].PeakInUse; peak != want {
			t.Errorf("peak of process %d: %d, want %d", i+1, peak, want)
		}
	}
	if peak := got.Tags[0].PeakInUse; peak != 310 {
		t.Errorf("peak of both: %d, want 310", peak)
	}
}
