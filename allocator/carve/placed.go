package carve

import (
	"errors"
	"fmt"
	"slices"
)

// Placed hands out ranges of one slab that begin where its caller said before. It is a Carver that finds no room by itself:
// Carve never succeeds. Owner, Take and Free take the same time however many sub-allocations there are; Space looks at each.
type Placed struct {
	starts []uint64 // offsets, in order
	index  table    // of starts, by place
	taken  marks    // starts of sub-allocations
	ranges []placed // of these, by start
	slab   int32    // 0: none
	size   uint64
	used   uint64 // no byte from this offset on was ever handed out
	parts  int
	align  uint64
}

// placed is a sub-allocation; without an end there is none.
type placed struct {
	end   uint64
	owner int32
}

// NewPlaced returns one for ranges that begin at some offsets, in any order. It rounds sizes up to multiples of align bytes,
// and panics unless align is a power of two, 1 MiB at most, and the offsets are multiples.
func NewPlaced(align uint64, offsets []uint64) *Placed {
	power("alignment", align)
	c := &Placed{align: align, starts: slices.Compact(slices.Sorted(slices.Values(offsets)))}
	for i, offset := range c.starts {
		if offset&(align-1) != 0 {
			panic(fmt.Sprintf("carve: offset %d is no multiple of %d", offset, align))
		}
		c.index.put(place(1, offset/align), int32(i)+1)
	}
	c.ranges, c.taken = make([]placed, len(c.starts)), newMarks(len(c.starts))
	return c
}

// Start returns the number by which Owner and Take know an offset, -1 when NewPlaced did not get it.
func (c *Placed) Start(offset uint64) int {
	return int(c.index.get(place(1, offset/c.align))) - 1
}

// Round implements Carver.
func (c *Placed) Round(size uint64) uint64 {
	if size > maxBytes {
		return 0
	}
	return (max(size, 1) + c.align - 1) &^ (c.align - 1)
}

// SlabSize implements Carver.
func (c *Placed) SlabSize(want uint64) uint64 { return c.Round(want) }

// Usable implements Carver.
func (c *Placed) Usable(slabSize uint64) uint64 { return min(slabSize, maxBytes) &^ (c.align - 1) }

// Add implements Carver. There is one slab at a time.
func (c *Placed) Add(slab int32, size uint64) {
	size = c.Usable(size)
	if slab < 1 || c.slab != 0 || size == 0 {
		panic(fmt.Sprintf("carve: slab %d of %d bytes is to be slab %d", slab, size, c.slab))
	}
	c.slab, c.size, c.used = slab, size, 0
}

// Remove implements Carver.
func (c *Placed) Remove(slab int32) {
	if slab != c.slab || c.parts != 0 {
		panic(fmt.Sprintf("carve: slab %d is to go and has %d parts", slab, c.parts))
	}
	c.slab, c.size = 0, 0
}

// Carve implements Carver: it finds nothing.
func (c *Placed) Carve(uint64) (Part, bool) { return Part{}, false }

// Owner returns who has one of the size bytes from a start on, 0 when they are free.
func (c *Placed) Owner(at int, size uint64) int32 {
	if c.ranges[at].end != 0 {
		return c.ranges[at].owner
	}
	if before := c.taken.before(at); before >= 0 && c.ranges[before].end > c.starts[at] {
		return c.ranges[before].owner
	}
	if next := at + 1; next == len(c.starts) || c.starts[next] >= c.starts[at]+size {
		return 0
	}
	if after := c.taken.behind(at); after >= 0 && c.starts[after] < c.starts[at]+size {
		return c.ranges[after].owner
	}
	return 0
}

// Take hands out a range that is free, a multiple of the alignment within the slab. Of its bytes, Owner returns owner, which
// is not 0.
func (c *Placed) Take(at int, size uint64, owner int32) Part {
	offset := c.starts[at]
	if size == 0 || offset+size > c.size || size&(c.align-1) != 0 || c.Owner(at, size) != 0 {
		panic(fmt.Sprintf("carve: %d bytes at %d are not free", size, offset))
	}
	c.taken.set(at)
	c.ranges[at] = placed{offset + size, owner}
	c.parts++
	part := Part{Slab: c.slab, Offset: offset, Size: size, Fresh: offset >= c.used}
	c.used = max(c.used, offset+size)
	return part
}

// Free implements Carver.
func (c *Placed) Free(p Part) (empty bool) {
	at := c.Start(p.Offset)
	if p.Slab != c.slab || at < 0 || c.starts[at] != p.Offset || c.ranges[at].end != p.Offset+p.Size {
		panic(fmt.Sprintf("carve: %+v comes back and is no part", p))
	}
	c.taken.clear(at)
	c.ranges[at] = placed{}
	c.parts--
	return c.parts == 0
}

// Space implements Carver, in O(n). Its ranges lie between sub-allocations, and serve what is placed there.
func (c *Placed) Space() Space {
	var tally Tally
	largest, end := uint64(0), uint64(0)
	gap := func(to uint64) {
		if size := to - end; size != 0 {
			tally.Add(size, 1)
			largest = max(largest, size)
		}
	}
	for at := range c.taken.all {
		gap(c.starts[at])
		end = c.ranges[at].end
	}
	gap(c.size)
	return tally.space(largest)
}

// Validate implements Carver.
func (c *Placed) Validate() error {
	if c.slab == 0 && c.parts != 0 {
		return errors.New("parts of no slab")
	}
	parts, end := 0, uint64(0)
	for at := range c.taken.all {
		r := &c.ranges[at]
		if c.starts[at] < end || r.end <= c.starts[at] || r.end > c.size || r.end > c.used || r.owner == 0 {
			return fmt.Errorf("a range from %d to %d of owner %d, after one that ends at %d", c.starts[at], r.end, r.owner, end)
		}
		parts, end = parts+1, r.end
	}
	for at := range c.ranges {
		if c.ranges[at].end != 0 {
			parts--
		}
	}
	if live := c.taken.count(); parts != 0 || live != c.parts {
		return fmt.Errorf("%d parts are marked, %d are counted, %d have no mark", live, c.parts, -parts)
	}
	return c.taken.validate()
}
