package diff

import (
	"cmp"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
)

// once compares two amounts of memory with one value each.
func once(figure string, a, b float64) Change {
	c := Change{Figure: figure, Unit: Bytes, A: a, B: b, Test: Threshold, P: 1}
	delta := math.Abs(c.Delta())
	c.Significant = delta >= thresholdBytes && delta > thresholdRate*max(math.Abs(c.A), math.Abs(c.B))
	return c
}

// timed compares two durations that were measured once each.
func timed(figure string, a, b uint64) Change {
	c := Change{Figure: figure, Unit: Nanos, A: float64(a), B: float64(b), Test: Threshold, P: 1}
	c.Significant = math.Abs(c.Delta()) > thresholdTime*max(c.A, c.B)
	return c
}

// proportion compares two rates: x of n on each side.
func proportion(figure string, xa, na, xb, nb uint64) Change {
	c := Change{Figure: figure, Unit: Rate, Test: Proportions, P: 1}
	if na == 0 || nb == 0 {
		return c.rates(xa, na, xb, nb)
	}
	fa, fb := float64(na), float64(nb)
	pooled := float64(xa+xb) / (fa + fb)
	if spread := math.Sqrt(pooled * (1 - pooled) * (1/fa + 1/fb)); spread > 0 {
		c.P = twoSided((float64(xa)/fa - float64(xb)/fb) / spread)
	}
	return c.rates(xa, na, xb, nb)
}

func (c Change) rates(xa, na, xb, nb uint64) Change {
	if na > 0 {
		c.A = float64(xa) / float64(na)
	}
	if nb > 0 {
		c.B = float64(xb) / float64(nb)
	}
	return c
}

// events compares two counts. If both runs did the same work, differences are not by chance.
func events(figure string, a, b uint64, same bool) Change {
	c := Change{Figure: figure, Unit: Count, A: float64(a), B: float64(b), Test: Events, P: 1}
	switch {
	case same:
		c.Test = Exact
		c.Significant = a != b
	case a+b > 0:
		c.P = twoSided(c.Delta() / math.Sqrt(c.A+c.B))
	}
	return c
}

// means compares the mean durations of driver calls.
func means(figure string, a, b *analysis.CostCurve) Change {
	ma, va, na := moments(a.Points)
	mb, vb, nb := moments(b.Points)
	c := Change{Figure: figure, Unit: Nanos, A: ma, B: mb, Test: Means, P: 1}
	if na < 2 || nb < 2 {
		return c
	}
	if spread := math.Sqrt(va/na + vb/nb); spread > 0 {
		c.P = twoSided((ma - mb) / spread)
	}
	return c
}

// moments returns mean, variance and number of all calls of a curve.
func moments(points []analysis.CostPoint) (mean, variance, calls float64) {
	var sum, squares float64
	for i := range points {
		p := &points[i]
		n := float64(p.Calls)
		calls += n
		sum += n * p.NS
		squares += n * (p.StdDev*p.StdDev + p.NS*p.NS)
	}
	if calls == 0 {
		return 0, 0, 0
	}
	mean = sum / calls
	return mean, max(0, squares/calls-mean*mean), calls
}

// twoSided returns the probability that a standard normal value is at least as far from 0 as z.
func twoSided(z float64) float64 { return math.Erfc(math.Abs(z) / math.Sqrt2) }

// decide marks the significant changes among those with a probability, by the method of Holm (1979): the probability of
// any false one among them is at most level. The others were decided before.
func decide(changes []*Change) {
	tested := slices.DeleteFunc(slices.Clone(changes), func(c *Change) bool { return c.Test == Exact || c.Test == Threshold })
	slices.SortStableFunc(tested, func(a, b *Change) int { return cmp.Compare(a.P, b.P) })
	for i, c := range tested {
		if c.P > level/float64(len(tested)-i) {
			return
		}
		c.Significant = true
	}
}
