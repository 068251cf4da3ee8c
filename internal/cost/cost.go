// Package cost is the simulated device of the what-if packages: what its driver takes for the calls of a policy. It
// computes only: it reads no clock and no file.
package cost

import (
	"fmt"
	"math"
)

// Line is the time of one call by size: A + B·size ns. For sizes below Below.Bytes it is that of Below, because
// drivers and C libraries often serve small sizes differently. All figures are finite and not negative.
type Line struct {
	A     float64 `json:"a_ns"`
	B     float64 `json:"b_ns_per_byte"`
	Below Below   `json:"below,omitzero"`
}

// Below is the line for sizes smaller than Bytes: A + B·size ns. The zero Below applies to no size.
type Below struct {
	Bytes uint64  `json:"bytes"`
	A     float64 `json:"a_ns"`
	B     float64 `json:"b_ns_per_byte"`
}

// CallNS returns the time of one call of that many bytes, in ns.
func (l *Line) CallNS(size uint64) float64 {
	if size < l.Below.Bytes {
		return l.Below.A + l.Below.B*float64(size)
	}
	return l.A + l.B*float64(size)
}

// yearNS is a year in ns. A longer time is a mistake.
const yearNS = 365 * 24 * 3600 * 1e9

// CheckCosts reports invalid figures of a line from outside.
func (l *Line) CheckCosts() error {
	for _, v := range []float64{l.A, l.B, l.Below.A, l.Below.B} {
		if v < 0 || v > yearNS || math.IsNaN(v) {
			return fmt.Errorf("%g is among its figures: want numbers from 0 to %g", v, float64(yearNS))
		}
	}
	return nil
}

// Device is the costs of a driver. The zero Device costs nothing.
type Device struct {
	Create Line `json:"create"` // blocks and slabs (clCreateBuffer)
	// Touch is the first use of the bytes of a new block, when a lazy driver gets the memory. A recording does not show
	// it.
	Touch   Line `json:"touch"`
	Release Line `json:"release"` // blocks and slabs (clReleaseMemObject)
	// Part is the create and release of a sub-buffer together: the cost of a sub-allocation.
	Part Line `json:"part"`
	// PartAssumed says that Part was not measured: AssumePartCost set it.
	PartAssumed bool `json:"part_assumed"`
}

// partMin is the least assumed cost of a sub-allocation in ns: somewhat more than a sub-buffer of PoCL (gpumemtop
// probe).
const partMin = 200

// AssumePartCost sets the cost of a sub-allocation if none was measured: that of the create and release of a block without
// bytes, which include the steps of a sub-buffer's. That is rather too much, but sub-allocations without a cost would
// make slabs the best of all. A device that costs nothing stays as it is.
func (d *Device) AssumePartCost() {
	known := d.Part != Line{} && !d.PartAssumed
	if known || (d.Create == Line{}) && (d.Release == Line{}) {
		return
	}
	d.Part = Line{A: max(d.Create.CallNS(0)+d.Release.CallNS(0), partMin)}
	d.PartAssumed = true
}
