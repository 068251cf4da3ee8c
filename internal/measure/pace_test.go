package measure

import (
	"math/rand/v2"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/experiment"
)

// TestWaitsOfAProcess: the requests from one wait to the next are found although now and then another request takes long, or a
// wait is short. Cycles of half and of one and a half as many, in which every other round has a wait, are not taken for it.
func TestWaitsOfAProcess(t *testing.T) {
	for _, each := range []uint64{1, 2, 3, 4, 5, 8} {
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, each))
			p := newPace(&experiment.Plan{Requests: 1, Iterations: 1})
			now := uint64(1e9)
			for n := range uint64(500) {
				gap := uint64(2e3 + random.Float64()*2e3)
				if waits := n%each == each-1; waits && random.IntN(20) > 0 || !waits && random.IntN(50) == 0 {
					gap = uint64(1e6 + random.Float64()*1e6)
				}
				p.addRequest(n+1, now+gap, now+gap+500)
				now += gap + 500
			}
			if got := p.iterationsPerWait(100); got != each {
				t.Errorf("seed %d: %d requests from wait to wait, want %d", seed, got, each)
			} else if got > 1 && p.phase%each != 0 {
				t.Errorf("seed %d: the process waits before request %d", seed, p.phase)
			}
		}
	}
}
