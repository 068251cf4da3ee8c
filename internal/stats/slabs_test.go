package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func (s *stream) slab(number, size uint64) {
	s.feed(wire.Event{Kind: wire.KindSlab, Link: number, Granted: size, Cost: 700, Duration: 700})
}

func (s *stream) part(outcome wire.Outcome, object, block, size uint64) {
	s.feed(wire.Event{
		Kind: wire.KindCreate, Outcome: outcome, Flags: wire.FlagSubAlloc, Object: object, Link: block, Size: size, Granted: size,
		Cost: 30, Duration: 40, Tag: 3,
	})
}

func (s *stream) releasePart(object uint64, outcome wire.Outcome) {
	s.feed(wire.Event{Kind: wire.KindRelease, Flags: wire.FlagSubAlloc, Object: object, Outcome: outcome})
}

func (s *stream) gauge(free, largest, ranges uint64, squares float64) {
	s.feed(wire.Event{Kind: wire.KindGauge, Granted: free, Size: largest, Object: ranges, Link: math.Float64bits(squares)})
}

func TestSlabsAndTheirParts(t *testing.T) {
	s := newStream(Options{})
	s.slab(1, 1000)
	checkGauges(t, s.Snapshot(), 0, 1000, 0)
	s.part(wire.OutcomeMiss, 1, 2, 300)
	s.part(wire.OutcomeHit, 2, 3, 200)
	checkGauges(t, s.Snapshot(), 500, 500, 0)
	s.releasePart(1, wire.OutcomeCooling)
	checkGauges(t, s.Snapshot(), 200, 500, 300)
	s.gauge(500, 500, 1, 250_000)
	s.feed(wire.Event{Kind: wire.KindCooled, Flags: wire.FlagSubAlloc, Link: 2, Granted: 300})
	s.releasePart(2, wire.OutcomeCached)
	checkGauges(t, s.Snapshot(), 0, 1000, 0)
	got := s.Snapshot()
	want := Tag{
		ID: slabsID, Name: callsite.Slabs, Slabs: true, Cached: 1000, CachedCount: 1, Free: []FreeClass{{Size: 1000, Blocks: 1}},
	}
	if diff := cmp.Diff(want, *tagNamed(t, got, callsite.Slabs)); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	t1 := &got.Totals
	if t1.DriverCreates != 1 || t1.BytesAllocated != 1000 || t1.BytesRequested != 500 || t1.DriverNS != 700 || t1.Hits != 1 || t1.Misses != 1 || t1.HitsWithoutDriverCall() != 0 {
		t.Errorf("totals %+v", t1)
	}
	if t1.Slabs != 1 || t1.PeakSlabs != 1 || t1.SlabBytes != 1000 || t1.PeakReserved != 1000 || t1.PeakCached != 1000 || t1.PeakCooling != 300 || t1.PeakRequested != 500 {
		t.Errorf("totals %+v", t1)
	}
	s.evict(1, wire.EvictTrim)
	got = s.Snapshot()
	checkGauges(t, got, 0, 0, 0)
	if got.Totals.DriverReleases != 1 || got.Totals.Slabs != 0 || got.Unknown != 0 {
		t.Errorf("totals %+v, unknown %d", got.Totals, got.Unknown)
	}
	if len(got.Tags) != 1 {
		t.Errorf("tags %+v", got.Tags)
	}
}

// TestSlabEventsLateOrLost checks that whatever comes late or never, nothing stays behind.
func TestSlabEventsLateOrLost(t *testing.T) {
	for name, feed := range map[string]func(*stream){
		"part before its slab": func(s *stream) {
			s.part(wire.OutcomeMiss, 1, 2, 300)
			s.slab(1, 1000)
			s.releasePart(1, wire.OutcomeCached)
			s.evict(1, wire.EvictTrim)
		},
		"slab lost": func(s *stream) {
			s.part(wire.OutcomeMiss, 1, 2, 300)
			s.releasePart(1, wire.OutcomeCooling)
			s.feed(wire.Event{Kind: wire.KindCooled, Flags: wire.FlagSubAlloc, Link: 2, Granted: 300})
			s.evict(1, wire.EvictTrim)
		},
		"cooled before its release": func(s *stream) {
			s.slab(1, 1000)
			s.part(wire.OutcomeMiss, 1, 2, 300)
			s.feed(wire.Event{Kind: wire.KindCooled, Flags: wire.FlagSubAlloc, Link: 2, Granted: 300})
			s.releasePart(1, wire.OutcomeCooling)
			s.evict(1, wire.EvictTrim)
		},
		"release after the slab went": func(s *stream) {
			s.slab(1, 1000)
			s.part(wire.OutcomeMiss, 1, 2, 300)
			s.evict(1, wire.EvictTrim)
			s.releasePart(1, wire.OutcomeCached)
		},
		"a part that never cools": func(s *stream) {
			s.slab(1, 1000)
			s.part(wire.OutcomeMiss, 1, 2, 300)
			s.slab(4, 500)
			s.part(wire.OutcomeHit, 2, 3, 300)
			s.releasePart(1, wire.OutcomeCooling)
			s.releasePart(2, wire.OutcomeCached)
			s.evict(4, wire.EvictTrim)
			checkGauges(t, s.Snapshot(), 0, 700, 300)
			s.evict(1, wire.EvictTrim)
			s.feed(wire.Event{Kind: wire.KindCooled, Flags: wire.FlagSubAlloc, Link: 2, Granted: 300})
		},
		"parts evicted one by one": func(s *stream) {
			s.slab(1, 1000)
			s.part(wire.OutcomeMiss, 1, 2, 300)
			s.part(wire.OutcomeHit, 2, 3, 300)
			s.releasePart(1, wire.OutcomeCooling)
			s.releasePart(2, wire.OutcomeRefused)
			s.feed(wire.Event{Kind: wire.KindEvict, Flags: wire.FlagSubAlloc, Link: 2, Granted: 300})
			s.evict(3, wire.EvictState)
			s.evict(1, wire.EvictContext)
		},
	} {
		s := newStream(Options{})
		feed(s)
		got := s.Snapshot()
		checkGauges(t, got, 0, 0, 0)
		checkSums(t, s.Model)
		slabs := got.Totals.Evictions[wire.EvictTrim] + got.Totals.Evictions[wire.EvictContext]
		if got.Totals.DriverReleases != slabs || slabs == 0 || got.Totals.Slabs != 0 {
			t.Errorf("%s: totals %+v", name, got.Totals)
		}
		if t.Failed() {
			t.Fatalf("in %q", name)
		}
	}
}

func TestFragmentationOfBlocksAndSlabs(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 400, 400, 0)
	s.release(1, wire.OutcomeCached)
	s.slab(2, 1000)
	check := func(largest, blocks uint64, squares float64) {
		t.Helper()
		got := s.Snapshot().Totals
		if got.LargestCached != largest || got.CachedBlocks != blocks || got.Squares != squares {
			t.Errorf("largest %d, blocks %d, squares %g; want %d, %d, %g",
				got.LargestCached, got.CachedBlocks, got.Squares, largest, blocks, squares)
		}
	}
	check(1000, 2, 1_160_000) // no report: one range
	s.part(wire.OutcomeMiss, 1, 3, 200)
	s.gauge(800, 500, 2, 500*500+300*300)
	check(500, 3, 160_000+340_000)
	s.part(wire.OutcomeHit, 2, 4, 500) // the report is out of date
	check(400, 3, 160_000+300*300)
	s.gauge(300, 300, 1, math.NaN())
	check(400, 2, 160_000)
	s.process = 2 // free memory of another process adds up, but serves only that one
	s.slab(1, 600)
	check(600, 3, 160_000+360_000)
	// F = 400 + 300 + 600
	got := s.Snapshot().Totals
	if got.Cached != 1300 || got.ExternalFragmentation() != float64(700)/1300 || got.QuadraticFragmentation() != 1-520_000./1300/1300 ||
		got.RootFragmentation() != 1-math.Sqrt(520_000)/1300 {
		t.Errorf("fragmentation %g %g %g of %d", got.ExternalFragmentation(), got.QuadraticFragmentation(), got.RootFragmentation(), got.Cached)
	}
}

func TestSlabsOfAProcessThatEnded(t *testing.T) {
	s := newStream(Options{})
	s.slab(1, 1000)
	s.part(wire.OutcomeMiss, 1, 2, 300)
	s.gauge(700, 400, 2, 400*400+300*300)
	s.NoteProcessEnded(1, End{Status: 0, Signal: 0}, s.time)
	checkGauges(t, s.Snapshot(), 300, 700, 0)
	s.process = 2
	s.slab(1, 64)
	snapshot := s.Snapshot()
	checkGauges(t, snapshot, 0, 64, 0)
	first := snapshot.Processes[0]
	if first.Totals.Cached != 700 || first.Totals.LargestCached != 400 || first.Totals.Slabs != 1 || first.Totals.CachedBlocks != 2 {
		t.Errorf("the first process shows %+v", first.Totals)
	}
	row := tagNamed(t, &Snapshot{Tags: first.Tags}, callsite.Slabs)
	if row.Cached != 700 || len(row.Free) != 1 || row.Free[0].Size != 1000 {
		t.Errorf("its slabs show %+v", row)
	}
}

// TestBooksSurviveDisorder swaps neighbours and loses events: gauges may then be wrong, but never differ from what is
// known of objects and blocks.
func TestBooksSurviveDisorder(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 2))
		records := slices.DeleteFunc(simulate(seed, 400), func(wire.Record) bool { return rng.IntN(30) == 0 })
		for i := range records[:len(records)-5] {
			j := i + rng.IntN(5)
			records[i], records[j] = records[j], records[i]
		}
		m, end := New(Options{}), uint64(0)
		for i := range records {
			m.Apply(&records[i])
			end = max(end, records[i].Time)
			if i%11 == 0 {
				checkSums(t, m)
			}
		}
		checkSane(t, m.Snapshot())
		m.NoteProcessEnded(1, End{Status: 0, Signal: 0}, end)
		m.Apply(&wire.Record{Event: wire.Event{Kind: wire.KindThread}, Process: 3})
		m.AdvanceTime(end + 10*slotNS)
		checkSums(t, m)
	}
}

func TestSteadyStateOfSlabsAllocatesNothing(t *testing.T) {
	s := newStream(Options{})
	s.slab(1, 1<<20)
	n := uint64(1)
	round := func() {
		n++
		s.part(wire.OutcomeHit, n, n, 1000+n%7)
		s.releasePart(n, wire.OutcomeCooling)
		s.gauge(1<<20-1000, 1<<19, 2, 1<<39)
		s.feed(wire.Event{Kind: wire.KindCooled, Flags: wire.FlagSubAlloc, Link: n, Granted: 1000})
	}
	for range 1000 {
		round()
	}
	if got := testing.AllocsPerRun(10_000, round); got != 0 {
		t.Errorf("%g allocations per part", got)
	}
	checkGauges(t, s.Snapshot(), 0, 1<<20, 0)
}
