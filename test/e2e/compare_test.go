package e2e

import (
	"encoding/json"
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
