// Package carve hands out sub-allocations of large blocks of device memory, called slabs, so that many buffers share
// one driver object (an OpenCL sub-buffer each) and the driver is called once per slab. It is pure: it knows offsets,
// never memory. Three ways: best fit with merging (seed 004), a buddy system (seed 001 §4.1), and small sub-allocations
// in bins on top of the buddy system (seed 001 §4.2). Placed leaves the choice to its caller, who has a plan.
//
// A Carver serves the requests of one class. It creates no slabs: when Carve finds no room, the caller creates a slab
// of SlabSize bytes, Adds it and asks again. Calls must be serialised by the caller; the same calls give the same
// answers. Slabs with low numbers are filled first, so that the others drain and can go back to the driver.
package carve

import (
	"fmt"
	"math/bits"
)

// Carver hands out sub-allocations. Slabs are created and numbered by the caller: from 1, below MaxSlabs, and a number
// is used again after Remove; memory is kept for the largest number so far. Whatever only a bug in the caller can do
// panics (a slab that is not there or there twice, a sub-allocation that is not handed out): going on would give two
// buffers the same bytes.
type Carver interface {
	// Round returns the bytes that a sub-allocation for a request of size bytes takes; 0 counts as 1. It returns 0 when
	// no sub-allocation can be that large, whatever the slab.
	Round(size uint64) uint64

	// SlabSize returns the bytes of a slab that has at least want bytes, rounded up to what can be managed; 0 when
	// none can be that large. A slab of SlabSize(Round(size)) bytes serves a request of size bytes. It may be more than
	// the device creates: then Usable says how much of a smaller slab can be used.
	SlabSize(want uint64) uint64

	// Usable returns the size of the largest request that an empty slab of slabSize bytes serves. 0: too small to be a
	// slab.
	Usable(slabSize uint64) uint64

	// Add takes in an empty slab of size bytes, with unknown contents. Bytes beyond what can be managed stay
	// unused. It panics where Usable(size) is 0.
	Add(slab int32, size uint64)

	// Remove forgets a slab that has no sub-allocations.
	Remove(slab int32)

	// Carve finds room for a request of size bytes; false: no slab has any.
	Carve(size uint64) (Part, bool)

	// Free takes a sub-allocation back, and says whether its slab has no sub-allocations left. Of p it reads Slab,
	// Offset and Size.
	Free(p Part) (empty bool)

	// Space returns what is free. It costs O(log n) at most; for Placed O(n).
	Space() Space

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

// Space describes the ranges that are free: those that Carve chooses from, not joined where they only happen to be
// neighbours.
type Space struct {
	Bytes   uint64  // of all ranges
	Largest uint64  // the largest request that Carve can serve now; 0 when none. NewUAlloc may refuse smaller ones
	Squares float64 // sum of the squares of the ranges' bytes
	Ranges  int
}

// Tally sums ranges up exactly: the sum of squares has 128 bits, so that what was added and taken away leaves nothing.
type Tally struct {
	Bytes     uint64
	Ranges    int
	high, low uint64 // of the sum of squares
}

// Add counts n more ranges of size bytes each; n may be negative.
func (t *Tally) Add(size uint64, n int) {
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

func (t *Tally) space(largest uint64) Space {
	return Space{Bytes: t.Bytes, Largest: largest, Squares: t.Squares(), Ranges: t.Ranges}
}

// What bounds a slab. In units of the alignment, so that slab and offset fit one word; in bytes, so that no sum of
// squares overflows.
const (
	maxUnits = 1 << 40
	maxBytes = 1 << 48
	maxAlign = 1 << 20
)

// place packs a slab and an offset in units into a word: places of lower slabs come first, then lower offsets. No
// place is 0.
func place(slab int32, unit uint64) uint64 { return uint64(slab)*maxUnits + unit }

// power panics unless value is a power of two that can be an alignment, and returns which.
func power(what string, value uint64) (shift int) {
	if bits.OnesCount64(value) != 1 || value > maxAlign {
		panic(fmt.Sprintf("carve: %s is %d, want a power of two up to %d", what, value, maxAlign))
	}
	return bits.TrailingZeros64(value)
}

// numbers keeps what is known of each slab, by its number.
type numbers[T any] struct {
	list  []T // [0] is none
	there []bool
}

// add makes room for a slab and returns it, zero.
func (n *numbers[T]) add(slab int32) *T {
	if slab < 1 || slab >= MaxSlabs {
		panic(fmt.Sprintf("carve: slab %d: want a number from 1 to %d", slab, MaxSlabs-1))
	}
	for len(n.list) <= int(slab) {
		var none T
		n.list, n.there = append(n.list, none), append(n.there, false)
	}
	if n.there[slab] {
		panic(fmt.Sprintf("carve: slab %d is there already", slab))
	}
	n.there[slab] = true
	return &n.list[slab]
}

// get returns a slab that must be there.
func (n *numbers[T]) get(slab int32) *T {
	if slab < 1 || int(slab) >= len(n.list) || !n.there[slab] {
		panic(fmt.Sprintf("carve: there is no slab %d", slab))
	}
	return &n.list[slab]
}

func (n *numbers[T]) remove(slab int32) {
	var none T
	n.list[slab], n.there[slab] = none, false
}
