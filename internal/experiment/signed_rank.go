package experiment

import (
	"math"
	"slices"
)

// Interval is an estimate with the interval that holds the truth.
type Interval struct{ Median, Low, High float64 }

// exactMost is the number of differences up to which the distribution of the signed-rank sum is computed exactly. Beyond
// it the normal approximation is used, which errs to the wide side in the tails.
const exactMost = 32

// signedRankInterval returns the Hodges–Lehmann estimate of sorted differences, the median of their n(n+1)/2 Walsh averages (means of any
// two, and each itself), and the interval from inverting Wilcoxon's signed-rank test at a level. It returns false if n
// is too small for the level.
//
// Hodges and Lehmann, Estimates of location based on rank tests, Ann. Math. Statist. 34 (1963). Up to 29 % of the
// differences may be arbitrarily wrong before the estimate is.
func signedRankInterval(differences []float64, level float64) (Interval, bool) {
	n := len(differences)
	all := n * (n + 1) / 2
	median := (walshAverage(differences, (all+1)/2) + walshAverage(differences, all/2+1)) / 2
	out := criticalSignedRank(n, level)
	if out < 0 {
		return Interval{Median: median}, false
	}
	return Interval{median, walshAverage(differences, out+1), walshAverage(differences, all-out)}, true
}

// criticalSignedRank returns the largest sum s of the positive ranks among n with P(sum ≤ s) ≤ level/2 where each sign is
// positive with probability ½; -1 if there is none.
func criticalSignedRank(n int, level float64) int {
	mean := float64(n*(n+1)) / 4
	if n > exactMost {
		deviation := math.Sqrt(mean * float64(2*n+1) / 6)
		return int(math.Floor(mean - 0.5 - math.Sqrt2*math.Erfcinv(level)*deviation))
	}
	chance := make([]float64, int(mean)+1) // of each sum, of the ranks so far
	chance[0] = 1
	for rank := 1; rank <= n; rank++ {
		for sum := len(chance) - 1; sum >= 0; sum-- {
			chance[sum] /= 2
			if sum >= rank {
				chance[sum] += chance[sum-rank] / 2 // not yet halved: sums go down
			}
		}
	}
	total := 0.0
	for sum, c := range chance {
		if total += c; total > level/2 {
			return sum - 1
		}
	}
	return len(chance) - 1
}

// walshAverage returns the k-th smallest Walsh average, from 1, of sorted differences, within a billionth of their range. So
// the time is O(n) rather than O(n²).
func walshAverage(sorted []float64, k int) float64 {
	const halvings = 40
	low, high := sorted[0], sorted[len(sorted)-1]
	rounding := max((high-low)*1e-9, 1e-12) // a difference below it is none: equal times of a coarse clock give one
	for range halvings {
		middle := low + (high-low)/2
		if countWalshUpTo(sorted, middle) >= k {
			high = middle
		} else {
			low = middle
		}
	}
	if math.Abs(high) <= rounding {
		return 0
	}
	return high
}

// countWalshUpTo returns how many Walsh averages are at most a limit.
func countWalshUpTo(sorted []float64, limit float64) int {
	count, last := 0, len(sorted)-1
	for i, d := range sorted {
		for last >= i && d+sorted[last] > 2*limit {
			last--
		}
		if last < i {
			break
		}
		count += last - i + 1
	}
	return count
}

// median returns the median of sorted values, 0 if there is none.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// insertSorted inserts a value into sorted values.
func insertSorted(sorted []float64, value float64) []float64 {
	place, _ := slices.BinarySearch(sorted, value)
	return slices.Insert(sorted, place, value)
}

// ComparePairs returns the change from other to present, which take times of the same pairs: the median of -0.37 means 37 % less. The
// interval is that of Wilcoxon's signed-rank test of the logarithms. It returns false if the pairs are too few for the level.
func ComparePairs(present, other []float64, level float64) (change Interval, ok bool) {
	var differences []float64
	for i := range present {
		differences = insertSorted(differences, math.Log(present[i]/other[i]))
	}
	change, ok = signedRankInterval(differences, level)
	return Interval{math.Expm1(change.Median), math.Expm1(change.Low), math.Expm1(change.High)}, ok
}
