package carve

import (
	"errors"
	"fmt"
	"slices"
)

// Placed hands out ranges of one slab that begin at offsets which its caller has named in advance. It is a Carver that
// finds no room by itself: Carve never succeeds. The time of OwnerOf, TakeRange and Free does not depend on the number of
// sub-allocations; FreeSpace visits each sub-allocation.
type Placed struct {
	starts []uint64 // offsets, in order
	index  table    // indices of starts, by place
	taken  marks    // indices of starts that have sub-allocations
	ranges []placed // sub-allocations by start
	slab   int32    // 0: none
	size   uint64
	used   uint64 // no byte from this offset on was ever handed out
	parts  int
	align  uint64
}

// placed is a sub-allocation. An end of 0 means that there is none.
type placed struct {
	end   uint64
	owner int32
}

// NewPlaced returns a Placed for ranges that begin at some offsets, in any order. It rounds sizes up to multiples of
// align bytes. It panics unless align is a power of two, 1 MiB at most, and all offsets are multiples of align.
func NewPlaced(align uint64, offsets []uint64) *Placed {
	exponentOfPowerOfTwo("alignment", align)
	c := &Placed{align: align, starts: slices.Compact(slices.Sorted(slices.Values(offsets)))}
	for i, offset := range c.starts {
		if offset&(align-1) != 0 {
			panic(fmt.Sprintf("carve: offset %d is no multiple of %d", offset, align))
		}
		c.index.addPlace(packPlace(1, offset/align), int32(i)+1)
	}
	c.ranges, c.taken = make([]placed, len(c.starts)), newMarks(len(c.starts))
	return c
}

// StartIndex returns the number of an offset, for OwnerOf and TakeRange; -1 if NewPlaced did not get the offset.
func (c *Placed) StartIndex(offset uint64) int {
	return int(c.index.numberAtPlace(packPlace(1, offset/c.align))) - 1
}

// RoundUp implements Carver.
func (c *Placed) RoundUp(size uint64) uint64 {
	if size > maxBytes {
		return 0
	}
	return (max(size, 1) + c.align - 1) &^ (c.align - 1)
}

// SlabSize implements Carver.
func (c *Placed) SlabSize(want uint64) uint64 { return c.RoundUp(want) }

// UsableBytes implements Carver.
func (c *Placed) UsableBytes(slabSize uint64) uint64 { return min(slabSize, maxBytes) &^ (c.align - 1) }

// AddSlab implements Carver. There is one slab at a time.
func (c *Placed) AddSlab(slab int32, size uint64) {
	size = c.UsableBytes(size)
	if slab < 1 || c.slab != 0 || size == 0 {
		panic(fmt.Sprintf("carve: slab %d of %d bytes is to be slab %d", slab, size, c.slab))
	}
	c.slab, c.size, c.used = slab, size, 0
}

// RemoveSlab implements Carver.
func (c *Placed) RemoveSlab(slab int32) {
	if slab != c.slab || c.parts != 0 {
		panic(fmt.Sprintf("carve: slab %d is to go and has %d parts", slab, c.parts))
	}
	c.slab, c.size = 0, 0
}

// Carve implements Carver: it finds nothing.
func (c *Placed) Carve(uint64) (Part, bool) { return Part{}, false }

// OwnerOf returns the owner of one of the size bytes from a start on, 0 if all of them are free.
func (c *Placed) OwnerOf(start int, size uint64) int32 {
	if c.ranges[start].end != 0 {
		return c.ranges[start].owner
	}
	if before := c.taken.nextBelow(start); before >= 0 && c.ranges[before].end > c.starts[start] {
		return c.ranges[before].owner
	}
	if next := start + 1; next == len(c.starts) || c.starts[next] >= c.starts[start]+size {
		return 0
	}
	if after := c.taken.nextAbove(start); after >= 0 && c.starts[after] < c.starts[start]+size {
		return c.ranges[after].owner
	}
	return 0
}

// TakeRange hands out a free range of the slab; size is a multiple of the alignment. From then on OwnerOf returns owner, which
// is not 0, for bytes of the range.
func (c *Placed) TakeRange(start int, size uint64, owner int32) Part {
	offset := c.starts[start]
	if size == 0 || offset+size > c.size || size&(c.align-1) != 0 || c.OwnerOf(start, size) != 0 {
		panic(fmt.Sprintf("carve: %d bytes at %d are not free", size, offset))
	}
	c.taken.set(start)
	c.ranges[start] = placed{offset + size, owner}
	c.parts++
	part := Part{Slab: c.slab, Offset: offset, Size: size, Fresh: offset >= c.used}
	c.used = max(c.used, offset+size)
	return part
}

// Free implements Carver.
func (c *Placed) Free(p Part) (empty bool) {
	start := c.StartIndex(p.Offset)
	if p.Slab != c.slab || start < 0 || c.starts[start] != p.Offset || c.ranges[start].end != p.Offset+p.Size {
		panic(fmt.Sprintf("carve: %+v comes back and is no part", p))
	}
	c.taken.clear(start)
	c.ranges[start] = placed{}
	c.parts--
	return c.parts == 0
}

// FreeSpace implements Carver, in O(n). The free ranges are the gaps between sub-allocations.
func (c *Placed) FreeSpace() Space {
	var tally Tally
	largest, end := uint64(0), uint64(0)
	gap := func(to uint64) {
		if size := to - end; size != 0 {
			tally.AddRanges(size, 1)
			largest = max(largest, size)
		}
	}
	for start := range c.taken.eachNumber {
		gap(c.starts[start])
		end = c.ranges[start].end
	}
	gap(c.size)
	return tally.spaceWithLargest(largest)
}

// Validate implements Carver.
func (c *Placed) Validate() error {
	if c.slab == 0 && c.parts != 0 {
		return errors.New("parts of no slab")
	}
	parts, end := 0, uint64(0)
	for start := range c.taken.eachNumber {
		r := &c.ranges[start]
		if c.starts[start] < end || r.end <= c.starts[start] || r.end > c.size || r.end > c.used || r.owner == 0 {
			return fmt.Errorf("a range from %d to %d of owner %d, after one that ends at %d", c.starts[start], r.end, r.owner, end)
		}
		parts, end = parts+1, r.end
	}
	for start := range c.ranges {
		if c.ranges[start].end != 0 {
			parts--
		}
	}
	if live := c.taken.count(); parts != 0 || live != c.parts {
		return fmt.Errorf("%d parts are marked, %d are counted, %d have no mark", live, c.parts, -parts)
	}
	return c.taken.validate()
}
