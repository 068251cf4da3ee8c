package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// run has 3 MiB at its peak, a quarter of it waste, 9 hits in 10, a leak of 64 KiB and 1 KiB of growth per iteration.
func run() *analysis.Analysis {
	s := &stats.Snapshot{
		Totals: stats.Totals{
			Hits: 90, Misses: 10, SteadyHits: 49, SteadyRequests: 50, PeakInUse: 3 << 20, PeakReserved: 5 << 20, PeakCached: 2 << 20,
			Creates: 101, DriverCreates: 11, DriverNS: 1_500_000_000, DriverCreateP99: 2000, Cached: 100, LargestCached: 25,
			Uses: 1, InFlight: stats.InFlight{Peak: 4 << 20},
		},
		Tags: []stats.Tag{
			{Name: "blur.c:88 make_tmp", Hits: 90, Misses: 10, Creates: 100, PeakInUse: 2 << 20},
			{Name: "main.c:7 main", Creates: 1, PeakInUse: 1 << 20},
			{Name: "(slabs)", Slabs: true, PeakInUse: 9 << 20},
		},
		Objects: []stats.ObjectCount{
			{Type: stats.ObjectType(wire.HeldKernel), Live: 4, Leaked: 3}, {Type: stats.Events, Live: 1200, Leaked: 1200}, {Type: stats.SubBuffers, Leaked: 5},
		},
		Findings: []stats.Finding{{Kind: wire.DiagDoubleRelease}, {Kind: wire.DiagStaleArgument}},
	}
	return &analysis.Analysis{
		Snapshot: s,
		Peak: analysis.Peak{InUse: 3 << 20, Tags: []analysis.PeakTag{
			{InUse: 2 << 20, Requested: 1 << 20}, {InUse: 2 << 20, Requested: 2 << 20},
		}},
		Leaks: []analysis.Leak{{Name: "main.c:7 main", Buffers: 1, Bytes: 64 << 10}},
		Phases: []analysis.Phase{{Growth: 1 << 30}, {Iterations: 5, Growth: -4}, {Iterations: 50, Growth: 1024, Mean: 1024, Objects: []analysis.ObjectGrowth{
			{Type: "event", PerIteration: 23.5}, {Type: "kernel", PerIteration: 0.5}, {Type: "sub_buffer", PerIteration: 9},
		}}},
	}
}

func judge(t *testing.T, rules string, a *analysis.Analysis) *Result {
	t.Helper()
	parsed, err := ParseRules(rules)
	if err != nil {
		t.Fatalf("%s: %v", rules, err)
	}
	return parsed.JudgeRun(a)
}

// TestRulesHoldAtTheirExactFigures has each rule kept at its exact figure and broken one step beyond.
func TestRulesHoldAtTheirExactFigures(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range []struct{ key, kept, broken string }{
		{"max_peak_in_use", `"3MiB"`, "3145727"},
		{"max_peak_reserved", `"5M"`, `"4.9M"`},
		{"max_peak_cached", "2097152", "2097151"},
		{"max_peak_released_in_flight", `"4MiB"`, "4194303"},
		{"max_leaked_bytes", `"64KiB"`, "0"},
		{"max_leaked_buffers", "1", "0"},
		{"max_leaked_objects", "1203", "1202"},
		{"max_leaked_events", "1200", "1199"},
		{"max_object_growth", "24", "23"},
		{"min_hit_rate", "0.9", "0.91"},
		{"min_steady_hit_rate", "0.98", "1"},
		{"max_misses", "10", "9"},
		{"max_waste", "0.25", "0.24"},
		{"max_external_fragmentation", "0.75", "0.74"},
		{"max_growth", `"1KiB"`, "1023"},
		{"max_creates", "101", "100"},
		{"max_driver_creates", "11", "10"},
		{"max_driver_create_p99", `"2us"`, `"1999ns"`},
		{"max_driver_time", `"1.5s"`, `"1499ms"`},
		{"max_mistakes", "1", "0"},
		{"max_lost_events", "7", "6"},
	} {
		a := run()
		if c.key == lostEvents {
			a.Snapshot.Lost = 7
		}
		if r := judge(t, c.key+" = "+c.kept, a); !r.Passed {
			t.Errorf("%s = %s is kept, but: %+v", c.key, c.kept, r.Verdicts)
		}
		if r := judge(t, c.key+" = "+c.broken, a); r.Passed || r.Verdicts[0].Why != "" {
			t.Errorf("%s = %s is broken, but: %+v", c.key, c.broken, r.Verdicts)
		}
		tested[c.key] = true
	}
	for _, f := range metrics {
		if !tested[f.Rule] {
			t.Errorf("no test of the rule %s", f.Rule)
		}
		delete(tested, f.Rule)
	}
	for key := range tested {
		t.Errorf("no rule %s", key)
	}
}

func TestCallSites(t *testing.T) {
	rules := "max_peak_in_use = \"3MiB\"\n[[tag]]\nmatch = '\\.c:'\nmax_peak_in_use = \"1MiB\"\nmax_leaked_bytes = 0\n"
	r := judge(t, rules, run())
	var got []string
	for _, v := range r.Verdicts {
		got = append(got, v.Rule+" "+v.Tag+" "+map[bool]string{true: "ok", false: "no"}[v.Passed])
	}
	want := "max_peak_in_use  ok, max_peak_in_use blur.c:88 make_tmp no, max_peak_in_use main.c:7 main ok, " +
		"max_leaked_bytes blur.c:88 make_tmp ok, max_leaked_bytes main.c:7 main no"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

// TestNothingToJudge fails what holds for nothing.
func TestNothingToJudge(t *testing.T) {
	empty := &analysis.Analysis{Snapshot: &stats.Snapshot{}}
	for rules, why := range map[string]string{
		"min_hit_rate = 0":                           "no request was poolable",
		"min_steady_hit_rate = 0":                    "no request was poolable",
		"max_growth = 0":                             "no iterations",
		"[[tag]]\nmatch = \"blurr\"\nmax_misses = 1": "no call site matches",
	} {
		if r := judge(t, rules, empty); r.Passed || !strings.Contains(r.Verdicts[0].Why, why) {
			t.Errorf("%s: %+v", rules, r.Verdicts)
		}
	}
	poolless := run()
	poolless.Snapshot.Policy = "none"
	for _, rules := range []string{"min_hit_rate = 0", "min_steady_hit_rate = 0", "[[tag]]\nmatch = \"blur\"\nmin_hit_rate = 0"} {
		if r := judge(t, rules, poolless); r.Passed || !strings.Contains(r.Verdicts[0].Why, "no pool") {
			t.Errorf("without a pool, %s: %+v", rules, r.Verdicts)
		}
	}
	a := run()
	a.Snapshot.Lost = 3
	if r := judge(t, "max_misses = 1000", a); r.Passed {
		t.Error("lost events pass unasked")
	}
	if r := judge(t, "max_misses = 1000\nmax_lost_events = 3", a); !r.Passed {
		t.Errorf("lost events fail although a rule allows them: %+v", r.Verdicts)
	}
	a = run()
	a.Damage = "cut off"
	if r := judge(t, "max_misses = 1000", a); r.Passed {
		t.Error("a torn recording passes")
	}
	a = run()
	a.Snapshot.LeftOut = "3 creates"
	if r := judge(t, "max_misses = 1000", a); r.Passed || r.Verdicts[0].Why != "3 creates are left out: figures are too low" {
		t.Errorf("figures that are too low pass: %+v", r.Verdicts)
	}
}

func TestBadRules(t *testing.T) {
	for rules, want := range map[string]string{
		"":                                "no rules",
		"max_peak = 1":                    "do you mean max_peak_in_use?",
		"leaks = 0":                       "unknown rule \"leaks\": there are max_peak_in_use",
		"max_misses = \"many\"":           "max_misses: bad bound many: want a whole number",
		"max_misses = 1.5":                "want a whole number",
		"min_hit_rate = 90":               "want a rate from 0 to 1",
		"max_peak_in_use = -1":            "want 0 or more",
		"max_peak_in_use = \"lots\"":      "bad size",
		"max_driver_time = 3":             "want a time such as",
		"max_driver_time = \"soon\"":      "bad time",
		"max_misses = [1]":                "want a whole number",
		"max_misses = 1\nmax_misses = 2":  "line 2",
		"x = = 1":                         "line 1",
		"[tag]\nmatch = 'x'":              "[[tag]] with two brackets",
		"tag = 1":                         "[[tag]] with two brackets",
		"[[tag]]\nmax_misses = 1":         "[[tag]] 1: no match",
		"[[tag]]\nmatch = '('":            "[[tag]] 1: match: error parsing regexp",
		"[[tag]]\nmatch = 'x'":            "[[tag]] 1: no rules",
		"[[tag]]\nmatch='x'\nmax_waste=0": "for whole runs, not for call sites",
	} {
		if _, err := ParseRules(rules); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", rules, err, want)
		}
	}
}

func TestWrite(t *testing.T) {
	r := judge(t, "max_peak_in_use = \"4MiB\"\nmin_hit_rate = 0.95", run())
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	want := "ok    max_peak_in_use: 3.00 MiB, want at most 4.00 MiB\n" +
		"FAIL  min_hit_rate: 90.00 %, want at least 95.00 %\n1 of 2 rules kept\n"
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", text.String(), want)
	}
	var data bytes.Buffer
	if err := r.WriteJSON(&data); err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(data.Bytes(), &back); err != nil || back.Passed || len(back.Verdicts) != 2 || back.Verdicts[1].Value == nil || *back.Verdicts[1].Value != 0.9 {
		t.Errorf("%v: %s", err, data.String())
	}
}

// TestNarrowViolationsAreShown shows what rounding would hide.
func TestNarrowViolationsAreShown(t *testing.T) {
	for rules, want := range map[string]string{
		"max_peak_in_use = 3145727":       "3145728 B, want at most 3145727 B",
		"min_hit_rate = 0.900001":         "0.9, want at least 0.900001",
		"max_peak_in_use = \"4MiB\"":      "3.00 MiB, want at most 4.00 MiB",
		"max_driver_time = \"1.499999s\"": "1.5s, want at most 1.499999s",
	} {
		if r := judge(t, rules, run()); r.Verdicts[0].text != want {
			t.Errorf("%s: %q, want %q", rules, r.Verdicts[0].text, want)
		}
	}
}

// FuzzParse takes anything: an error or rules that can be judged.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"max_peak_in_use = \"1G\"", "[[tag]]\nmatch = 'x'\nmax_misses = 3", "min_hit_rate = nan", "tag = [[1]]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := ParseRules(text)
		if err != nil {
			return
		}
		if r := rules.JudgeRun(run()); len(r.Verdicts) == 0 {
			t.Errorf("%q: rules without a verdict", text)
		}
	})
}

// TestHelpFits: a terminal of 100 columns shows each rule on one line.
func TestHelpFits(t *testing.T) {
	for line := range strings.Lines(HelpText()) {
		if n := utf8.RuneCountInString(line); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestZeroIsAValue: a figure of 0 differs from an unknown one.
func TestZeroIsAValue(t *testing.T) {
	rules, err := ParseRules("max_leaked_bytes = 0\nmin_hit_rate = 0.5\nmax_driver_time = \"1ns\"\n")
	if err != nil {
		t.Fatal(err)
	}
	var data, text bytes.Buffer
	result := rules.JudgeRun(&analysis.Analysis{Snapshot: &stats.Snapshot{}})
	if err := errors.Join(result.WriteJSON(&data), result.WriteText(&text)); err != nil {
		t.Fatal(err)
	}
	if got := data.String(); !strings.Contains(got, `"value": 0`) || !strings.Contains(got, `"value": null`) {
		t.Error(got)
	}
	if !strings.Contains(text.String(), "at most 1ns") {
		t.Error(text.String())
	}
}

// Patterns have a bound together: a few bytes can ask for thousands of repetitions.
func TestManyPatterns(t *testing.T) {
	section := func(pattern string) string { return "[[tag]]\nmatch = '" + pattern + "'\nmax_leaked_bytes = 1\n" }
	for text, want := range map[string]string{
		strings.Repeat(section("((a{1,30}){1,30})"), 20_000): "too much memory",
		section(strings.Repeat("x", 5000)):                   "want at most 4096",
		section("(((a{100}){10}"):                            "missing closing",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ParseRules(text)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 512<<20 {
			t.Errorf("%.80q: %d MiB were made", text, made>>20)
		}
	}
	if _, err := ParseRules(strings.Repeat(section("solver::step<.*>|^main$"), 5000)); err != nil {
		t.Error(err)
	}
}
