package stats

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// simulate makes a run of two processes that do not end.
func simulate(seed uint64, steps int) []wire.Record {
	return randomrun.MakeRun(seed, randomrun.Options{
		Steps: steps, Gap: 2_000_000, Exits: randomrun.Never, NoOvertaking: true, Names: []string{"f\ta.c\t1\tx", "g\ta.c\t2\tx", ""},
	})
}

func TestTotalsEqualNaiveRecomputation(t *testing.T) {
	for seed := range uint64(20) {
		records := simulate(seed, 1000)
		m, n := New(Options{}), newNaive()
		for i := range records {
			m.Apply(&records[i])
			n.apply(&records[i])
			if i%97 == 0 || i == len(records)-1 {
				snapshot := m.Snapshot()
				got := snapshot.Totals
				if got.Held < got.InUse || got.Held > got.PeakInUse {
					t.Fatalf("seed %d, event %d: held %d, in use %d, peak %d", seed, i, got.Held, got.InUse, got.PeakInUse)
				}
				forgetEstimates(&got)
				if diff := cmp.Diff(n.totals, got); diff != "" {
					t.Fatalf("seed %d, event %d (-naive +model):\n%s", seed, i, diff)
				}
				checkConsistent(t, snapshot)
				checkSums(t, m)
				checkOwn(t, snapshot)
			}
		}
	}
}

// forgetEstimates clears what has tests of its own.
func forgetEstimates(t *Totals) {
	t.Saved, t.SteadyHits, t.SteadyRequests, t.Held = SavedCalls{}, 0, 0, 0
	t.PeakIdle = 0 // looked at ten times a second
	t.CreatesTimed, t.DriverTimed, t.CreateP50NS, t.CreateP99NS, t.DriverCreateP50, t.DriverCreateP99 = 0, 0, 0, 0, 0, 0
}

// checkConsistent checks what must hold in every snapshot of a run without ended processes: rows, processes and
// history add up to the totals.
func checkConsistent(t *testing.T, s *Snapshot) {
	t.Helper()
	var processes Totals
	rows := addTags(t, s.Tags)
	for i := range s.Processes {
		p := &s.Processes[i].Totals
		processes.InUse += p.InUse
		processes.Requested += p.Requested
		processes.Cached += p.Cached
		processes.Cooling += p.Cooling
		processes.Idle += p.Idle
		processes.CachedBlocks += p.CachedBlocks
		processes.LiveBuffers += p.LiveBuffers
		processes.Hits += p.Hits
		processes.Misses += p.Misses
		processes.Creates += p.Creates
	}
	want := sums(&s.Totals)
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows do not add up (-totals +rows):\n%s", diff)
	}
	if diff := cmp.Diff(want, processes); diff != "" {
		t.Errorf("processes do not add up (-totals +processes):\n%s", diff)
	}
}

func TestOldSnapshotsDoNotChange(t *testing.T) {
	records := simulate(42, 4000)
	m := New(Options{Limits: []Limit{{Name: "max_cached_bytes"}}})
	type pair struct{ kept, copied *Snapshot }
	var pairs []pair
	site := wire.Record{Event: wire.Event{Kind: wire.KindSite}, Process: 1, Payload: []byte("f\ta.c\t1\tx")}
	for i := range records {
		m.Apply(&records[i])
		if i%200 == 0 {
			pairs = append(pairs, pair{m.Snapshot(), deepCopy(m.Snapshot())})
			site.Time, site.Tag = records[i].Time, uint32(i/200)
			m.Apply(&site)
			m.NoteLimitWanted("max_cached_bytes", strconv.Itoa(i), uint64(i))
			m.Apply(&wire.Record{Event: wire.Event{Kind: wire.KindDiag, Time: records[i].Time}, Process: 1})
			mistake := wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagStaleRead), Time: records[i].Time, Tag: uint32(i / 200 % 7)}
			m.Apply(&wire.Record{Event: mistake, Process: 1})
		}
	}
	end := records[len(records)-1].Time
	m.NoteProcessEnded(1, End{Status: 0, Signal: 0}, end)
	m.AdvanceTime(end + 1<<40)
	m.Snapshot()
	for i, p := range pairs {
		if diff := cmp.Diff(p.copied, p.kept); diff != "" {
			t.Errorf("snapshot %d changed (-then +now):\n%s", i, diff)
		}
	}
}

func deepCopy(s *Snapshot) *Snapshot {
	c := *s
	c.Arguments = append([]string(nil), s.Arguments...)
	c.Limits = append([]Limit(nil), s.Limits...)
	c.Processes = append([]Process{}, s.Processes...)
	for i := range c.Processes {
		p := &c.Processes[i]
		p.History, p.Tags = slices.Clone(p.History), copyTags(p.Tags)
	}
	c.History = append([]Sample(nil), s.History...)
	c.Findings = append([]Finding(nil), s.Findings...)
	c.Marks = append([]Mark(nil), s.Marks...)
	c.Tags = copyTags(s.Tags)
	return &c
}

func copyTags(tags []Tag) []Tag {
	tags = slices.Clone(tags)
	for i := range tags {
		t := &tags[i]
		t.Stack = append([]string(nil), t.Stack...)
		t.Trend = TrendOf(t.Trend.Points())
		t.Free = append([]FreeClass{}, t.Free...)
	}
	return tags
}

// addTags sums rows up. Each row must agree with its free list.
func addTags(t *testing.T, tags []Tag) (rows Totals) {
	t.Helper()
	for i := range tags {
		tag := &tags[i]
		rows.InUse += tag.InUse
		rows.Requested += tag.Requested
		rows.Cached += tag.Cached
		rows.Cooling += tag.Cooling
		rows.Idle += tag.Idle
		rows.CachedBlocks += tag.CachedCount
		rows.LiveBuffers += tag.Live
		rows.Hits += tag.Hits
		rows.Misses += tag.Misses
		rows.Creates += tag.Creates
		var free, cools uint64
		for _, c := range tag.Free {
			free += c.Size * (c.Blocks - c.Cooling)
			cools += c.Size * c.Cooling
		}
		if tag.Slabs {
			continue
		}
		if free != tag.Cached || cools != tag.Cooling {
			t.Errorf("free list of %q has %d + %d bytes, its row %d + %d", tag.Name, free, cools, tag.Cached, tag.Cooling)
		}
	}
	return rows
}

// sums are the totals that rows and processes add up to.
func sums(t *Totals) Totals {
	return Totals{
		InUse: t.InUse, Requested: t.Requested, Cached: t.Cached, Idle: t.Idle, Cooling: t.Cooling, CachedBlocks: t.CachedBlocks,
		LiveBuffers: t.LiveBuffers, Hits: t.Hits, Misses: t.Misses, Creates: t.Creates,
	}
}
