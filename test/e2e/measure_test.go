package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// measuredJSON is what a summary and a report say of an experiment.
type measuredJSON struct {
	Alternative string  `json:"alternative"`
	Why         string  `json:"why"`
	Auto        string  `json:"auto"`
	Adopted     bool    `json:"adopted"`
	Time        float64 `json:"iteration_ns"`
	Other       float64 `json:"alternative_iteration_ns"`
	Difference  float64 `json:"difference"`
	Low         float64 `json:"difference_low"`
	High        float64 `json:"difference_high"`
	Memory      uint64  `json:"memory"`
	OtherMemory uint64  `json:"alternative_memory"`
	Blocks      int     `json:"blocks"`
	Iterations  int     `json:"iterations"`
}

func measuredOf(t *testing.T, text []byte) []measuredJSON {
	t.Helper()
	var all struct{ Measured []measuredJSON }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return all.Measured
}

// measure runs a program with flags, checks that it does as bare and that a replay repeats each decision, and returns what was measured
// and what the user reads.
func measure(t *testing.T, flags []string, program ...string) ([]measuredJSON, string) {
	t.Helper()
	bare := run(t, command{args: program})
	file, summary := filepath.Join(t.TempDir(), "x.gmt"), filepath.Join(t.TempDir(), "s.json")
	args := append([]string{gpumemtop(), "record", "-o", file, "--summary", summary}, flags...)
	result := run(t, command{args: append(append(args, "--"), program...)})
	if !result.sameEnd(bare) || string(result.stdout) != string(bare.stdout) {
		t.Fatalf("%s, bare %s\n%s", result, bare, result.stderr)
	}
	if c := decidedAgain(t, file); !c.IsExact() || c.First != "" {
		t.Errorf("replay: %+v", *c)
	}
	text, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	live := measuredOf(t, text)
	report := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}})
	if recorded := measuredOf(t, report.stdout); !reflect.DeepEqual(live, recorded) {
		t.Errorf("live %+v, the report of its recording %+v", live, recorded)
	}
	return live, string(result.stderr)
}

// measureStencil measures stencil, and a run three times as long where this machine's was too short for the first two alternatives,
// twice at most.
func measureStencil(t *testing.T, flags []string, iterations int) ([]measuredJSON, string) {
	t.Helper()
	for longest := 9 * iterations; ; iterations *= 3 {
		all, text := measure(t, flags, example("stencil"), itoa(iterations), "256K")
		if iterations == longest || !slices.ContainsFunc(all[:min(2, len(all))], func(m measuredJSON) bool { return m.Blocks < 32 }) {
			return all, text
		}
	}
}

// TestExperimentInTheRunningProgram: parts of a run are served without the pool, and the answer has an interval that makes sense.
func TestExperimentInTheRunningProgram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags             []string
		alternative, says string
	}{
		{[]string{"--measure", "--measure-until", "0.1"}, "none", "without the pool, but watched"},
		{[]string{"--policy", "none", "--measure=futhark"}, "futhark", "with futhark"},
	} {
		all, text := measureStencil(t, c.flags, 20_000)
		if len(all) != 1 {
			t.Errorf("%v: %+v\n%s", c.flags, all, text)
			continue
		}
		m := all[0]
		if m.Blocks < 32 || m.Blocks%4 != 0 || m.Iterations < 32*3 || m.Alternative != c.alternative {
			t.Errorf("%v: %+v\n%s", c.flags, m, text)
			continue
		}
		if !(m.Time > 0 && m.Other > 0 && -1 < m.Low && m.Low <= m.Difference && m.Difference <= m.High) {
			t.Errorf("%v: %+v", c.flags, m)
		}
		if c.alternative == "none" && (m.OtherMemory == 0 || m.Memory < m.OtherMemory) {
			t.Errorf("%v: %d bytes, without a pool %d", c.flags, m.Memory, m.OtherMemory)
		}
		if !strings.Contains(text, "an iteration takes ") || !strings.Contains(text, c.says) {
			t.Errorf("%v:\n%s", c.flags, text)
		}
	}
}

// TestNothingMeasured: the summary says why.
func TestNothingMeasured(t *testing.T) {
	t.Parallel()
	for want, program := range map[string][]string{
		"too short: ": {example("stencil"), "60", "1M"},
		"the program makes many requests without waiting for the device, so": {example("stencil"), "100000", "16K", "1000000"},
	} {
		m, text := measure(t, []string{"--measure"}, program...)
		if len(m) != 1 || m[0].Blocks > 0 || !strings.Contains(strings.Join(strings.Fields(text), " "), "measured nothing: "+want) {
			t.Errorf("%v: %+v\n%s", program, m, text)
		}
	}
}

// TestWaitsWithoutWaiting: a program that gives memory up while its command runs, and learns of the end by callbacks or by asking,
// has blocks that count, though nothing is recorded of its commands. A machine that is too slow for an answer gets a longer run.
func TestWaitsWithoutWaiting(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"callback", "poll"} {
		var m []measuredJSON
		var r outcome
		for iterations := 100_000; iterations <= 900_000 && (len(m) == 0 || m[0].Blocks < 32); iterations *= 3 {
			summary := filepath.Join(t.TempDir(), "s.json")
			args := []string{gpumemtop(), "--headless", "--measure", "--measure-until", "50", "--summary", summary, "--", testProgram("paced"), itoa(iterations), "16K", how}
			r = run(t, command{args: args})
			text, err := os.ReadFile(summary)
			if err != nil {
				t.Fatal(err)
			}
			m = measuredOf(t, text)
		}
		if r.code != 0 || len(m) != 1 || m[0].Blocks < 32 || m[0].Time == 0 {
			t.Errorf("%s: %s, %+v\n%s", how, r, m, r.stderr)
		}
	}
}

// TestSeveralAlternatives: each has its turn and its result, in which order the user named them.
func TestSeveralAlternatives(t *testing.T) {
	t.Parallel()
	all, text := measureStencil(t, []string{"--measure=none,slab,max_age=5s", "--measure-until", "50"}, 50_000)
	if len(all) != 3 || all[0].Alternative != "none" || all[1].Alternative != "slab" || all[2].Alternative != "futhark,max_age=5" || all[0].Blocks < 32 || all[1].Blocks < 32 {
		t.Errorf("%+v\n%s", all, text)
	}
	if !strings.Contains(text, "without the pool, but watched") || !strings.Contains(text, "with slab") || !strings.Contains(text, "with futhark (max_age=5)") {
		t.Errorf("%s", text)
	}
}

// TestWrongMeasurements: each wrong use of the flags is refused before the program starts.
func TestWrongMeasurements(t *testing.T) {
	t.Parallel()
	for want, flags := range map[string][]string{
		`unknown policy "nonsense"`:                 {"--measure=nonsense"},
		"want LIMIT=VALUE behind the colon":         {"--measure=slab:"},
		"limit max_cached_bytes: bad size":          {"--measure=futhark:max_cached_bytes=much"},
		`unknown limit "nonsense"`:                  {"--measure=nonsense=1"},
		"compares with one policy":                  {"--measure=auto"},
		"it names slab twice":                       {"--measure=slab,none,slab"},
		"a configuration is missing beside a comma": {"--measure=none,,slab"},
		"off stands alone":                          {"--measure=none,off"},
		"policy auto decides by what it measures":   {"--policy", "auto", "--measure=off"},
		"want a percentage from 0.1 to 50":          {"--measure", "--measure-until", "0"},
		"--spill works without a pool, so that the": {"--measure", "--spill"},
	} {
		r := run(t, command{args: append(append([]string{gpumemtop(), "--headless"}, flags...), example("tiny"))})
		if r.code != 125 || !strings.Contains(string(r.stderr), want) || len(r.stdout) > 0 {
			t.Errorf("%v: %s\n%s", flags, r, r.stderr)
		}
	}
}

// TestExperimentByKey: E begins an experiment in a dashboard, and ends it on another terminal; without the library that pools it says
// what to do.
func TestExperimentByKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := called(t, example("train"), "measured")
	a, b := openTerminal(t, 120, 36), openTerminal(t, 120, 36)
	for _, term := range []*terminal{a, b} {
		term.line("export XDG_RUNTIME_DIR=" + dir + "; cd " + dir)
	}
	a.line("clear; " + gpumemtop() + " " + program + " 1000000")
	a.await(`train\.c:\d+`)
	b.line("clear; " + gpumemtop() + " attach --session " + filepath.Base(program))
	b.await(`train\.c:\d+`)
	a.keys("E")
	a.await(`experiment: parts of the run are served by none; E ends it`)
	a.await(`measuring: \d+ blocks?`)
	b.await(`measuring: \d+ blocks?`)
	b.keys("E")
	b.await(`the experiment ends; E begins another`)
	a.keys("q")
	a.keys("t")
	a.await(`  measured   nothing: (it was stopped|too short)`)
	a.line("clear; " + gpumemtop() + " --policy none " + program + " 1000000")
	a.await(`RUNNING .*policy none`)
	a.await(`train\.c:\d+`)
	a.keys("E")
	a.await(`gpumemtop --policy none --measure`)
	a.keys("q")
	a.keys("t")
	a.await(`exited|was ended`)
}
