// Package cost is the simulated device of the laboratory: what its driver takes for what a policy asks of it. It is
// pure: it takes numbers, from wherever they come, and reads no clock and no file.
package cost

// Line is what one call takes by size: A + B·size ns. Both are finite and not negative.
type Line struct {
	A float64 `json:"a_ns"`
	B float64 `json:"b_ns_per_byte"`
}

// NS returns the ns of one call of that many bytes.
func (l Line) NS(size uint64) float64 { return l.Sum(1, size) }

// Sum returns the ns of so many calls that have so many bytes together.
func (l Line) Sum(calls, bytes uint64) float64 { return l.A*float64(calls) + l.B*float64(bytes) }

// Device is what a driver takes. The zero Device takes nothing.
type Device struct {
	// Create and Release are of blocks and slabs (clCreateBuffer, clReleaseMemObject).
	Create, Release Line
	// Touch is the first use of the bytes of a new block, by which a driver that is lazy gets the memory. It cannot be
	// told from a recording.
	Touch Line
	// Part is the create and release of a sub-buffer together, which a part of a slab costs each time.
	Part Line
}

// CreateNS returns the ns of the create of a block.
func (d Device) CreateNS(size uint64) float64 { return d.Create.NS(size) }

// TouchNS returns the ns that the first use of so many bytes of a block takes.
func (d Device) TouchNS(size uint64) float64 { return d.Touch.NS(size) }

// ReleaseNS returns the ns of the release of a block.
func (d Device) ReleaseNS(size uint64) float64 { return d.Release.NS(size) }

// PartNS returns the ns that making and releasing a part of a slab takes.
func (d Device) PartNS(size uint64) float64 { return d.Part.NS(size) }
