// Package cost is the simulated device of the what-if packages: what its driver takes for what a policy asks of it. It is
// pure: it takes numbers, from wherever they come, and reads no clock and no file.
package cost

import (
	"fmt"
	"math"
)

// Line is what one call takes by size: A + B·size ns, and of sizes below Below.Bytes what Below says, because drivers
// and C libraries often serve small sizes in another way. All figures are finite and not negative.
type Line struct {
	A     float64 `json:"a_ns"`
	B     float64 `json:"b_ns_per_byte"`
	Below Below   `json:"below,omitzero"`
}

// Below is the line of the sizes that are smaller than Bytes: A + B·size ns. The zero Below is of none.
type Below struct {
	Bytes uint64  `json:"bytes"`
	A     float64 `json:"a_ns"`
	B     float64 `json:"b_ns_per_byte"`
}

// NS returns the ns of one call of that many bytes.
func (l *Line) NS(size uint64) float64 {
	if size < l.Below.Bytes {
		return l.Below.A + l.Below.B*float64(size)
	}
	return l.A + l.B*float64(size)
}

// most is a year in ns: what takes longer is a mistake.
const most = 365 * 24 * 3600 * 1e9

// Check says what is wrong with a line that comes from elsewhere.
func (l *Line) Check() error {
	for _, v := range []float64{l.A, l.B, l.Below.A, l.Below.B} {
		if v < 0 || v > most || math.IsNaN(v) {
			return fmt.Errorf("%g is among its figures: want numbers from 0 to %g", v, float64(most))
		}
	}
	return nil
}

// Device is what a driver takes. The zero Device takes nothing.
type Device struct {
	Create Line `json:"create"` // of blocks and slabs (clCreateBuffer)
	// Touch is the first use of the bytes of a new block, by which a driver that is lazy gets the memory. It cannot be
	// known from a recording.
	Touch   Line `json:"touch"`
	Release Line `json:"release"` // of blocks and slabs (clReleaseMemObject)
	// Part is the create and release of a sub-buffer together, which a part of a slab costs each time.
	Part Line `json:"part"`
	// PartAssumed says that Part was not measured: AssumePart set it.
	PartAssumed bool `json:"part_assumed"`
}

// leastPart is the least assumed cost of a sub-allocation, ns: somewhat more than a sub-buffer of PoCL (gpumemtop
// probe).
const leastPart = 200

// AssumePart sets the cost of a sub-allocation where none was measured: as much as the create and release of a block of
// no bytes, which take the steps of a sub-buffer's and more. That is rather too dear: parts that cost nothing would
// make slabs the best of all. A device that takes nothing stays as it is.
func (d *Device) AssumePart() {
	known := d.Part != Line{} && !d.PartAssumed
	if known || (d.Create == Line{}) && (d.Release == Line{}) {
		return
	}
	d.Part = Line{A: max(d.Create.NS(0)+d.Release.NS(0), leastPart)}
	d.PartAssumed = true
}
