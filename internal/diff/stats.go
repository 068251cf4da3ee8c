package diff

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// compareAmounts compares two amounts of memory with one value each.
func compareAmounts(f *figures.Figure, a, b float64) Change {
	c := Change{Figure: f, A: a, B: b, Test: Threshold, P: 1}
	delta := math.Abs(c.Delta())
	c.Significant = delta >= thresholdBytes && delta > thresholdRate*max(math.Abs(c.A), math.Abs(c.B))
	return c
}

// compareDurations compares two durations that were measured once each. The longer run took some ns: of less than a hundredth
// of them a single slow call may be the cause.
func compareDurations(f *figures.Figure, a, b, run float64) Change {
	c := Change{Figure: f, A: a, B: b, Test: Threshold, P: 1}
	c.slight = math.Abs(c.Delta()) < thresholdRun*run
	c.Significant = !c.slight && math.Abs(c.Delta()) > thresholdTime*max(c.A, c.B)
	return c
}

// compareRates compares two rates, each of a number of requests.
func compareRates(f *figures.Figure, a, b figures.Value) Change {
	c := Change{Figure: f, A: a.Number, B: b.Number, Test: Proportions, P: 1}
	if a.Of == 0 || b.Of == 0 {
		return c
	}
	na, nb := float64(a.Of), float64(b.Of)
	pooled := (a.Number*na + b.Number*nb) / (na + nb)
	if spread := math.Sqrt(pooled * (1 - pooled) * (1/na + 1/nb)); spread > 0 {
		c.P = twoSidedProbability((a.Number - b.Number) / spread)
	}
	return c
}

// compareCounts compares two counts. If both runs did the same work, differences are not by chance.
func compareCounts(f *figures.Figure, a, b figures.Value, same bool) Change {
	c := Change{Figure: f, A: a.Number, B: b.Number, Test: Events, P: 1}
	switch {
	case same:
		c.Test = Exact
		c.Significant = a.Exact != b.Exact
	case a.Exact+b.Exact > 0:
		c.P = twoSidedProbability(c.Delta() / math.Sqrt(c.A+c.B))
	}
	return c
}

// compareMedians compares the median durations of driver calls. The test is of ranks, which one slow call hardly changes. It
// gives no probability where the ranks do not say what the medians say. The longer run took some ns: a difference that is less
// than a hundredth of them for all calls is no part of anything.
func compareMedians(f *figures.Figure, a, b figures.Value, run float64) Change {
	c := Change{Figure: f, A: a.Number, B: b.Number, OfA: a.Of, OfB: b.Of, Test: Ranks, P: 1}
	c.slight = math.Abs(c.Delta())*float64(max(a.Of, b.Of)) < thresholdRun*run
	if min(a.Of, b.Of) < callsLeast {
		return c
	}
	if z := mannWhitney(a.Times, b.Times); z*c.Delta() > 0 {
		c.P = twoSidedProbability(z)
	}
	return c
}

// mannWhitney returns how far, in standard deviations, the calls of b rank above those of a (Mann and Whitney 1947). Calls of
// one bucket are tied, for which the variance is corrected.
func mannWhitney(a, b *stats.Histogram) float64 {
	counts := map[uint64][2]float64{} // by duration: calls of a and of b
	for i, h := range []*stats.Histogram{a, b} {
		for ns, n := range h.Buckets() {
			both := counts[ns]
			both[i] = float64(n)
			counts[ns] = both
		}
	}
	var na, above, ties float64
	for _, ns := range slices.Sorted(maps.Keys(counts)) {
		inA, inB := counts[ns][0], counts[ns][1]
		above += inB * (na + inA/2)
		na += inA
		both := inA + inB
		ties += both*both*both - both
	}
	nb := float64(b.Total)
	all := na + nb
	variance := na * nb / 12 * (all + 1 - ties/(all*(all-1)))
	if variance <= 0 { // all calls are in one bucket
		return 0
	}
	return (above - na*nb/2) / math.Sqrt(variance)
}

// twoSidedProbability returns the probability that a standard normal value is at least as far from 0 as z.
func twoSidedProbability(z float64) float64 { return math.Erfc(math.Abs(z) / math.Sqrt2) }

// markSignificant marks the significant changes among those with a probability, by the method of Holm (1979): the probability of
// any false one among them is at most level. The others were decided before.
func markSignificant(changes []*Change) {
	tested := slices.DeleteFunc(slices.Clone(changes), func(c *Change) bool { return c.Test == Exact || c.Test == Threshold })
	slices.SortStableFunc(tested, func(a, b *Change) int { return cmp.Compare(a.P, b.P) })
	for i, c := range tested {
		if c.P > level/float64(len(tested)-i) {
			return
		}
		c.Significant = true
	}
}
