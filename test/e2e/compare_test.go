package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// compared is what compare --format json prints, and what tune says of the same.
type compared struct {
	Configuration string   `json:"configuration"`
	Pairs         int      `json:"pairs"`
	Bare          []uint64 `json:"bare_ns"`
	Pooled        []uint64 `json:"pooled_ns"`
	Speed         struct {
		Median, Low, High, Confidence float64
	} `json:"times_as_fast"`
	Requested uint64 `json:"peak_requested"`
	Reserved  uint64 `json:"peak_reserved"`
}

func TestCompareRunsInPairs(t *testing.T) {
	t.Parallel()
	result := run(t, command{args: []string{gpumemtop(), "compare", "--runs", "2", "--format", "json", "--policy", "pow2", example("tiny")}})
	var c compared
	if err := json.Unmarshal(result.stdout, &c); err != nil || result.code != 0 {
		t.Fatalf("ended with %s, %v\n%s%s", result, err, result.stdout, result.stderr)
	}
	if c.Configuration != "pow2" || c.Pairs != 2 || len(c.Bare) != 2 || len(c.Pooled) != 2 || c.Speed.Confidence != 0.5 ||
		c.Speed.Low <= 0 || c.Speed.Low > c.Speed.Median || c.Speed.Median > c.Speed.High || c.Requested == 0 || c.Reserved < c.Requested {
		t.Errorf("%+v", c)
	}
	for _, line := range []string{"run 1: bare, to warm up", "run 2: bare", "run 3: pow2", "run 4: pow2", "run 5: bare"} {
		if !contains(result.stderr, line) {
			t.Errorf("no word of %q:\n%s", line, result.stderr)
		}
	}
}

// compare --outputs finds the program that depends on memory that nothing wrote, and no other.
func TestCompareFindsWhoReadsWhatNothingWrote(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"futhark", "slab", "arena"} {
		for _, c := range []struct {
			kind            string
			status, ignored int
		}{{"add", 1, 0}, {"timed", 1, 1}, {"fill", 0, 0}, {"write", 0, 0}, {"only", 0, 0}, {"part", 0, 0}} {
			if policy != "futhark" && c.kind != "add" && c.kind != "fill" {
				continue
			}
			result := run(t, command{args: []string{gpumemtop(), "compare", "--outputs", "--format", "json", "--policy", policy, fault("accumulate"), c.kind}})
			var got struct {
				Recycled   uint64
				Differs    bool
				Ignored    int `json:"ignored_lines"`
				Difference *struct{ Bare, Pooled string }
			}
			if err := json.Unmarshal(result.stdout, &got); err != nil {
				t.Fatalf("ended with %s, %v\n%s%s", result, err, result.stdout, result.stderr)
			}
			if result.code != c.status || got.Differs != (c.status == 1) || got.Ignored != c.ignored || got.Recycled != 2 {
				t.Errorf("%s under %s: %s, %+v", c.kind, policy, result, got)
			}
			if d := got.Difference; c.status == 1 && (d == nil || d.Bare != "round 2: 1024" || d.Pooled != "round 2: 0") {
				t.Errorf("%s under %s: %+v", c.kind, policy, d)
			}
		}
	}
	result := run(t, command{args: []string{gpumemtop(), "compare", "--outputs", "sh", "-c", "date +%N; exec " + fault("accumulate") + " fill"}})
	if result.code != 0 || !strings.Contains(strings.Join(strings.Fields(string(result.stdout)), " "), "1 line differs between bare runs and was ignored") {
		t.Errorf("%s\n%s%s", result, result.stdout, result.stderr)
	}
	result = run(t, command{args: []string{gpumemtop(), "compare", "--outputs", "date", "+%N"}})
	if result.code != 125 || !contains(result.stderr, "no OpenCL call was seen") {
		t.Errorf("%s\n%s", result, result.stderr)
	}
	result = run(t, command{args: []string{gpumemtop(), "compare", "--outputs", "sh", "-c", fault("accumulate") + " fill 4K 1 >/dev/null; date +%N"}})
	if result.code != 125 || !contains(result.stderr, "it cannot be compared") {
		t.Errorf("%s\n%s", result, result.stderr)
	}
}

// compare --against runs both sides under gpumemtop, times their iterations, and holds an experiment in one run against that.
func TestCompareAgainst(t *testing.T) {
	t.Parallel()
	result := run(t, command{args: []string{gpumemtop(), "compare", "--runs", "1", "--against", "none", "--format", "json", example("stencil"), "8000", "64K"}})
	var c struct {
		Configuration, Against string
		Times                  []float64 `json:"ns"`
		AgainstTimes           []float64 `json:"against_ns"`
		Each                   []float64 `json:"iteration_ns"`
		AgainstEach            []float64 `json:"against_iteration_ns"`
		Iterations             int
		Creates                int `json:"creates_of_iteration"`
		Iteration              *struct {
			Difference float64
			Known      bool `json:"has_interval"`
		}
		Measured *measuredJSON
	}
	if err := json.Unmarshal(result.stdout, &c); err != nil || result.code != 0 {
		t.Fatalf("ended with %s, %v\n%s%s", result, err, result.stdout, result.stderr)
	}
	if c.Configuration != "futhark" || c.Against != "none" || len(c.Times) != 1 || len(c.AgainstTimes) != 1 || len(c.Each) != 1 || len(c.AgainstEach) != 1 ||
		c.Iterations != 7199 || c.Creates != 1 || c.Iteration == nil || c.Iteration.Known || !(c.Iteration.Difference > -1) {
		t.Errorf("%+v", c)
	}
	if !(c.Each[0]*7199 < c.Times[0] && c.AgainstEach[0]*7199 < c.AgainstTimes[0]) {
		t.Errorf("iterations take longer than the run: %+v", c)
	}
	if c.Measured == nil || c.Measured.Alternative != "none" {
		t.Errorf("inside one run: %+v", c.Measured)
	}
	for _, line := range []string{"run 2: none", "run 3: futhark", "run 4: both, in parts of one run"} {
		if !contains(result.stderr, line) {
			t.Errorf("no word of %q:\n%s", line, result.stderr)
		}
	}
	ahead := run(t, command{args: []string{gpumemtop(), "compare", "--runs", "1", "--against", "none", example("stencil"), "40000", "16K", "1000000"}})
	if ahead.code != 0 || !contains(ahead.stdout, "a run takes") || contains(ahead.stdout, "iteration") {
		t.Errorf("the program makes its requests before the device is done with them: %s\n%s%s", ahead, ahead.stdout, ahead.stderr)
	}
	for want, flags := range map[string][]string{
		`--against: unknown policy "nonsense"`:          {"--against", "nonsense"},
		"--against compares with one policy":            {"--against", "auto"},
		"for --against: want LIMIT=VALUE behind":        {"--against", "slab:"},
		"--against is for measuring time: leave it out": {"--against", "none", "--outputs"},
		"bad value 0 for --runs":                        {"--against", "none", "--runs", "0"},
	} {
		r := run(t, command{args: append(append([]string{gpumemtop(), "compare"}, flags...), example("tiny"))})
		if r.code != 125 || !contains(r.stderr, want) || len(r.stdout) > 0 {
			t.Errorf("%v: %s\n%s", flags, r, r.stderr)
		}
	}
}
