package study

import (
	"math"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/experiment"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
)

// watchedPairs are runs in which an iteration takes some ms on each side.
func watchedPairs(pairs int, against, present float64, creates [2]uint64) *WatchedComparison {
	r := &WatchedComparison{Configuration: "futhark", Against: "none"}
	for i := range pairs {
		side := func(ms float64, creates uint64) *Outcome {
			ms *= 1 + 0.01*float64(i%3)
			return &Outcome{Wall: time.Duration(1e9 + 1000*ms*1e6), iterations: measure.Iterations{NS: ms * 1e6 * float64(creates) / 6, Count: 900, Creates: creates}}
		}
		r.addPair([2]*Outcome{side(against, creates[0]), side(present, creates[1])})
	}
	return r
}

func insideOf(difference, half float64) *measure.Result {
	return &measure.Result{Alternative: "none", Answer: experiment.Answer{
		Difference: difference, Low: difference - half, High: difference + half, Looks: 1, Blocks: 32, Iterations: 960,
	}}
}

func TestWholeRunsAndOneRun(t *testing.T) {
	short := &measure.Result{Alternative: "none", Why: "too short: 3 requests"}
	for name, c := range map[string]struct {
		pairs  int
		inside *measure.Result
		want   string
	}{
		"agree":     {6, insideOf(-0.5, 0.02), "Inside one run it is 50 ± 2.0 % less, which agrees."},
		"disagree":  {6, insideOf(-0.3, 0.02), "it is 30 ± 2.0 % less: more apart than the intervals explain."},
		"too short": {6, short, "Inside one run: nothing: too short: 3 requests."},
		"no second": {6, nil, "an iteration takes 50 ± 0 % less"},
		"few pairs": {2, insideOf(-0.5, 0.02), "by 2 pairs of runs: 6 give an interval. Inside one run it is 50 ± 2.0 % less."},
	} {
		r := watchedPairs(c.pairs, 3, 1.5, [2]uint64{6, 3}) // one side's iteration looks like two of the other's
		r.setResults(c.inside)
		if got := r.Text(); !strings.Contains(got, c.want) || !strings.Contains(got, "With futhark a run takes 3") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if r.Creates != 3 || math.Abs(r.Iteration.Difference+0.5) > 1e-3 || r.Iteration.Known != (c.pairs >= 6) {
			t.Errorf("%s: %d creates, %+v", name, r.Creates, *r.Iteration)
		}
	}
}
