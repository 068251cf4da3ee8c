package stats

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// simulator writes random streams that a correct target could have written.
type simulator struct {
	*rand.Rand
	next    uint64 // number of objects and blocks, shared by all processes for simplicity
	live    []wire.Record
	free    []wire.Record // releases whose block is cached or cooling
	records []wire.Record
	time    uint64
	slabs   []*simulatedSlab
	parts   []simulatedPart
}

func (s *simulator) emit(r wire.Record) wire.Record {
	s.time += s.Uint64N(2_000_000)
	r.Time = s.time
	s.records = append(s.records, r)
	return r
}

func (s *simulator) step() {
	switch n := s.IntN(28); {
	case n >= 20:
		s.partStep()
	case n < 6:
		s.create()
	case n < 9:
		s.hit()
	case n < 15:
		s.release()
	case n < 17:
		s.settleBlock()
	case n < 18 && len(s.live) > 0:
		r := s.live[s.IntN(len(s.live))]
		s.emit(wire.Record{Event: wire.Event{Kind: wire.KindUse, Object: r.Object}, Process: r.Process})
	case n < 19:
		s.emit(wire.Record{
			Event:   wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeFailed, Duration: 5, Status: -4, Size: 1 << 40},
			Process: 1,
		})
	}
}

func (s *simulator) create() {
	s.next++
	size := s.Uint64N(1000) + 1
	e := wire.Event{
		Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Reason: uint8(s.IntN(10)), Tag: s.Uint32N(5),
		Duration: s.Uint32N(10_000), Cost: s.Uint32N(5000),
		Object: s.next, Link: s.next, Size: size, Granted: size + s.Uint64N(50),
	}
	if s.IntN(4) == 0 {
		e.Outcome, e.Link, e.Op = wire.OutcomeDriver, 0, uint8(s.IntN(3))
		if wire.Memory(e.Op) == wire.MemorySubBuffer {
			e.Link = 1
		}
	}
	s.live = append(s.live, s.emit(wire.Record{Event: e, Process: 1 + s.Uint32N(2)}))
}

func (s *simulator) hit() {
	if len(s.free) == 0 {
		return
	}
	r := s.takeFree(s.IntN(len(s.free)))
	s.next++
	e := wire.Event{
		Kind: wire.KindCreate, Outcome: wire.OutcomeHit, Tag: s.Uint32N(5), Duration: s.Uint32N(1000),
		Object: s.next, Link: r.Link, Size: s.Uint64N(r.Size) + 1, Granted: r.Size,
	}
	s.live = append(s.live, s.emit(wire.Record{Event: e, Process: r.Process}))
}

func (s *simulator) takeFree(i int) wire.Record {
	r := s.free[i]
	s.free[i] = s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return r
}

// release lets an object go. The releases kept in free carry their block's size in Size.
func (s *simulator) release() {
	if len(s.live) == 0 {
		return
	}
	i := s.IntN(len(s.live))
	created := s.live[i]
	e := wire.Event{Kind: wire.KindRelease, Object: created.Object, Link: created.Link, Cost: s.Uint32N(100)}
	if s.IntN(5) == 0 {
		e.Granted = 1
		s.emit(wire.Record{Event: e, Process: created.Process})
		return
	}
	s.live[i] = s.live[len(s.live)-1]
	s.live = s.live[:len(s.live)-1]
	if created.Outcome != wire.OutcomeDriver {
		e.Outcome = []wire.Outcome{wire.OutcomeCached, wire.OutcomeCooling, wire.OutcomeRefused}[s.IntN(3)]
	}
	if s.IntN(3) == 0 {
		e.Flags = wire.FlagWouldRace
	}
	r := s.emit(wire.Record{Event: e, Process: created.Process})
	r.Size = created.Granted
	switch e.Outcome {
	case wire.OutcomeRefused:
		s.evict(r)
	case wire.OutcomeCached, wire.OutcomeCooling:
		s.free = append(s.free, r)
	default:
	}
}

// settleBlock lets a cooling block become free, or evicts one.
func (s *simulator) settleBlock() {
	if len(s.free) == 0 {
		return
	}
	i := s.IntN(len(s.free))
	if r := &s.free[i]; r.Outcome == wire.OutcomeCooling {
		r.Outcome = wire.OutcomeCached
		s.emit(wire.Record{Event: wire.Event{Kind: wire.KindCooled, Link: r.Link, Granted: r.Size}, Process: r.Process})
		return
	}
	s.evict(s.takeFree(i))
}

func (s *simulator) evict(r wire.Record) {
	s.emit(wire.Record{
		Event:   wire.Event{Kind: wire.KindEvict, Link: r.Link, Granted: r.Size, Reason: uint8(s.IntN(12)), Cost: 7},
		Process: r.Process,
	})
}

func TestTotalsEqualNaiveRecomputation(t *testing.T) {
	for seed := range uint64(20) {
		s := &simulator{Rand: rand.New(rand.NewPCG(seed, 1)), next: 1}
		for range 1000 {
			s.step()
		}
		m, n := New(Options{}), newNaive()
		for i := range s.records {
			m.Apply(&s.records[i])
			n.apply(&s.records[i].Event)
			if i%97 == 0 || i == len(s.records)-1 {
				snapshot := m.Snapshot()
				got := snapshot.Totals
				forgetEstimates(&got)
				if diff := cmp.Diff(n.totals, got); diff != "" {
					t.Fatalf("seed %d, event %d (-naive +model):\n%s", seed, i, diff)
				}
				checkConsistent(t, snapshot)
				checkBooks(t, m)
				checkOwn(t, snapshot)
			}
		}
	}
}

// forgetEstimates clears what has tests of its own.
func forgetEstimates(t *Totals) {
	t.SavedNS, t.SavedKnown, t.SteadyHits, t.SteadyRequests = 0, false, 0, 0
	t.CreateP50NS, t.CreateP99NS, t.DriverCreateP50, t.DriverCreateP99 = 0, 0, 0, 0
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
	s := &simulator{Rand: rand.New(rand.NewPCG(42, 1)), next: 1}
	for range 4000 {
		s.step()
	}
	m := New(Options{Limits: []Limit{{Name: "max_cached_bytes"}}})
	type pair struct{ kept, copied *Snapshot }
	var pairs []pair
	site := wire.Record{Event: wire.Event{Kind: wire.KindSite}, Process: 1, Payload: []byte("f\ta.c\t1\tx")}
	for i := range s.records {
		m.Apply(&s.records[i])
		if i%200 == 0 {
			pairs = append(pairs, pair{m.Snapshot(), deepCopy(m.Snapshot())})
			site.Time, site.Tag = s.records[i].Time, uint32(i/200)
			m.Apply(&site)
			m.LimitWanted("max_cached_bytes", strconv.Itoa(i), uint64(i))
			m.Apply(&wire.Record{Event: wire.Event{Kind: wire.KindDiag, Time: s.records[i].Time}, Process: 1})
			mistake := wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagStaleRead), Time: s.records[i].Time, Tag: uint32(i / 200 % 7)}
			m.Apply(&wire.Record{Event: mistake, Process: 1})
		}
	}
	m.ProcessEnded(1, 0, 0, s.time)
	m.Tick(s.time + 1<<40)
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
		t.Trend = append([]uint64{}, t.Trend...)
		t.Free = append([]FreeClass{}, t.Free...)
	}
	return tags
}

// addTags sums rows up, each of which must agree with its free list.
func addTags(t *testing.T, tags []Tag) (rows Totals) {
	t.Helper()
	for i := range tags {
		tag := &tags[i]
		rows.InUse += tag.InUse
		rows.Requested += tag.Requested
		rows.Cached += tag.Cached
		rows.Cooling += tag.Cooling
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
		InUse: t.InUse, Requested: t.Requested, Cached: t.Cached, Cooling: t.Cooling, CachedBlocks: t.CachedBlocks,
		LiveBuffers: t.LiveBuffers, Hits: t.Hits, Misses: t.Misses, Creates: t.Creates,
	}
}
