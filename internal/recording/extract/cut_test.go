package extract_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// read has a name that variables called records do not hide.
var read = records.ReadAll

// fold returns the snapshot before each record from one on, and after the last.
func fold(records []wire.Record, started uint64, from int) []*stats.Snapshot {
	m := stats.New(stats.Options{Started: started})
	var shots []*stats.Snapshot
	for i := range records {
		if i >= from {
			shots = append(shots, m.Snapshot())
		}
		m.Apply(&records[i])
	}
	return append(shots, m.Snapshot())
}

// gauges are what a part has in common with the whole at any time: it has no word of processes that were gone before it.
func gauges(s *stats.Snapshot, gone map[uint32]bool) string {
	text := gaugesOf(&s.Totals)
	for _, p := range s.Processes {
		if gone[p.Number] {
			continue
		}
		text += fmt.Sprintf("\nprocess %d: %s", p.Number, gaugesOf(&p.Totals))
	}
	var tags []string
	for i := range s.Tags {
		if tag := &s.Tags[i]; tag.Live+tag.InUse+tag.Cached+tag.Cooling > 0 {
			tags = append(tags, fmt.Sprintf("%s: %d live, %d in use, %d requested, %d + %d cached, %d cooling, free %v",
				tag.Name, tag.Live, tag.InUse, tag.Requested, tag.Cached, tag.CachedCount, tag.Cooling, tag.Free))
		}
	}
	slices.Sort(tags) // several may have one name
	text += "\n" + strings.Join(tags, "\n")
	for _, b := range s.Buckets {
		if b.InUse+b.Cached+b.Cooling > 0 {
			text += fmt.Sprintf("\nbucket %d: %d, %d, %d, %d", b.Smallest, b.InUse, b.Cached, b.Cooling, b.Blocks)
		}
	}
	return text
}

func gaugesOf(t *stats.Totals) string {
	return fmt.Sprintf("%d in use, %d requested, %d in %d cached, largest %d, squares %g, %d cooling, %d live, %d slabs of %d, %d free",
		t.InUse, t.Requested, t.Cached, t.CachedBlocks, t.LargestCached, t.Squares, t.Cooling, t.LiveBuffers, t.Slabs, t.SlabBytes, t.SlabFree)
}

// counters are what happened.
func counters(t *stats.Totals) map[string]uint64 {
	c := map[string]uint64{
		"hits": t.Hits, "misses": t.Misses, "creates": t.Creates, "failures": t.Failures, "unpooled": t.Unpooled,
		"releases": t.Releases, "driver creates": t.DriverCreates, "driver releases": t.DriverReleases,
		"hazards": t.HazardsAvoided, "uses": t.Uses, "driver ns": t.DriverNS, "hit ns": t.HitNS,
		"bytes requested": t.BytesRequested, "bytes allocated": t.BytesAllocated,
	}
	for i := range t.Evictions {
		c[fmt.Sprint("eviction ", i)] = t.Evictions[i]
	}
	for i := range t.MissReasons {
		c[fmt.Sprint("reason ", i)] = t.MissReasons[i]
	}
	return c
}

func less(all, before map[string]uint64) map[string]uint64 {
	for name := range all {
		all[name] -= before[name]
	}
	return all
}

// TestPartIsThePartOfTheWhole compares a part with the whole, at Since and after every record behind.
func TestPartIsThePartOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := randomrun.DrawRun(t, randomrun.Options{})
		last := records[len(records)-1].Time
		since := rapid.Uint64Range(randomrun.Start, last+1).Draw(t, "since")
		until := rapid.Uint64Range(since, last+1).Draw(t, "until")
		from, to := len(records), len(records)
		if i := slices.IndexFunc(records, func(r wire.Record) bool { return r.Time >= since && !r.Kind.IsMadeLater() }); i >= 0 {
			from = i
		}
		if i := slices.IndexFunc(records, func(r wire.Record) bool { return r.Time > until && !r.Kind.IsMadeLater() }); i >= 0 {
			to = i
		}
		got := read(t, extract.CutRange(&randomrun.Tape{Records: records}, extract.Options{Since: since, Until: until}))
		carried := len(got)
		for carried > 0 && late(records, to, &got[carried-1]) {
			carried--
		}
		carried -= to - from
		if carried < 0 {
			t.Fatalf("a part of %d records, the whole has %d there", len(got), to-from)
		}
		whole, part := fold(records[:to], randomrun.Start, from), fold(got[:carried+to-from], since, carried)
		gone := map[uint32]bool{}
		for i := range records[:from] {
			if r := &records[i]; r.Kind == wire.KindExit {
				gone[r.Process] = true
			}
		}
		for i := range whole {
			if diff := cmp.Diff(gauges(whole[i], gone), gauges(part[i], gone)); diff != "" {
				t.Fatalf("%d records behind the start (-whole +part):\n%s", i, diff)
			}
			want := less(counters(&whole[i].Totals), counters(&whole[0].Totals))
			if diff := cmp.Diff(want, counters(&part[i].Totals)); diff != "" {
				t.Fatalf("%d records behind the start (-difference +part):\n%s", i, diff)
			}
		}
		for i := range records[from:to] {
			if r := &records[from+i]; r.Kind.IsMadeLater() {
				r.Time = min(r.Time, until)
			}
		}
		if diff := cmp.Diff(records[from:to], got[carried:carried+to-from], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("records (-whole +part):\n%s", diff)
		}
		peaks(t, whole, part[len(part)-1])
	})
}

// late reports whether a record is a name that the whole has behind the part.
func late(records []wire.Record, to int, r *wire.Record) bool {
	return r.Kind == wire.KindSite && slices.ContainsFunc(records[to:], func(w wire.Record) bool {
		w.Time = r.Time
		return cmp.Equal(w, *r)
	})
}

// peaks demands that those of a part are the largest values since its start.
func peaks(t *rapid.T, whole []*stats.Snapshot, end *stats.Snapshot) {
	var inUse, cached, cooling, reserved uint64
	for _, s := range whole {
		inUse, cached = max(inUse, s.Totals.InUse), max(cached, s.Totals.Cached)
		cooling, reserved = max(cooling, s.Totals.Cooling), max(reserved, s.Totals.ReservedBytes())
	}
	got := &end.Totals
	// A record may do several things one after the other, so cached and reserved are higher within it at times.
	if got.PeakInUse != inUse || got.PeakCooling != cooling || got.PeakCached < cached || got.PeakReserved < reserved {
		t.Errorf("peaks %d, %d, %d, %d; want %d, %d, %d, %d", got.PeakInUse, got.PeakCooling, got.PeakCached, got.PeakReserved,
			inUse, cooling, cached, reserved)
	}
}

// TestPartOfAPart: cutting twice is cutting once.
func TestPartOfAPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := randomrun.DrawRun(t, randomrun.Options{})
		last := records[len(records)-1].Time
		first := rapid.Uint64Range(randomrun.Start, last).Draw(t, "first")
		second := rapid.Uint64Range(first, last).Draw(t, "second")
		once := extract.CutRange(&randomrun.Tape{Records: records}, extract.Options{Since: second})
		twice := extract.CutRange(extract.CutRange(&randomrun.Tape{Records: records}, extract.Options{Since: first}), extract.Options{Since: second})
		want := read(t, once)
		if diff := cmp.Diff(want, read(t, twice)); diff != "" {
			t.Errorf("(-once +twice):\n%s", diff)
		}
		if err := once.Rewind(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, read(t, once)); diff != "" {
			t.Errorf("after Rewind (-first +second):\n%s", diff)
		}
	})
}

// TestOneProcess: the part of one process of two is that of a run of it alone.
func TestOneProcess(t *testing.T) {
	times := []uint64{0, randomrun.Start, randomrun.Start + 40_000}
	rapid.Check(t, func(t *rapid.T) {
		oneProcess(t, randomrun.DrawRun(t, randomrun.Options{}), rapid.SampledFrom(times).Draw(t, "since"))
	})
	for seed := range uint64(150) { // in 4 and 126 a late name stands on the border
		for _, since := range times {
			oneProcess(t, randomrun.MakeRun(seed, randomrun.Options{Steps: 40}), since)
		}
	}
}

// oneProcess compares the second process of a run with a run of it alone. A late name begins no part, so the other process
// decides whether one on the border comes before or after what is carried over.
func oneProcess(t interface {
	Fatal(...any)
	Errorf(string, ...any)
}, records []wire.Record, since uint64) {
	only := func(n uint32) bool { return n == 2 }
	alone := slices.DeleteFunc(slices.Clone(records), func(r wire.Record) bool { return !only(r.Process) })
	got := read(t, extract.CutRange(&randomrun.Tape{Records: records}, extract.Options{Since: since, Process: only}))
	want := read(t, extract.CutRange(&randomrun.Tape{Records: alone}, extract.Options{Since: since}))
	for _, list := range [][]wire.Record{got, want} {
		slices.SortStableFunc(list, func(a, b wire.Record) int { return order(&a) - order(&b) })
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("since %d (-alone +of two):\n%s", since, diff)
	}
}

// order puts late names first.
func order(r *wire.Record) int {
	if r.Kind.IsMadeLater() {
		return 0
	}
	return 1
}
