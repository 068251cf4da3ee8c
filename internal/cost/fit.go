package cost

import "math"

// Fit fits a line to measured calls by least squares. It keeps the sums of squares around the means (Welford 1962), so
// that no precision is lost, however many calls there are. The zero Fit is ready for use, by one goroutine.
type Fit struct {
	Calls    uint64
	Size, NS float64 // means: bytes, ns

	sizes, both, times float64 // Σ (size − mean)², Σ (size − mean)(ns − mean), Σ (ns − mean)²
}

// AddCall adds a call.
func (f *Fit) AddCall(size, ns float64) {
	f.Calls++
	dSize, dNS := size-f.Size, ns-f.NS
	f.Size += dSize / float64(f.Calls)
	f.NS += dNS / float64(f.Calls)
	f.sizes += dSize * (size - f.Size)
	f.both += dSize * (ns - f.NS)
	f.times += dNS * (ns - f.NS)
}

// StdDevOfCalls returns the standard deviation of the calls' ns, 0 without calls.
func (f *Fit) StdDevOfCalls() float64 {
	if f.Calls == 0 {
		return 0
	}
	return math.Sqrt(f.times / float64(f.Calls))
}

// LeastSquaresLine returns the line of least squares, which may be negative somewhere, and the share of the variance that
// it explains. With fewer than two sizes b and r2 are 0. If all calls took equally long, r2 is 1.
func (f *Fit) LeastSquaresLine() (a, b, r2 float64) {
	if f.sizes <= 0 {
		return f.NS, 0, 0
	}
	b, r2 = f.both/f.sizes, 1
	if f.times > 0 {
		r2 = min(1, f.both*f.both/f.sizes/f.times)
	}
	return f.NS - b*f.Size, b, r2
}
