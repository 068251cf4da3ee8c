package analysis

import (
	"math"
	"math/bits"
)

// costs follow what the driver's calls take by size. Sums of squares are kept around the means (Welford 1962), so that
// nothing cancels out, however many calls there are.
type costs struct {
	line   moments
	bySize [65]moments // by powers of two
	all    histogram
}

// moments are those of pairs of a size and a duration.
type moments struct {
	n             uint64
	size, ns      float64 // means
	sizes, cs, nn float64 // Σ (size − mean)², Σ (size − mean)(ns − mean), Σ (ns − mean)²
}

// add takes a measured call; one of 0 ns was not measured.
func (c *costs) add(size uint64, ns uint32) {
	if ns == 0 {
		return
	}
	c.line.add(float64(size), float64(ns))
	c.bySize[bits.Len64(size)].add(float64(size), float64(ns))
	c.all.add(uint64(ns))
}

func (m *moments) add(size, ns float64) {
	m.n++
	dSize, dNS := size-m.size, ns-m.ns
	m.size += dSize / float64(m.n)
	m.ns += dNS / float64(m.n)
	m.sizes += dSize * (size - m.size)
	m.cs += dSize * (ns - m.ns)
	m.nn += dNS * (ns - m.ns)
}

// curve returns the line and its points. R² of calls that all took the same is 1: nothing is left to explain.
func (c *costs) curve() CostCurve {
	m := &c.line
	curve := CostCurve{Calls: m.n, A: m.ns, P50: c.all.percentile(0.5), P99: c.all.percentile(0.99)}
	if m.sizes > 0 {
		curve.B = m.cs / m.sizes
		curve.A = m.ns - curve.B*m.size
		curve.R2 = 1
		if m.nn > 0 {
			curve.R2 = min(1, m.cs*m.cs/m.sizes/m.nn)
		}
	}
	for i := range c.bySize {
		if p := &c.bySize[i]; p.n > 0 {
			curve.Points = append(curve.Points, CostPoint{
				Size: uint64(p.size + 0.5), NS: p.ns, Calls: p.n, StdDev: math.Sqrt(p.nn / float64(p.n)),
			})
		}
	}
	return curve
}
