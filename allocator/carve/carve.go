// Package carve hands out sub-allocations of large blocks of device memory, called slabs, so that many buffers share
// one driver object (an OpenCL sub-buffer each) and the driver is called once per slab. It is pure: it knows offsets,
// never memory. Three carvers choose a range: best fit with merging (seed 004), a buddy system (seed 001 §4.1), and
// small sub-allocations in bins on top of the buddy system (seed 001 §4.2). Placed leaves the choice to its caller,
// which has a layout.
//
// A Carver serves the requests of one class. It creates no slabs: when Carve finds no room, the caller creates a slab
// of SlabSize bytes, Adds it and asks again. Calls must be serialised by the caller; the same calls give the same
// answers. Slabs with low numbers are filled first, so that the others drain and can go back to the driver.
package carve

import (
	"fmt"
	"math/bits"
)

// Carver hands out sub-allocations. The caller creates slabs and numbers them: from 1, below MaxSlabs. It may use a number
// again after RemoveSlab; a Carver needs memory in proportion to the largest number so far. Methods panic on calls that only a
// bug in the caller makes, such as AddSlab of a known slab, or Free of a range that was not handed out: otherwise two buffers
// would get the same bytes.
type Carver interface {
	// RoundUp returns the bytes that a sub-allocation for a request of size bytes takes; a size of 0 counts as 1. It returns
	// 0 when no sub-allocation of any slab can be that large.
	RoundUp(size uint64) uint64

	// SlabSize returns the bytes of a slab with at least want bytes, rounded up to a size that can be managed; 0 when no
	// slab can be that large. A slab of SlabSize(RoundUp(size)) bytes serves a request of size bytes. The device may not
	// create a slab of that size: then UsableBytes says how much of a smaller one can be used.
	SlabSize(want uint64) uint64

	// UsableBytes returns the size of the largest request that an empty slab of slabSize bytes serves; 0 when that is too small
	// for a slab.
	UsableBytes(slabSize uint64) uint64

	// AddSlab adds an empty slab of size bytes, with unknown contents. Bytes that cannot be managed stay unused. It panics
	// where UsableBytes(size) is 0.
	AddSlab(slab int32, size uint64)

	// RemoveSlab forgets a slab that has no sub-allocations.
	RemoveSlab(slab int32)

	// Carve finds room for a request of size bytes; false: no slab has room.
	Carve(size uint64) (Part, bool)

	// Free takes a sub-allocation back, and reports whether its slab has no sub-allocations left. It reads only p's
	// Slab, Offset and Size.
	Free(p Part) (empty bool)

	// FreeSpace describes the free ranges. It costs at most O(log n), for Placed O(n).
	FreeSpace() Space

	// Validate checks every invariant, for tests. It is slow.
	Validate() error
}

// MaxSlabs is one more than the largest number of a slab.
const MaxSlabs = 1 << 24

// Part is one range of a slab.
type Part struct {
	Slab   int32
	Offset uint64 // bytes from the slab's start
	Size   uint64 // bytes granted, at least those asked for
	Fresh  bool   // none of its bytes were used since the slab was added
}

// Space describes the free ranges from which Carve chooses. Neighbours count as two ranges unless the Carver joins them.
type Space struct {
	Bytes   uint64  // of all ranges
	Largest uint64  // the largest request that Carve can serve now; 0: none. The Carver of NewUAlloc may refuse smaller requests
	Squares float64 // sum of the squares of the ranges' bytes
	Ranges  int
}

// Tally sums ranges exactly: the sum of squares has 128 bits, so that it is 0 again when all ranges have been taken away.
type Tally struct {
	Bytes     uint64
	Ranges    int
	high, low uint64 // of the sum of squares
}

// AddRanges counts n more ranges of size bytes each; n may be negative.
func (t *Tally) AddRanges(size uint64, n int) {
	times := uint64(max(n, -n))
	high, low := bits.Mul64(size, size)
	over, low := bits.Mul64(low, times)
	high = high*times + over
	var carry uint64
	if n < 0 {
		t.low, carry = bits.Sub64(t.low, low, 0)
		t.high -= high + carry
	} else {
		t.low, carry = bits.Add64(t.low, low, 0)
		t.high += high + carry
	}
	t.Bytes += size * uint64(n)
	t.Ranges += n
}

// Squares returns the sum of the squares of the ranges' bytes.
func (t *Tally) Squares() float64 { return float64(t.high)*(1<<64) + float64(t.low) }

func (t *Tally) spaceWithLargest(largest uint64) Space {
	return Space{Bytes: t.Bytes, Largest: largest, Squares: t.Squares(), Ranges: t.Ranges}
}

// Bounds of a slab. The bound in units of the alignment lets slab and offset fit into one word. The bound in bytes
// keeps sums of squares from overflowing.
const (
	maxUnits = 1 << 40
	maxBytes = 1 << 48
	maxAlign = 1 << 20
)

// packPlace packs a slab and an offset in units into a word: places of lower slabs come first, then lower offsets. No
// place is 0.
func packPlace(slab int32, unit uint64) uint64 { return uint64(slab)*maxUnits + unit }

// exponentOfPowerOfTwo returns the exponent of a power of two that can be an alignment, and panics if value is not one.
func exponentOfPowerOfTwo(what string, value uint64) (shift int) {
	if bits.OnesCount64(value) != 1 || value > maxAlign {
		panic(fmt.Sprintf("carve: %s is %d, want a power of two up to %d", what, value, maxAlign))
	}
	return bits.TrailingZeros64(value)
}

// numbers has an element for each slab, by its number.
type numbers[T any] struct {
	list  []T // [0] is none
	added []bool
}

// addSlab returns the zero element of a new slab.
func (n *numbers[T]) addSlab(slab int32) *T {
	if slab < 1 || slab >= MaxSlabs {
		panic(fmt.Sprintf("carve: slab %d: want a number from 1 to %d", slab, MaxSlabs-1))
	}
	for len(n.list) <= int(slab) {
		var none T
		n.list, n.added = append(n.list, none), append(n.added, false)
	}
	if n.added[slab] {
		panic(fmt.Sprintf("carve: slab %d is there already", slab))
	}
	n.added[slab] = true
	return &n.list[slab]
}

// elementOf returns the element of a slab, which was added.
func (n *numbers[T]) elementOf(slab int32) *T {
	if slab < 1 || int(slab) >= len(n.list) || !n.added[slab] {
		panic(fmt.Sprintf("carve: there is no slab %d", slab))
	}
	return &n.list[slab]
}

// removeSlab forgets a slab.
func (n *numbers[T]) removeSlab(slab int32) {
	var none T
	n.list[slab], n.added[slab] = none, false
}
