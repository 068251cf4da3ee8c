package diff

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// sampled is a run whose hits, creates and driver times are drawn at random.
func sampled(rng *rand.Rand, hitRate, creates, driver float64) *analysis.Analysis {
	a := &analysis.Analysis{Snapshot: &stats.Snapshot{Program: "blur"}}
	t := &a.Snapshot.Totals
	for range 2000 {
		if rng.Float64() < hitRate {
			t.Hits++
		} else {
			t.Misses++
		}
	}
	t.Creates = uint64(math.Round(creates + math.Sqrt(creates)*rng.NormFloat64()))
	t.DriverCreates = t.Creates / 2
	took := make([]uint64, 500)
	for i := range took {
		took[i] = uint64(driver * (1 + 0.3*max(-3, rng.NormFloat64())))
	}
	a.CreateCost = costs(took...)
	return a
}

// costs is driver calls that took so long.
func costs(took ...uint64) analysis.CostCurve {
	var c analysis.CostCurve
	for _, ns := range took {
		c.Times.Add(ns)
	}
	c.Calls, c.P50 = c.Times.Total, c.Times.Percentile(0.5)
	return c
}

// TestSlabsAreNoSite: the row of what is free in slabs is no call site that was added.
func TestSlabsAreNoSite(t *testing.T) {
	run := func(tags ...stats.Tag) *analysis.Analysis {
		return &analysis.Analysis{Snapshot: &stats.Snapshot{Tags: tags}}
	}
	d := CompareRuns(run(), run(stats.Tag{Name: "(slabs)", Cached: 4096}, stats.Tag{Name: "a.c:1 make", Creates: 1}))
	if len(d.Tags) != 1 || d.Tags[0].Name != "a.c:1 make" {
		t.Errorf("call sites %+v", d.Tags)
	}
}

// TestSlowCall: one slow call, such as the first, does not decide, and few calls decide nothing.
func TestSlowCall(t *testing.T) {
	usual := []uint64{500, 500, 500, 500, 500, 500}
	const ms = 1_000_000
	for name, c := range map[string]struct {
		a, b []uint64
		line string // A, B, difference and mark
		p    bool   // the test gives a probability
	}{
		"one slow first call": {usual, []uint64{9 * ms, 500, 500, 500, 500, 500}, "504ns of 6 504ns of 6 =", false},
		"few":                 {usual, []uint64{9 * ms, 9 * ms, 9 * ms, 9 * ms}, "504ns of 6 9.18ms of 4 +9.17ms", false},
		"none":                {usual, nil, "504ns of 6 no call", false},
		"all":                 {slices.Repeat(usual, 9), slices.Repeat([]uint64{4000}, 54), "504ns of 54 4.03µs of 54 +3.53µs +700.0 % ▲", true},
		"ranks and medians disagree": {
			slices.Concat(slices.Repeat([]uint64{100}, 49), slices.Repeat([]uint64{1000}, 51)),
			slices.Concat(slices.Repeat([]uint64{900}, 55), slices.Repeat([]uint64{2000}, 45)), "1.01µs of 100 912ns of 100 -96ns -9.5 %", false,
		},
	} {
		run := func(took []uint64) *analysis.Analysis {
			return &analysis.Analysis{Snapshot: &stats.Snapshot{}, CreateCost: costs(took...)}
		}
		d := CompareRuns(run(c.a), run(c.b))
		var text bytes.Buffer
		if err := d.WriteText(&text, "a", "b", 0, 0); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if got, ok := strings.CutPrefix(strings.Join(strings.Fields(line), " "), "driver create "); ok && !strings.HasPrefix(got, "that") && got != c.line {
				t.Errorf("%s: %s, want %s", name, got, c.line)
			}
		}
		for i := range d.Overall {
			if got := &d.Overall[i]; got.Figure.Name == "driver create" && (got.P < 1) != c.p {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
}

// TestSlightTimes: time in the driver that matters to neither run has no sign of a change, however many times as much it is.
func TestSlightTimes(t *testing.T) {
	for want, driver := range map[string][2]uint64{
		"354µs 3.36ms +3.01ms":       {354_000, 3_360_000},
		"1ms 20ms +19ms +1900.0 % ▲": {1_000_000, 20_000_000},
		"20ms 1ms -19ms -95.0 % ▼":   {20_000_000, 1_000_000},
		"100ms 109ms +9ms":           {100_000_000, 109_000_000},
		"1s 1.05s +50ms +5.0 %":      {1_000_000_000, 1_050_000_000},
	} {
		run := func(ns uint64) *analysis.Analysis {
			return &analysis.Analysis{Snapshot: &stats.Snapshot{Started: 1, Finished: 1 + 1_000_000_000, Totals: stats.Totals{DriverNS: ns}}}
		}
		var text bytes.Buffer
		if err := CompareRuns(run(driver[0]), run(driver[1])).WriteText(&text, "a", "b", 0, 0); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if got, ok := strings.CutPrefix(strings.Join(strings.Fields(line), " "), "time in the driver "); ok && got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}

// TestSlightMedians: medians of calls that make no part of the run have no percentage, however many times as long they are.
func TestSlightMedians(t *testing.T) {
	for want, calls := range map[string]int{"30ns of 605 656ns of 14 +626ns ▲": 605, "30ns of 20000 656ns of 14 +626ns +2086.7 % ▲": 20_000} {
		run := func(took []uint64) *analysis.Analysis {
			return &analysis.Analysis{Snapshot: &stats.Snapshot{Started: 1, Finished: 1 + 1_000_000_000}, ReleaseCost: costs(took...)}
		}
		var text bytes.Buffer
		if err := CompareRuns(run(slices.Repeat([]uint64{30}, calls)), run(slices.Repeat([]uint64{650}, 14))).WriteText(&text, "a", "b", 0, 0); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if got, ok := strings.CutPrefix(strings.Join(strings.Fields(line), " "), "driver release "); ok && got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}

// TestMannWhitney compares the statistic with a result computed by hand: of 25 pairs b is longer in 20 and ties in 2.
func TestMannWhitney(t *testing.T) {
	a, b := costs(1, 2, 3, 4, 9), costs(4, 5, 6, 9, 10)
	want := (20 + 2/2. - 12.5) / math.Sqrt(25./12*(11-(6+6)/90.))
	if got := mannWhitney(&a.Times, &b.Times); math.Abs(got-want) > 1e-12 || mannWhitney(&b.Times, &a.Times) != -got {
		t.Errorf("%g, want %g", got, want)
	}
	if same := costs(7, 7, 7, 7, 7); mannWhitney(&same.Times, &same.Times) != 0 {
		t.Error("of equal calls")
	}
}

func significant(d *Diff) []string {
	var names []string
	for i := range d.Overall {
		if d.Overall[i].Significant {
			names = append(names, d.Overall[i].Figure.Name)
		}
	}
	return names
}

// TestChanceSeldomDiffers compares runs that differ by chance only, many times: one in a hundred may be called different.
func TestChanceSeldomDiffers(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	wrong := 0
	const trials = 1000
	for range trials {
		a, b := sampled(rng, 0.9, 10000, 5000), sampled(rng, 0.9, 10000, 5000)
		if len(significant(CompareRuns(a, b))) > 0 {
			wrong++
		}
	}
	if wrong > trials*2/100 {
		t.Errorf("%d of %d comparisons of equal runs found a difference", wrong, trials)
	}
}

func TestDifferencesAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for want, b := range map[string]*analysis.Analysis{
		"hit rate":      sampled(rng, 0.84, 10000, 5000),
		"creates":       sampled(rng, 0.9, 11000, 5000),
		"driver create": sampled(rng, 0.9, 10000, 5700),
	} {
		got := strings.Join(significant(CompareRuns(sampled(rng, 0.9, 10000, 5000), b)), ",")
		if !strings.Contains(got, want) {
			t.Errorf("%s differs, found: %q", want, got)
		}
	}
}

func TestSizesHaveAThreshold(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		want bool
	}{
		{1 << 20, 1 << 20, false},
		{1 << 20, 1<<20 + 65535, false},
		{1 << 20, 1<<20 + 65536, true},
		{1 << 30, 1<<30 + 65536, false}, // not one per cent
		{1 << 30, 1<<30 + 11<<20, true},
		{0, 65536, true},
		{65536, 0, true},
		{-65536, 65536, true},
	} {
		if got := compareAmounts(figures.PeakInUse, c.a, c.b).Significant; got != c.want {
			t.Errorf("%v and %v: %v", c.a, c.b, got)
		}
	}
}

func TestSameWorkIsExact(t *testing.T) {
	run := func(iterations, creates uint64) *analysis.Analysis {
		return &analysis.Analysis{
			Snapshot: &stats.Snapshot{Totals: stats.Totals{Creates: creates}},
			Phases:   []analysis.Phase{{Iterations: iterations}},
		}
	}
	if got := significant(CompareRuns(run(10, 100), run(10, 101))); len(got) != 1 || got[0] != "creates" {
		t.Errorf("one create more in as many iterations: %v", got)
	}
	if got := significant(CompareRuns(run(10, 100), run(11, 101))); len(got) != 0 {
		t.Errorf("one create more in more iterations: %v", got)
	}
}

func TestMatch(t *testing.T) {
	tags := func(names ...string) []stats.Tag {
		var list []stats.Tag
		for _, name := range names {
			list = append(list, stats.Tag{Name: name})
		}
		return list
	}
	var got []string
	for _, p := range matchSites(
		tags("a.c:1 f", "a.c:10 g", "b.c:5 h", "b.c:6 h", "gone.c:1 x", "main"),
		tags("a.c:1 f", "a.c:12 g", "b.c:7 h", "b.c:8 h", "main", "new.c:1 y"),
	) {
		before, after := "-", "-"
		if p.a != nil {
			before = p.a.Name
		}
		if p.b != nil {
			after = p.b.Name
		}
		got = append(got, string(p.fate)+" "+before+" > "+after)
	}
	want := `kept a.c:1 f > a.c:1 f
kept main > main
moved a.c:10 g > a.c:12 g
added - > b.c:7 h
added - > b.c:8 h
added - > new.c:1 y
removed b.c:5 h > -
removed b.c:6 h > -
removed gone.c:1 x > -`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

func TestLimitsThatDiffer(t *testing.T) {
	run := func(limits recording.Limits) *analysis.Analysis {
		return &analysis.Analysis{Snapshot: &stats.Snapshot{}, Run: analysis.Run{Header: recording.Header{Limits: limits}}}
	}
	got := CompareRuns(run(recording.Limits{"max_age": "0", "min_block": "4096"}), run(recording.Limits{"max_age": "30", "min_block": "4096"})).Notes
	if len(got) != 1 || got[0] != `limit max_age differs: "0" and "30"` {
		t.Errorf("%q", got)
	}
	if got := CompareRuns(run(nil), run(recording.Limits{"max_age": "30"})).Notes; len(got) != 1 {
		t.Errorf("limits of one run only: %q", got)
	}
}

func two() (a, b *analysis.Analysis) {
	a = &analysis.Analysis{
		Snapshot: &stats.Snapshot{
			Program: "blur", Policy: "none",
			Totals: stats.Totals{Misses: 1000, Creates: 1000, DriverCreates: 1000, PeakInUse: 8 << 20, PeakReserved: 8 << 20},
			Tags: []stats.Tag{
				{Name: "blur.c:88 tmp", Creates: 1000, Misses: 1000, PeakInUse: 8 << 20},
				{Name: "blur.c:9 lut", Creates: 1, PeakInUse: 4096},
			},
		},
	}
	b = &analysis.Analysis{
		Snapshot: &stats.Snapshot{
			Program: "blur", Policy: "futhark",
			Totals: stats.Totals{Hits: 990, Misses: 10, Creates: 1000, DriverCreates: 10, PeakInUse: 9 << 20, PeakReserved: 8 << 20},
			Tags: []stats.Tag{
				{Name: "blur.c:91 tmp", Creates: 1000, Hits: 990, Misses: 10, PeakInUse: 8 << 20},
				{Name: "blur.c:9 lut", Creates: 1, PeakInUse: 4096},
				{Name: "log.c:3 keep", Creates: 5, PeakInUse: 1 << 20},
			},
		},
		Leaks: []analysis.Leak{{Name: "log.c:3 keep", Buffers: 5, Bytes: 1 << 20}},
	}
	return a, b
}

func TestWrite(t *testing.T) {
	d := CompareRuns(two())
	var text bytes.Buffer
	if err := d.WriteText(&text, "before.gmt", "after.gmt", 0, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`policies differ: "none" and "futhark"`,
		"peak in use 8.00 MiB 9.00 MiB +1.00 MiB +12.5 % ▲",
		"hit rate 0.00 % 99.00 % +99.00 points ▲",
		"driver creates 1000 10 -990 -99.0 % ▼",
		"log.c:3 keep (added)",
		"blur.c:91 tmp, before blur.c:88 tmp",
		"1 call site is the same in both",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if i, j := strings.Index(text.String(), "log.c:3"), strings.Index(text.String(), "blur.c:91"); i > j {
		t.Error("the site whose peak changed most does not come first")
	}
	text.Reset()
	if err := d.WriteText(&text, "a", "b", 1, 0); err != nil || !strings.Contains(text.String(), "and 1 more call site") {
		t.Errorf("%v: with one site:\n%s", err, text.String())
	}
}

func TestWriteJSON(t *testing.T) {
	var data bytes.Buffer
	if err := CompareRuns(two()).WriteJSON(&data, "before", "after"); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Overall []struct {
			Figure      string
			P           *float64
			Test        string
			Significant bool
		}
		Tags []struct{ Tag, Fate string }
	}
	if err := json.Unmarshal(data.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Tags) != 3 || back.Tags[0].Fate != "added" || back.Overall[0].P != nil || !back.Overall[0].Significant {
		t.Errorf("%+v", back)
	}
	for _, c := range back.Overall {
		if c.Figure == "hit rate" && (c.P == nil || *c.P > 1e-6 || c.Test != string(Proportions)) {
			t.Errorf("hit rate: %+v", c)
		}
	}
}

// TestEmptyRuns compares runs without any event.
func TestEmptyRuns(t *testing.T) {
	empty := &analysis.Analysis{Snapshot: &stats.Snapshot{}}
	d := CompareRuns(empty, empty)
	if got := significant(d); len(got) != 0 || len(d.Tags) != 0 {
		t.Errorf("%v, %v", got, d.Tags)
	}
	var b bytes.Buffer
	if err := d.WriteJSON(&b, "a", "b"); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteText(&b, "a", "b", 0, 0); err != nil {
		t.Fatal(err)
	}
}

// TestTimingIsChance: where blocks wait for commands, the same work may miss once more; creates stay exact.
func TestTimingIsChance(t *testing.T) {
	of := func(driver, avoided uint64) *analysis.Analysis {
		s := &stats.Snapshot{Totals: stats.Totals{Creates: 100, DriverCreates: driver}}
		s.Totals.HazardsAvoided = avoided
		return &analysis.Analysis{Snapshot: s, Phases: []analysis.Phase{{Iterations: 50}}}
	}
	for avoided, want := range map[uint64]bool{0: true, 7: false} {
		d := CompareRuns(of(10, avoided), of(11, avoided))
		for i := range d.Overall {
			if c := &d.Overall[i]; c.Figure.Name == "driver creates" && c.Significant != want {
				t.Errorf("%d releases in use: %+v", avoided, c)
			} else if c.Figure.Name == "creates" && c.Test != Exact {
				t.Errorf("%+v", c)
			}
		}
	}
}
