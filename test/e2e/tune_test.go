package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tuned is what tune --format json prints, as far as it is looked at.
type tuned struct {
	Tried       int        `json:"configurations"`
	Recommended tunedPoint `json:"recommended"`
	None        tunedPoint `json:"none"`
	Present     tunedPoint `json:"present"`
	BoundPeak   uint64     `json:"bound_peak_reserved"`
	Measured    *struct {
		Before, After struct {
			DriverNS uint64 `json:"driver_ns"`
			Peak     uint64 `json:"peak_reserved"`
			WallNS   uint64 `json:"wall_ns"`
		}
		Predicted float64 `json:"predicted_change"`
	} `json:"measured"`
	Compared *compared `json:"compared"`
}

type tunedPoint struct {
	Policy   string  `json:"policy"`
	DriverNS float64 `json:"driver_ns_simulated"`
	Peak     uint64  `json:"peak_reserved_poolable"`
}

// tune tunes a program, with nothing left behind.
func tune(t *testing.T, flags []string, args ...string) tuned {
	t.Helper()
	folder := t.TempDir()
	words := append([]string{gpumemtop(), "tune", "--format", "json", "--configurations", "40"}, flags...)
	result := run(t, command{args: append(append(words, "--"), args...), env: []string{"TMPDIR=" + folder}})
	var out tuned
	if err := json.Unmarshal(result.stdout, &out); err != nil || result.code != 0 {
		t.Fatalf("tune ended with %s, %v\nstdout: %s\nstderr: %s", result, err, result.stdout, result.stderr)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%d files are left behind, %v", len(left), err)
	}
	limited := slices.Contains(flags, "--budget") // a busy machine tries fewer in that time
	if out.Tried != 40 && !limited || out.Tried == 0 || out.BoundPeak == 0 || out.None.Policy != "none" {
		t.Errorf("%+v", out)
	}
	return out
}

// Without a pool every buffer of a loop is the driver's: a pool is found, predicted to save nearly all of that, and when
// the program runs with it, it does. Then it is compared with the bare program. On a busy machine one call may be interrupted for
// longer than all others take (250 ms were seen), so one of three searches has to measure it.
func TestTuneMeasuresWhatItFound(t *testing.T) {
	t.Parallel()
	for range 3 {
		out := tune(t, []string{"--policy", "none", "--budget", "5s"}, example("churn"), "100000", "4K", "2")
		if out.Recommended.Policy == "none" || out.Present.Policy != "none" || out.Recommended.DriverNS > out.None.DriverNS/2 {
			t.Fatalf("recommended: %+v, no pool: %+v", out.Recommended, out.None)
		}
		m := out.Measured
		if m == nil || m.Predicted > -0.5 || m.Before.WallNS == 0 || m.After.Peak == 0 {
			t.Fatalf("measured: %+v", m)
		}
		if c := out.Compared; c == nil || c.Pairs == 0 || c.Speed.Median == 0 {
			t.Errorf("compared: %+v", c)
		}
		if m.After.DriverNS <= m.Before.DriverNS/2 {
			return
		}
		t.Logf("measured: %+v", m)
	}
	t.Error("no search of three measured that the pool saves half of the driver's time")
}

// What is best already is not run again.
func TestTuneLeavesWhatIsBest(t *testing.T) {
	t.Parallel()
	out := tune(t, nil, example("churn"), "2000", "4K", "2")
	if out.Recommended.Policy != "futhark" || out.Measured != nil {
		t.Errorf("recommended: %+v, measured: %+v", out.Recommended, out.Measured)
	}
}

// TestTuneNamesPoolableMemory: what replays reserve is without what no pool serves, as creates that copy. Where a program has none of
// that, it is all memory.
func TestTuneNamesPoolableMemory(t *testing.T) {
	t.Parallel()
	for want, args := range map[bool][]string{true: {example("train"), "20"}, false: {example("churn"), "2000", "4K", "2"}} {
		r := run(t, command{args: []string{gpumemtop(), "tune", "--configurations", "20", record(t, args...)}})
		text := strings.Join(strings.Fields(string(r.stdout)), " ")
		for _, part := range []string{". Simulated sizes are of poolable memory.", " times its poolable memory.", " of poolable memory. futhark takes "} {
			if r.code != 0 || strings.Contains(text, part) != want {
				t.Errorf("%v: %s, %q is there: %v\n%s", args, r, part, !want, r.stdout)
			}
		}
	}
}

// TestTuneLive: candidates are measured in one run. The best one is in the file, with what was measured, which --config reads; nothing is
// written where what was in use stays.
func TestTuneLive(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tuned.toml")
	r := run(t, command{args: []string{
		gpumemtop(), "tune", "--live", "--policy", "none", "--configurations", "3", "--format", "json", "--write", file, "--", example("stencil"), "18000", "1M",
	}})
	var out struct {
		Before, Best, Written string
		Better                bool
		Trials                []struct {
			Configuration, Against string
			Adopted                bool
			Memory                 uint64
			Measured               *measuredJSON
		}
	}
	if err := json.Unmarshal(r.stdout, &out); err != nil || r.code != 0 || len(out.Trials) == 0 || out.Before != "none" {
		t.Fatalf("%s, %v\n%s%s", r, err, r.stdout, r.stderr)
	}
	best := "none"
	for i, tried := range out.Trials {
		if tried.Against != best || tried.Configuration == best || tried.Memory == 0 || i == 0 && (tried.Measured == nil || tried.Measured.Blocks < 32) {
			t.Errorf("trial %d: %+v", i, tried)
		}
		if tried.Adopted {
			best = tried.Configuration
		}
	}
	if out.Best != best || out.Better != (best != "none") {
		t.Errorf("%+v", out)
	}
	text, err := os.ReadFile(file)
	if wrote := err == nil; wrote != out.Better || (out.Written == file) != wrote {
		t.Fatalf("%+v, %v", out, err)
	}
	if !out.Better {
		return
	}
	if !strings.Contains(string(text), "# gpumemtop tune --live, measured in one run of ") || !strings.Contains(string(text), ", taken; ") {
		t.Errorf("%s", text)
	}
	if again := run(t, command{args: []string{gpumemtop(), "--headless", "--config", file, example("tiny")}}); again.code != 0 {
		t.Errorf("%s\n%s", again, again.stderr)
	}
}

// TestTuneLiveWrongly: each wrong use says what is wrong.
func TestTuneLiveWrongly(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"gpumemtop tune --live -- CMD":          {"run.gmt"},
		"want 100ms to 24h":                     {"--budget", "1ms", "--", example("tiny")},
		"auto switches policies while a prog":   {"--policy", "auto", "--", example("tiny")},
		"too short: the program made ":          {"--", example("stencil"), "20", "1M"},
		"the program fails (exit status 3): tu": {"--", "/bin/sh", "-c", "exit 3"},
	} {
		r := run(t, command{args: append([]string{gpumemtop(), "tune", "--live"}, args...)})
		if r.code != 125 || !strings.Contains(string(r.stderr), want) || len(r.stdout) > 0 {
			t.Errorf("%v: %s\n%s", args, r, r.stderr)
		}
	}
}
