package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

const cacheSlices = 32 // of a block

// cache is a simulated program: after a change of arm a slice takes longer by extra, which a slice later is down to a
// factor of e^(-1/slices).
type cache struct{ extra, slices float64 }

func (c cache) factor(place int) float64 {
	if c.slices == 0 {
		return 1
	}
	return 1 + c.extra*math.Exp(-float64(place)/c.slices)
}

// times returns the times of a block's slices: 3 % noise, and now and then a slice that takes three times as long.
func (c cache) times(r *rand.Rand, usual float64) []float64 {
	times := make([]float64, cacheSlices)
	for i := range times {
		times[i] = usual * c.factor(i) * math.Exp(0.03*r.NormFloat64())
		if r.IntN(100) == 0 {
			times[i] *= 3
		}
	}
	return times
}

// TestLeavesWarmingUpOut: what is left out leaves less than 1 % of warming up in the mean of a block, or SlicesToLeaveOut says
// that the block is too short.
func TestLeavesWarmingUpOut(t *testing.T) {
	const slices, runs = cacheSlices, 100
	for _, c := range []struct {
		cache
		settles bool
		most    int // slices left out in half of the runs
	}{
		{cache{0, 0}, true, 3},
		{cache{0.1, 1}, true, 5},
		{cache{1, 0.5}, true, 5},
		{cache{3, 1}, true, 10},
		{cache{0.5, 2}, true, 10},
		{cache{1, 20}, false, 10},
		{cache{0.3, 12}, false, 10},
	} {
		t.Run(fmt.Sprint(c.cache), func(t *testing.T) {
			var counts []float64
			bad, settles := 0, 0
			for seed := range uint64(runs) {
				r := rand.New(rand.NewPCG(seed, 3))
				var present, alternative [][]float64
				for range 4 {
					present = append(present, c.times(r, 100*r.Float64()+100))
					alternative = append(alternative, cache{}.times(r, 50))
				}
				if seed%2 == 0 { // either arm may be the one that warms up
					present, alternative = alternative, present
				}
				count, settled := SlicesToLeaveOut(present, alternative)
				if count < 1 || count > slices/3 {
					t.Fatalf("%d of %d slices are left out", count, slices)
				}
				counts = insertSorted(counts, float64(count))
				remaining := 0.0
				for place := count; place < slices; place++ {
					remaining += (c.factor(place) - 1) / float64(slices-count)
				}
				if settled {
					settles++
					if remaining > 0.01 {
						bad++
					}
				}
			}
			t.Logf("half leave out %v or less, nine of ten %v, %d settle, %d of them too early", median(counts), counts[runs*9/10], settles, bad)
			if bad > runs/20 || c.settles && settles < runs*9/10 || median(counts) > float64(c.most) {
				t.Error("want fewer")
			}
		})
	}
}

// TestShortBlocks: as few as three slices.
func TestShortBlocks(t *testing.T) {
	for n := 3; n < 12; n++ {
		block := make([]float64, n)
		for i := range block {
			block[i] = cache{1, 0.3}.factor(i)
		}
		count, _ := SlicesToLeaveOut([][]float64{block, block}, [][]float64{block, block})
		if count < 1 || count > n/3 {
			t.Errorf("%d of %d slices are left out", count, n)
		}
	}
	if count, settled := SlicesToLeaveOut(nil, nil); count != 1 || !settled {
		t.Errorf("without blocks: %d, %v", count, settled)
	}
}

// TestWarmCachesDoNotBias runs whole trials of a configuration with a cache that warms up against a configuration without a
// cache.
func TestWarmCachesDoNotBias(t *testing.T) {
	const runs, slices, effect = 60, cacheSlices, 0.9
	misses := 0
	for seed := range uint64(runs) {
		r, order, trial := rand.New(rand.NewPCG(seed, 4)), NewOrder(seed), NewTrial(Options{Budget: 1})
		warm := cache{extra: 2 * r.Float64(), slices: 2 * r.Float64()}
		run := func() (Arm, []float64) {
			if arm := order.NextArm(); arm == Alternative {
				return arm, cache{}.times(r, 100)
			}
			return Present, warm.times(r, 100*effect)
		}
		var first [2][][]float64
		for range 2 * blocksOfQuadruple {
			arm, times := run()
			first[arm] = append(first[arm], times)
		}
		count, _ := SlicesToLeaveOut(first[Present], first[Alternative])
		for trial.Answer().Stop == Continue {
			arm, times := run()
			trial.AddBlock(Block{Arm: arm, LeftOut: count, Iterations: slices - count, Time: mean(times[count:])})
		}
		if a := trial.Answer(); a.Low > effect-1 || a.High < effect-1 {
			misses++
		}
	}
	t.Logf("%d of %d intervals miss the truth", misses, runs)
	if misses > runs*7/100 {
		t.Errorf("%d of %d intervals miss the truth", misses, runs)
	}
}
