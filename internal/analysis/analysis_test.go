package analysis

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestNothing(t *testing.T) {
	a := newTape().analyse(t)
	if len(a.Timeline.InUse) != 0 || a.Peak.InUse != 0 || len(a.Diagnoses) != 0 || len(a.Phases) != 0 || a.Run.Events != 0 {
		t.Errorf("made of nothing: %+v", a)
	}
}

// TestListsAreNeverNull: lists in JSON may be empty.
func TestListsAreNeverNull(t *testing.T) {
	loop := newTape()
	iterate(loop)
	for name, s := range map[string]*tape{"nothing": newTape(), "a loop": loop} {
		a := s.analyse(t)
		text, err := json.Marshal([]any{a.Peak, a.Leaks, a.Temporaries, a.Misses, a.Timeline, a.Sizes, a.Phases, a.Transfers, a.Diagnoses, a.Growth})
		if err != nil || bytes.Contains(text, []byte("null")) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

func TestSourceErrors(t *testing.T) {
	if _, err := Analyse(&records.Tape{Err: errors.New("no disk")}, Options{}); err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("%v", err)
	}
}

// iterate makes a loop of ten: each time a temporary buffer, and one that stays until the next time.
func iterate(s *tape) {
	s.site(1, "scratch", "main")
	s.site(2, "grid", "main")
	last := s.driver(2, 4*mib)
	for range 10 {
		a := s.driver(1, mib)
		b := s.driver(2, 4*mib)
		s.use(a)
		s.use(b)
		s.release(a, wire.OutcomeDriver).Cost = 500
		s.release(last, wire.OutcomeDriver)
		last = b
	}
	s.release(last, wire.OutcomeDriver)
}

func TestTemporariesAndPhases(t *testing.T) {
	s := newTape()
	iterate(s)
	a := s.analyse(t)
	want := []Temporary{{Name: "scratch.c:1 scratch", Buffers: 10, Creates: 10, Bytes: 10 * mib, LifeP50: a.Temporaries[0].LifeP50, DriverNS: 5000}}
	if diff := gocmp.Diff(want, a.Temporaries, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if life := a.Temporaries[0].LifeP50; life < 3.9*ms || life > 4.1*ms {
		t.Errorf("a temporary lives %d ns, want about 4 ms", life)
	}
	var found *Phase
	for i := range a.Phases {
		if a.Phases[i].Iterations > 0 {
			found = &a.Phases[i]
		}
	}
	if found == nil || found.Iterations < 10 || found.Iterations > 11 || found.Period != 6*ms || found.Creates != 2 || found.Growth != 0 {
		t.Errorf("phases %+v", a.Phases)
	}
	for i := 1; i < len(a.Phases); i++ {
		if a.Phases[i].Start < a.Phases[i-1].End {
			t.Errorf("phases overlap: %+v", a.Phases)
		}
	}
}

// TestInterruptedIterations: creates between two iterations are no iteration.
func TestInterruptedIterations(t *testing.T) {
	for between := range uint64(5) {
		s := newTape()
		for i := range 40 {
			for n := range uint64(5) {
				s.driver(1, 100+n)
			}
			for n := range between {
				if i == 20 {
					s.driver(2, 100+n)
				}
			}
		}
		a := s.analyse(t)
		if len(a.Phases) == 0 || a.Phases[0].Iterations != 40 {
			t.Errorf("%d creates between: %+v", between, a.Phases)
		}
	}
}

// TestIterationsByFlags: creates of one line that differ in their flags are apart.
func TestIterationsByFlags(t *testing.T) {
	s := newTape()
	for range 40 {
		read := s.driver(1, mib)
		write := s.driver(1, mib)
		s.last().Access = 1 << 1
		s.release(read, wire.OutcomeDriver)
		s.release(write, wire.OutcomeDriver)
	}
	if a := s.analyse(t); len(a.Phases) == 0 || a.Phases[0].Iterations != 40 || a.Phases[0].Creates != 2 {
		t.Errorf("%+v", a.Phases)
	}
}

// TestOtherTimesOfOneProcess: the most in use outside of iterations is known of a run as a whole, so only one of a single process has it.
func TestOtherTimesOfOneProcess(t *testing.T) {
	for processes, want := range map[uint32]int{1: 1, 2: 0} {
		s := newTape()
		iterate(s)
		s.process = processes
		s.driver(3, 100*mib)
		s.now += 100 * ms
		s.process = 1
		s.exit()
		others := 0
		for _, p := range s.analyse(t).Phases {
			if p.Iterations == 0 && p.PeakInUse == 100*mib {
				others++
			}
		}
		if others != want {
			t.Errorf("%d processes: %d, want %d", processes, others, want)
		}
	}
}

func TestTemporariesWithoutIterations(t *testing.T) {
	s := newTape()
	long := s.driver(1, 64)
	for n := range uint64(300) { // no size comes twice
		s.release(s.driver(2, 100+n*n), wire.OutcomeDriver)
	}
	s.release(long, wire.OutcomeDriver)
	a := s.analyse(t)
	if len(a.Temporaries) != 1 || a.Temporaries[0].Name != "tag 2" || a.Temporaries[0].Buffers != 300 {
		t.Errorf("temporaries %+v", a.Temporaries)
	}
	for _, p := range a.Phases {
		if p.Iterations != 0 {
			t.Errorf("iterations in %+v", p)
		}
	}
}

func TestLag(t *testing.T) {
	s := newTape()
	a, b := s.driver(1, 1000), s.driver(2, 50)
	s.use(a)
	s.now += 99 * ms
	s.release(a, wire.OutcomeDriver)
	s.release(b, wire.OutcomeDriver)
	l := s.analyse(t).Lag
	if l.Known != 1 || l.Unused != 1 || len(l.Tags) != 1 || math.Abs(l.ByteSeconds-100) > 1e-5 {
		t.Errorf("lag %+v, want 100 byte seconds of one buffer", l)
	}
	if l.P50 < 96*ms || l.P50 > 104*ms {
		t.Errorf("p50 %d, want 100 ms", l.P50)
	}
	s = newTape()
	a, b = s.driver(1, 1000), s.driver(2, 50)
	s.put(wire.Event{Kind: wire.KindUse, Object: a, Link: 1}, "")
	s.put(wire.Event{Kind: wire.KindUse, Object: b, Link: 2}, "")
	s.put(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncFinish), Link: 1, Duration: 99 * ms}, "") // the device works so long
	s.now += 99 * ms
	s.release(a, wire.OutcomeDriver)
	s.release(b, wire.OutcomeDriver)
	if l := s.analyse(t).Lag; l.Known != 1 || l.Unsure != 1 || l.ByteSeconds > 1 {
		t.Errorf("%+v of a buffer on which the device works, and of another that nothing waited for", l)
	}
	s = newTape()
	s.release(s.driver(1, 1000), wire.OutcomeDriver)
	if l := s.analyse(t).Lag; l.Known != 0 || l.Unused != 0 {
		t.Errorf("without uses %+v", l)
	}
}

func TestCostCurve(t *testing.T) {
	var c costs
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		size := random.Uint64N(1 << 30)
		c.addCall(size, uint32(2000+size/1000))
	}
	if got := c.fitCurve(); math.Abs(got.A-2000) > 2 || math.Abs(got.B-0.001) > 1e-6 || got.R2 < 0.999999 || got.Calls != 100_000 {
		t.Errorf("%+v, want 2000 + 0.001 × size", got)
	} else if !got.LineFits() || got.HasOneSize() {
		t.Error("the line does not fit")
	}
	c = costs{}
	c.addCall(64, 100)
	c.addCall(64, 200)
	c.addCall(64, 0) // not measured
	if got := c.fitCurve(); got.A != 150 || got.B != 0 || got.R2 != 0 || got.Calls != 2 || got.Points[0].StdDev != 50 || got.Points[0].P50 != 102 || got.LineFits() || !got.HasOneSize() {
		t.Errorf("one size: %+v", got)
	}
	c.addCall(128, 200)
	c.addCall(1024, 90)
	if got := c.fitCurve(); got.LineFits() || got.HasOneSize() {
		t.Errorf("of no use: %+v", got)
	}
}

func TestSampler(t *testing.T) {
	var s sampler
	for n := range int64(200_000) {
		s.addValue(n)
	}
	if m := s.median(); m < 98_000 || m > 102_000 || len(s.values) > samplesMax {
		t.Errorf("median %d of %d values", m, len(s.values))
	}
}

func TestTimeline(t *testing.T) {
	s := newTape()
	s.site(1, "a")
	a := s.driver(1, 100)
	s.now += 100 * ms
	b := s.create(wire.OutcomeMiss, 2, 150, 200, 7)
	s.now += 100 * ms
	s.release(b, wire.OutcomeCached)
	s.now += 100 * ms
	s.release(a, wire.OutcomeDriver)
	l := s.analyse(t).Timeline
	if n := len(l.InUse); n > PointsMax || n < PointsMax/2 || l.Start != 2*ms {
		t.Fatalf("%d points from %d", n, l.Start)
	}
	at := func(ms uint64) int { return int((ms*1_000_000 - l.Start) / l.Step) }
	for _, c := range []struct{ ms, inUse, cached, tag1, free uint64 }{
		{50, 100, 0, 100, 0}, {150, 300, 0, 100, 0}, {250, 100, 200, 100, 200},
	} {
		i := at(c.ms)
		if l.InUse[i] != c.inUse || l.Cached[i] != c.cached || l.Tags[1].Values[i] != c.tag1 || l.Free[0].Values[i] != c.free {
			t.Errorf("after %d ms %d, %d, %d, %d: want %+v", c.ms, l.InUse[i], l.Cached[i], l.Tags[1].Values[i], l.Free[0].Values[i], c)
		}
	}
	if waste := l.Waste[at(150)]; math.Abs(waste-50.0/300) > 1e-9 {
		t.Errorf("waste %g", waste)
	}
	if l.Tags[0].Name != "tag 2" || l.Tags[1].Name != "a.c:1 a" || len(l.Free) != 1 || l.Misses[at(103)]+l.Misses[at(104)] != 1 {
		t.Errorf("series %s, %s, %d", l.Tags[0].Name, l.Tags[1].Name, len(l.Free))
	}
}

// TestTimelineOfFreeMemory: what was free for a moment counts, and memory that commands still use is not free.
func TestTimelineOfFreeMemory(t *testing.T) {
	s := newTape()
	a := s.create(wire.OutcomeMiss, 1, 100, 100, 7)
	s.now += 100 * ms
	s.release(a, wire.OutcomeCached)
	s.create(wire.OutcomeHit, 1, 100, 100, 7)
	b := s.create(wire.OutcomeMiss, 1, 50, 50, 8)
	s.now += 100 * ms
	s.release(b, wire.OutcomeCooling)
	s.now += 100 * ms
	s.exit()
	l := s.analyse(t).Timeline
	if free, cooling := slices.Max(l.MostCached), slices.Max(l.MostCooling); free != 100 || cooling != 50 {
		t.Errorf("%d free, %d cooling", free, cooling)
	}
}

func TestManyTagsAreOthers(t *testing.T) {
	s := newTape()
	for tag := range uint32(40) {
		s.driver(tag+1, uint64(1000-tag))
	}
	l := s.analyse(t).Timeline
	last := len(l.InUse) - 1
	if len(l.Tags) != SeriesMax || l.Tags[SeriesMax-1].Name != others || l.Tags[0].Name != "tag 1" {
		t.Fatalf("%d series", len(l.Tags))
	}
	var sum uint64
	for _, series := range l.Tags {
		sum += series.Values[last]
	}
	if sum != l.InUse[last] {
		t.Errorf("series have %d of %d", sum, l.InUse[last])
	}
}

// TestPartCarriesOverWhatWasThere carries over what was there: it is in use, and nothing that happened.
func TestPartCarriesOverWhatWasThere(t *testing.T) {
	s := newTape()
	object := s.create(wire.OutcomeMiss, 1, 100, 100, 1)
	s.last().Flags = wire.FlagCarried
	s.create(wire.OutcomeHit, 2, 9000, 9000, 2)
	s.last().Flags = wire.FlagCarried
	s.release(s.objects, wire.OutcomeCached).Flags = wire.FlagCarried
	s.now += 1000 * ms
	s.driver(3, 10)
	s.release(object, wire.OutcomeCached)
	a := s.analyse(t, func(o *Options) { o.Since = time.Second })
	if a.Peak.InUse != 110 || len(a.Peak.Tags) != 2 || a.Run.Events != 2 {
		t.Errorf("peak %+v, %d events", a.Peak, a.Run.Events)
	}
	if len(a.Sizes) != 1 || len(a.Misses) != 0 || len(a.Lifetimes) != 1 || a.Lifetimes[0].Count != 1 {
		t.Errorf("what was carried over was counted: %+v, %+v, %+v", a.Sizes, a.Misses, a.Lifetimes)
	}
	a = s.analyse(t, func(o *Options) { o.Since, o.Until = time.Second, time.Hour })
	if len(a.Leaks) == 0 {
		t.Error("nothing goes on behind the end, and nothing leaked")
	}
	s.Part = true
	a = s.analyse(t, func(o *Options) { o.Since = time.Second })
	if s.Part = false; len(a.Leaks) != 0 {
		t.Errorf("what goes on is no leak: %+v", a.Leaks)
	}
	a = s.analyse(t, func(o *Options) { o.Since = time.Hour })
	if a.Run.Events != 0 || len(a.Timeline.InUse) != 0 {
		t.Errorf("%d events beyond the end", a.Run.Events)
	}
}

func TestTagNarrows(t *testing.T) {
	s := newTape()
	iterate(s)
	s.driver(2, 77)
	all, one := s.analyse(t), s.analyse(t, func(o *Options) { o.Tag = regexp.MustCompile("^scratch") })
	if len(one.Peak.Tags) != 1 || len(one.Temporaries) != 1 || len(one.Leaks) != 0 || len(all.Leaks) != 1 || len(one.Lag.Tags) != 1 || len(one.Timeline.Tags) != 1 ||
		len(one.Snapshot.Tags) != 1 || len(one.Flame.Children) != 1 || one.Run.Tag != "^scratch" {
		t.Errorf("not narrowed: %+v, %+v, %+v, %+v, %d", one.Peak.Tags, one.Temporaries, one.Leaks, one.Lag.Tags, len(one.Timeline.Tags))
	}
	if diff := gocmp.Diff(all.Snapshot.Totals, one.Snapshot.Totals, cmpopts.EquateEmpty()); diff != "" || all.Peak.InUse != one.Peak.InUse {
		t.Errorf("totals changed: %s", diff)
	}
}

func TestFlame(t *testing.T) {
	s := newTape()
	iterate(s)
	s.driver(3, 5)
	f := s.analyse(t).Flame
	if len(f.Children) != 3 || f.Children[0].Name != "main /src/main.c:2" || f.Children[2].Name != "tag 3" {
		t.Fatalf("%+v", f.Children)
	}
	var creates, peak uint64
	for _, c := range f.Children {
		creates += c.Creates
		peak += c.Peak
	}
	if f.Creates != creates || f.Creates != 22 || f.Peak != peak || f.Peak != 9*mib || f.Leaked != 5 {
		t.Errorf("%+v", f)
	}
}

func TestPolicyLimits(t *testing.T) {
	limits := stats.PolicyLimits("futhark", recording.Limits{"max_cached_bytes": "77"})
	if len(limits) == 0 || limits[0].Name != "max_cached_bytes" || limits[0].Value != 77 {
		t.Errorf("%+v", limits)
	}
	if got := stats.PolicyLimits("of a later version", nil); got != nil {
		t.Errorf("%+v", got)
	}
}

// TestLeaksOfEndedProcesses are found also when other processes go on, and a parent that only its sub-buffer keeps is no
// buffer that leaked, though its memory has.
func TestLeaksOfEndedProcesses(t *testing.T) {
	s := newTape()
	s.site(1, "a")
	parent := s.driver(1, 100)
	begun := s.now - origin
	sub := s.create(wire.OutcomeDriver, 2, 50, 50, parent)
	s.last().Op = uint8(wire.MemorySubBuffer)
	s.release(parent, wire.OutcomePinned)
	s.driver(1, 7)
	s.exit()
	s.last().Thread = 0
	s.process = 2
	s.release(s.driver(1, 9), wire.OutcomeDriver)
	a := s.analyse(t)
	want := []Leak{
		{Name: "a.c:1 a", Stack: []string{"a /src/a.c:1"}, Buffers: 1, Bytes: 107, Oldest: begun + 3*ms},
		{Name: "tag 2", Buffers: 1, Oldest: begun + ms},
	}
	if diff := gocmp.Diff(want, a.Leaks, cmpopts.EquateEmpty()); diff != "" || sub == 0 {
		t.Error(diff)
	}
}

// TestLeakHasItsOwnCallers: of the callers of one function, those whose buffers are left.
func TestLeakHasItsOwnCallers(t *testing.T) {
	s := newTape()
	for tag, caller := range []string{"fill", "copy", "scale"} {
		s.put(wire.Event{Kind: wire.KindSite, Tag: uint32(tag + 1)}, "make\t/src/a.c\t3\tapp+0x10\n"+caller+"\t/src/a.c\t4\tapp+0x20\n")
	}
	s.release(s.driver(1, 100), wire.OutcomeDriver)
	s.driver(2, 50)
	s.driver(3, 40)
	s.exit()
	if a := s.analyse(t); len(a.Leaks) != 1 || a.Leaks[0].Buffers != 2 || a.Leaks[0].Bytes != 90 || strings.Join(a.Leaks[0].Stack, ", ") != "make /src/a.c:3, copy /src/a.c:4" {
		t.Errorf("%+v", a.Leaks)
	}
}

// TestTimesOutOfOrder: names come late, with times of their own, blocking commands come when they are done, and threads'
// records in stretches. None of that moves what it does not concern.
func TestTimesOutOfOrder(t *testing.T) {
	s := newTape()
	at := func(e wire.Event, after uint64) { e.Time = origin + after*ms; s.put(e, "") }
	at(wire.Event{Kind: wire.KindModule, Object: 1}, 90)
	at(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeDriver, Object: 1, Size: 1000, Granted: 1000}, 10)
	at(wire.Event{Kind: wire.KindUse, Object: 1, Cost: 1}, 11)
	at(wire.Event{Kind: wire.KindCooled, Link: 9}, 16)
	at(wire.Event{Kind: wire.KindUse, Object: 1, Cost: 1}, 12) // a blocking one, that began before
	at(wire.Event{Kind: wire.KindSite, Tag: 1}, 80)
	at(wire.Event{Kind: wire.KindRelease, Object: 1, Outcome: wire.OutcomeDriver}, 14)
	a := s.analyse(t)
	if a.Peak.Time != 10*ms {
		t.Errorf("the peak is at %d ns, want %d", a.Peak.Time, 10*ms)
	}
	if want := []Bin{{From: 1 << 21, To: 1<<22 - 1, Count: 1, Bytes: 1000}}; !slices.Equal(a.Lifetimes, want) {
		t.Errorf("lifetimes %v, want %v: 4 ms", a.Lifetimes, want)
	}
	if want := 1000 * 0.002; math.Abs(a.Lag.ByteSeconds-want) > 1e-5 {
		t.Errorf("lag %v byte seconds, want %v", a.Lag.ByteSeconds, want)
	}
	if got := a.Snapshot.Totals.PeakInUseTime; got != origin+10*ms {
		t.Errorf("the model's peak is at %d, want %d", got, origin+10*ms)
	}
}
