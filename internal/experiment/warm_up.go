package experiment

import (
	"math"
	"slices"
)

// warmUpLeft is the change of a slice's time, relative, that may remain after what is left out: a quarter of the usual
// half-width.
const warmUpLeft = 0.005

// SlicesToLeaveOut returns how many slices are left out at the beginning of each block, in both arms alike, because caches warm up
// after a change of arm: at least one, at most a third. The times of slices are in ns, by block: four blocks of each arm
// or more, of equal length. settled is false if the times still change after a third: then blocks should be longer, or
// the answer holds some of the warming up.
//
// For each place in a block the median over blocks is taken, relative to the blocks' second halves, so that neither drift
// nor a noisy neighbour looks like warming up. The count minimises the standard error of the mean of what remains (MSER:
// White, An effective truncation heuristic for bias reduction in simulation output, Simulation 69, 1997).
func SlicesToLeaveOut(present, alternative [][]float64) (count int, settled bool) {
	count, settled = 1, true
	for _, blocks := range [][][]float64{present, alternative} {
		profile := warmUpProfile(blocks)
		most, least := max(1, len(profile)/3), valuesToLeaveOut(profile)
		count = max(count, min(least, most))
		settled = settled && (least <= most || areSlicesWarmFrom(profile, most))
	}
	return count, settled
}

// areSlicesWarmFrom reports whether the places of a profile from one up to the half take as long as the second half, noise apart.
func areSlicesWarmFrom(profile []float64, from int) bool {
	half := len(profile) / 2
	rest, end := profile[from:half], profile[half:]
	noise := math.Sqrt(squaredDeviations(end) / float64(len(end)*len(rest)))
	return math.Abs(mean(rest)-mean(end)) <= warmUpLeft+2*noise
}

// warmUpProfile returns the usual time of each place in a block, relative to the second half of its block.
func warmUpProfile(blocks [][]float64) []float64 {
	if len(blocks) == 0 {
		return nil
	}
	profile := make([]float64, len(blocks[0]))
	usual := make([]float64, len(blocks))
	for i, b := range blocks {
		usual[i] = median(slices.Sorted(slices.Values(b[len(b)/2:])))
	}
	for place := range profile {
		var relative []float64
		for i, b := range blocks {
			if place < len(b) && usual[i] > 0 {
				relative = insertSorted(relative, b[place]/usual[i])
			}
		}
		profile[place] = median(relative)
	}
	return profile
}

// valuesToLeaveOut returns how many values at the beginning, at most half, are left out so that the standard error of the mean
// of the others is least.
func valuesToLeaveOut(values []float64) (count int) {
	least := math.Inf(1)
	for out := range len(values)/2 + 1 {
		rest := values[out:]
		if e := squaredDeviations(rest) / float64(len(rest)*len(rest)); e < least {
			count, least = out, e
		}
	}
	return count
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// squaredDeviations returns the sum of the squared differences from the mean.
func squaredDeviations(values []float64) float64 {
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return sum
}
