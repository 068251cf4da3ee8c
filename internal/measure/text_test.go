package measure

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/experiment"
)

func TestText(t *testing.T) {
	answer := experiment.Answer{
		Present: experiment.Estimate{Time: 2.14e6, Bytes: 20 << 20}, Alternative: experiment.Estimate{Time: 3.41e6, Bytes: 8 << 20},
		Difference: -0.372, Low: -0.40, High: -0.35, Looks: 1, Certain: true, Blocks: 24, Iterations: 1920,
	}
	slower, alike := answer, answer
	slower.Difference, slower.Low, slower.High = 0.0123, 0.002, 0.021
	alike.Difference, alike.Low, alike.High, alike.Certain = 0.0004, -0.004, 0.0048, false
	skew := answer
	skew.Difference, skew.Low, skew.High = -0.08, -0.22, -0.002
	for want, r := range map[string]*Result{
		"measuring: 24 blocks, 37 ± 2.8 % less so far": {Running: true, Answer: answer},
		"measuring: 4 blocks so far":                   {Running: true, Answer: experiment.Answer{Blocks: 4}},
		"nothing: an answer needs more than 1 block":   {Answer: experiment.Answer{Blocks: 1}},
		"nothing: it is dark":                          {Why: "it is dark"},
		"nothing with slab: it is dark":                {Alternative: "slab", Why: "it is dark"},
		"an iteration takes 2.14 ms instead of 3.41 ms without the pool, but watched: 37 ± 2.8 % less (24 blocks, 1 920 iterations); it costs 12.0 MiB": {
			Alternative: "none", Answer: answer, Why: "the program ended",
		},
		"an iteration takes 2.14 ms instead of 3.41 ms with slab (max_part=1, max_age=2): 1.2 ± 1.0 % more (24 blocks, 1 920 iterations)": {
			Alternative: "slab,max_part=1,max_age=2", Answer: slower,
		},
		"an iteration takes 2.14 ms instead of 3.41 ms with pow2: 8.0 % less (0.2 to 22) (24 blocks, 1 920 iterations)": {
			Alternative: "pow2", Answer: skew,
		},
		"no certain difference: an iteration takes 0.04 ± 0.44 % more than with slab (24 blocks, 1 920 iterations)": {
			Alternative: "slab", Answer: alike,
		},
	} {
		r.Requests = 5
		if got := r.Text(); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}
