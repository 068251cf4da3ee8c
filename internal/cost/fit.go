package cost

import "math"

// Fit lays a line through measured calls by least squares. Sums of squares are kept around the means (Welford 1962), so
// that nothing cancels out, however many calls there are. The zero Fit is ready for use, by one goroutine.
type Fit struct {
	Calls    uint64
	Size, NS float64 // means: bytes, ns

	sizes, both, times float64 // Σ (size − mean)², Σ (size − mean)(ns − mean), Σ (ns − mean)²
}

// Add takes one call.
func (f *Fit) Add(size, ns float64) {
	f.Calls++
	dSize, dNS := size-f.Size, ns-f.NS
	f.Size += dSize / float64(f.Calls)
	f.NS += dNS / float64(f.Calls)
	f.sizes += dSize * (size - f.Size)
	f.both += dSize * (ns - f.NS)
	f.times += dNS * (ns - f.NS)
}

// StdDev returns the standard deviation of the calls' ns, 0 without calls.
func (f *Fit) StdDev() float64 {
	if f.Calls == 0 {
		return 0
	}
	return math.Sqrt(f.times / float64(f.Calls))
}

// Free returns the line of least squares, whose ends may be negative, and what part of the differences it explains.
// With fewer than two sizes b and r2 are 0. Of calls that all took the same r2 is 1: nothing is left to explain.
func (f *Fit) Free() (a, b, r2 float64) {
	if f.sizes <= 0 {
		return f.NS, 0, 0
	}
	b, r2 = f.both/f.sizes, 1
	if f.times > 0 {
		r2 = min(1, f.both*f.both/f.sizes/f.times)
	}
	return f.NS - b*f.Size, b, r2
}

// Line returns the line of least squares among those that are nowhere negative: no call takes less than nothing,
// however far its size lies from those that were measured. Without calls it is zero.
func (f *Fit) Line() Line {
	a, b, _ := f.Free()
	switch {
	case b < 0:
		return Line{A: f.NS}
	case a < 0: // through the origin: Σ size·ns / Σ size²
		n := float64(f.Calls)
		return Line{B: (f.both + n*f.Size*f.NS) / (f.sizes + n*f.Size*f.Size)}
	}
	return Line{A: a, B: b}
}
