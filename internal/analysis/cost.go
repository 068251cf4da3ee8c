package analysis

import (
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// costs collects how long driver calls take, by size.
type costs struct {
	line   cost.Fit
	bySize [65]sized // by powers of two
	all    stats.Histogram
}

// sized are the calls of one power of two.
type sized struct {
	cost.Fit
	times stats.Histogram
}

// addCall counts a measured call; a call of 0 ns was not measured.
func (c *costs) addCall(size uint64, ns uint32) {
	if ns == 0 {
		return
	}
	c.line.AddCall(float64(size), float64(ns))
	class := &c.bySize[bits.Len64(size)]
	class.AddCall(float64(size), float64(ns))
	class.times.Add(uint64(ns))
	c.all.Add(uint64(ns))
}

const (
	explained  = 0.5 // share of the variance from which on a line describes calls
	linePoints = 3   // powers of two that have calls: some line explains any two
)

// LineFits reports whether the line describes the calls. A line does not that a few slow calls, as the first ones, make fall or negative at 0 bytes.
func (c *CostCurve) LineFits() bool {
	return c.R2 >= explained && len(c.Points) >= linePoints && c.B >= 0 && c.A >= 0
}

// HasOneSize reports whether all calls were of one size, so that what the size does is unknown.
func (c *CostCurve) HasOneSize() bool { return c.B == 0 && c.R2 == 0 }

// fitCurve returns the fitted line and its points. R² of calls that all took the same time is 1.
func (c *costs) fitCurve() CostCurve {
	curve := CostCurve{Calls: c.line.Calls, P50: c.all.Percentile(0.5), P99: c.all.Percentile(0.99), Times: c.all}
	curve.A, curve.B, curve.R2 = c.line.LeastSquaresLine()
	for i := range c.bySize {
		if p := &c.bySize[i]; p.Calls > 0 {
			curve.Points = append(curve.Points, CostPoint{
				Size: uint64(p.Size + 0.5), NS: p.NS, Calls: p.Calls, StdDev: p.StdDevOfCalls(),
				P25: p.times.Percentile(0.25), P50: p.times.Percentile(0.5), P75: p.times.Percentile(0.75),
			})
		}
	}
	return curve
}
