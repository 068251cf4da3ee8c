package stats

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestBlockLife(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 10, 100, 128, 3)
	checkGauges(t, s.Snapshot(), 128, 0, 0)
	s.release(1, wire.OutcomeCooling)
	checkGauges(t, s.Snapshot(), 0, 0, 128)
	s.feed(wire.Event{Kind: wire.KindCooled, Link: 10, Granted: 128})
	checkGauges(t, s.Snapshot(), 0, 128, 0)

	s.hit(2, 10, 120, 128, 4)
	snapshot := s.Snapshot()
	checkGauges(t, snapshot, 128, 0, 0)
	if old := tagNamed(t, snapshot, "tag 3"); len(old.Free) != 0 || old.Cached != 0 || old.Live != 0 {
		t.Errorf("the old tag still has %+v", old)
	}
	s.release(2, wire.OutcomeCached)
	snapshot = s.Snapshot()
	free := tagNamed(t, snapshot, "tag 4").Free
	if len(free) != 1 || free[0] != (FreeClass{Size: 128, Blocks: 1, Oldest: s.time}) {
		t.Errorf("free list of the new tag is %+v", free)
	}
	s.evict(10, wire.EvictTrim)
	snapshot = s.Snapshot()
	checkGauges(t, snapshot, 0, 0, 0)
	got := snapshot.Totals
	if got.Hits != 1 || got.Misses != 1 || got.MissReasons[wire.MissCold] != 1 || got.Creates != 2 || got.Releases != 2 ||
		got.DriverCreates != 1 || got.DriverReleases != 1 || got.Evictions[wire.EvictTrim] != 1 ||
		got.DriverNS != 850 || got.HitNS != 100 || got.Saved.NS != 0 || got.BytesRequested != 220 ||
		got.BytesAllocated != 128 || got.PeakInUse != 128 || got.PeakReserved != 128 || snapshot.Unknown != 0 {
		t.Errorf("totals are %+v", got)
	}
}

func TestRefusedBlockGoesWithItsEviction(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 10, 100, 100, 0)
	s.release(1, wire.OutcomeRefused)
	if got := s.Snapshot().Totals.DriverReleases; got != 0 {
		t.Errorf("%d driver releases before the eviction", got)
	}
	s.evict(10, wire.EvictLimit)
	snapshot := s.Snapshot()
	checkGauges(t, snapshot, 0, 0, 0)
	if snapshot.Totals.DriverReleases != 1 || snapshot.Totals.Evictions[wire.EvictLimit] != 1 || snapshot.Unknown != 0 {
		t.Errorf("totals are %+v, unknown %d", snapshot.Totals, snapshot.Unknown)
	}
}

func TestPinnedParentStaysInUse(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 10, 4096, 4096, 1)
	s.feed(wire.Event{Kind: wire.KindCreate, Op: uint8(wire.MemorySubBuffer), Object: 2, Link: 1, Size: 1024, Tag: 2})
	snapshot := s.Snapshot()
	checkGauges(t, snapshot, 4096, 0, 0)
	if snapshot.Totals.DriverCreates != 1 || snapshot.Totals.Unpooled != 0 || snapshot.Totals.LiveBuffers != 2 {
		t.Errorf("a sub-buffer owns no memory: %+v", snapshot.Totals)
	}
	s.release(1, wire.OutcomePinned)
	snapshot = s.Snapshot()
	checkGauges(t, snapshot, 4096, 0, 0)
	if snapshot.Totals.LiveBuffers != 1 || snapshot.Totals.Releases != 1 {
		t.Errorf("after the parent's last release: %+v", snapshot.Totals)
	}
	s.release(2, wire.OutcomeDriver)
	s.release(1, wire.OutcomeCached)
	snapshot = s.Snapshot()
	checkGauges(t, snapshot, 0, 4096, 0)
	if got := snapshot.Totals; got.LiveBuffers != 0 || got.Releases != 2 || got.DriverReleases != 0 {
		t.Errorf("after the child's release: %+v", got)
	}
}

func TestReferencesKeepAnObject(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 10, 64, 64, 0)
	s.feed(wire.Event{Kind: wire.KindRetain, Object: 1, Granted: 2})
	s.feed(wire.Event{Kind: wire.KindRelease, Object: 1, Granted: 1})
	snapshot := s.Snapshot()
	if checkGauges(t, snapshot, 64, 0, 0); snapshot.Totals.Releases != 0 || snapshot.Unknown != 0 {
		t.Errorf("a release that leaves references was counted: %+v", snapshot.Totals)
	}
}

func TestKindsOfMemory(t *testing.T) {
	s := newStream(Options{})
	for i, op := range []wire.Memory{wire.MemoryBuffer, wire.MemoryImage, wire.MemorySVM, wire.MemoryExternal} {
		s.feed(wire.Event{Kind: wire.KindCreate, Op: uint8(op), Object: uint64(i + 1), Size: 10, Granted: 10})
	}
	s.feed(wire.Event{Kind: wire.KindCreate, Op: uint8(wire.MemoryImage), Object: 5, Link: 1, Size: 10, Granted: 10})
	s.feed(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeFailed, Status: -4, Size: 10})
	snapshot := s.Snapshot()
	checkGauges(t, snapshot, 30, 0, 0)
	if got := snapshot.Totals; got.Creates != 5 || got.Unpooled != 3 || got.DriverCreates != 3 || got.Failures != 1 {
		t.Errorf("totals are %+v", got)
	}
	for object := range uint64(5) {
		s.release(object+1, wire.OutcomeDriver)
	}
	snapshot = s.Snapshot()
	checkGauges(t, snapshot, 0, 0, 0)
	if snapshot.Totals.DriverReleases != 3 {
		t.Errorf("%d driver releases, want 3: the others own no memory", snapshot.Totals.DriverReleases)
	}
}

// Threads write to rings of their own: a hit may be seen before the release that made it possible.
func TestEventsOutOfOrder(t *testing.T) {
	t.Run("hit before release", func(t *testing.T) {
		s := newStream(Options{})
		s.miss(1, 10, 64, 64, 1)
		s.hit(2, 10, 64, 64, 2)
		snapshot := s.Snapshot()
		checkGauges(t, snapshot, 64, 0, 0)
		if snapshot.Totals.PeakInUse != 64 {
			t.Errorf("one block in use counts twice: peak %d", snapshot.Totals.PeakInUse)
		}
		s.release(1, wire.OutcomeCached)
		checkGauges(t, s.Snapshot(), 64, 0, 0)
		s.release(2, wire.OutcomeCached)
		snapshot = s.Snapshot()
		checkGauges(t, snapshot, 0, 64, 0)
		if snapshot.Totals.Releases != 2 || snapshot.Totals.LiveBuffers != 0 || snapshot.Unknown != 0 {
			t.Errorf("totals are %+v", snapshot.Totals)
		}
	})
	t.Run("both releases late", func(t *testing.T) {
		s := newStream(Options{})
		s.miss(1, 10, 64, 64, 1)
		s.hit(2, 10, 64, 64, 1)
		s.release(2, wire.OutcomeCached)
		s.release(1, wire.OutcomeCached)
		checkGauges(t, s.Snapshot(), 0, 64, 0)
	})
	t.Run("cooled before release", func(t *testing.T) {
		s := newStream(Options{})
		s.miss(1, 10, 64, 64, 1)
		s.feed(wire.Event{Kind: wire.KindCooled, Link: 10})
		s.release(1, wire.OutcomeCooling)
		checkGauges(t, s.Snapshot(), 0, 64, 0)
	})
	t.Run("evicted before release", func(t *testing.T) {
		s := newStream(Options{})
		s.miss(1, 10, 64, 64, 1)
		s.evict(10, wire.EvictLimit)
		s.release(1, wire.OutcomeCached)
		checkGauges(t, s.Snapshot(), 0, 0, 0)
	})
	t.Run("time does not go back", func(t *testing.T) {
		s := newStream(Options{})
		s.feed(wire.Event{Kind: wire.KindSync, Time: streamStart + 500})
		s.feed(wire.Event{Kind: wire.KindSync, Time: streamStart + 100})
		if got := s.Snapshot().Time; got != streamStart+500 {
			t.Errorf("time is %d", got)
		}
	})
}

func TestUnknownObjectsAreCounted(t *testing.T) {
	s := newStream(Options{})
	s.release(9, wire.OutcomeCached)
	s.evict(9, wire.EvictTrim)
	s.feed(wire.Event{Kind: wire.KindCooled, Link: 9})
	s.feed(wire.Event{Kind: wire.KindRetain, Object: 9, Granted: 2})
	s.feed(wire.Event{Kind: wire.KindUse, Object: 9})
	s.feed(wire.Event{Kind: wire.KindUse}) // the shim does not know the object: nothing to miss
	snapshot := s.Snapshot()
	if snapshot.Unknown != 5 || snapshot.Totals.Uses != 2 || snapshot.Totals.Releases != 0 {
		t.Errorf("unknown %d, totals %+v", snapshot.Unknown, snapshot.Totals)
	}
	checkGauges(t, snapshot, 0, 0, 0)
}

func TestObjectNumberUsedTwice(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 10, 64, 64, 1)
	s.miss(1, 11, 32, 32, 2)
	snapshot := s.Snapshot()
	checkGauges(t, snapshot, 32, 0, 0)
	if snapshot.Unknown != 1 || snapshot.Totals.LiveBuffers != 1 {
		t.Errorf("unknown %d, live %d", snapshot.Unknown, snapshot.Totals.LiveBuffers)
	}
}

func TestUses(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 10, 64, 64, 1)
	s.feed(wire.Event{Kind: wire.KindUse, Object: 1})
	s.feed(wire.Event{Kind: wire.KindSync})
	if got := s.Snapshot().Totals; got.Uses != 1 || got.Syncs != 1 {
		t.Errorf("uses %d, syncs %d", got.Uses, got.Syncs)
	}
	if used := s.heap.Process(1).Object(1).Used; used != streamStart+2000 {
		t.Errorf("last use at %d", used)
	}
}

func TestLargestCachedFollowsTheFreeList(t *testing.T) {
	s := newStream(Options{})
	for i, size := range []uint64{64, 256, 256, 128} {
		s.miss(uint64(i+1), uint64(i+1), size, size, 1)
		s.release(uint64(i+1), wire.OutcomeCached)
	}
	for _, step := range []struct{ block, want uint64 }{{0, 256}, {2, 256}, {3, 128}, {1, 128}, {4, 0}} {
		if step.block > 0 {
			s.evict(step.block, wire.EvictLimit)
		}
		if got := s.Snapshot().Totals.LargestCached; got != step.want {
			t.Errorf("after evicting block %d the largest is %d, want %d", step.block, got, step.want)
		}
	}
}

// TestReleaseAfterItsBlockIsSomebodyElses checks a number that two blocks had: the release of the first must not put
// the second into the free list.
func TestReleaseAfterItsBlockIsSomebodyElses(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 64, 64, 0)
	s.evict(1, wire.EvictDrain)
	s.miss(2, 1, 64, 64, 0)
	s.release(1, wire.OutcomeCached)
	checkGauges(t, s.Snapshot(), 64, 0, 0)
	s.release(2, wire.OutcomeCached)
	checkGauges(t, s.Snapshot(), 0, 64, 0)
	checkSums(t, s.Model)
}

// TestFailuresByStatus counts the first statuses apart, and all of them together.
func TestFailuresByStatus(t *testing.T) {
	m := New(Options{})
	for i := range 3 * StatusesMax {
		for range i + 1 {
			m.Apply(&wire.Record{Process: 1, Event: wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeFailed, Status: -int16(i + 1), Size: 10}})
		}
	}
	s := m.PublishSnapshot()
	const all = 3 * StatusesMax * (3*StatusesMax + 1) / 2
	for _, totals := range []Totals{s.Totals, s.Processes[0].Totals} {
		if totals.Failures != all {
			t.Errorf("%d failures, want %d", totals.Failures, all)
		}
		for i, f := range totals.FailedWith {
			if want := (StatusCount{int32(-i - 1), uint64(i + 1)}); f != want {
				t.Errorf("place %d: %+v, want %+v", i, f, want)
			}
		}
	}
}
