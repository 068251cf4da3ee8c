package carve

import (
	"errors"
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator/treap"
)

// Placed hands out the ranges that its caller names, of one slab. It is a Carver that finds no room by itself: Carve
// never succeeds. Owner, Take and Free cost O(log n) of the number of sub-allocations.
//
// Sub-allocations form a ring in the order of offsets that begins at the slab's start. Behind each lies a gap, which may
// be empty.
type Placed struct {
	ranges []placed // [0] is none, [start] the slab's start
	spare  []int32
	ends   treap.Forest // of sub-allocations, by where they end
	byEnd  treap.Tree
	parts  table // sub-allocations, by where they begin
	sought sought
	gaps   treap.Forest // behind ranges, by size
	bySize treap.Tree
	tally  Tally
	slab   int32 // 0: none
	size   uint64
	used   uint64 // no byte from this offset on was ever handed out
	align  uint64
}

type placed struct {
	offset, size  uint64
	before, after int32
	owner         int32
}

const start = 1

// sought is the answer that Owner gave last, since Take asks the same.
type sought struct {
	offset uint64
	after  int32 // the first that ends behind offset, 0: none
	holds  bool  // nothing has changed since
}

// NewPlaced returns one that rounds sizes up to multiples of align bytes. It panics unless align is a power of two,
// 1 MiB at most.
func NewPlaced(align uint64) *Placed {
	power("alignment", align)
	c := &Placed{align: align, ranges: make([]placed, 2)}
	c.ranges[start] = placed{before: start, after: start}
	c.gaps.Grow(start)
	c.ends.Grow(start)
	return c
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
	c.open(start)
}

// Remove implements Carver.
func (c *Placed) Remove(slab int32) {
	if slab != c.slab || c.byEnd.Count != 0 {
		panic(fmt.Sprintf("carve: slab %d is to go and has %d parts", slab, c.byEnd.Count))
	}
	c.close(start)
	c.slab, c.size, c.sought.holds = 0, 0, false
}

// Carve implements Carver: it finds nothing.
func (c *Placed) Carve(uint64) (Part, bool) { return Part{}, false }

// Owner returns who has one of the bytes from offset on, 0 when they are free.
func (c *Placed) Owner(offset, size uint64) int32 {
	if i := c.endsBehind(offset); i != 0 && c.ranges[i].offset < offset+size {
		return c.ranges[i].owner
	}
	return 0
}

// endsBehind returns the first sub-allocation that ends behind an offset, 0 when there is none.
func (c *Placed) endsBehind(offset uint64) int32 {
	if !c.sought.holds || c.sought.offset != offset {
		c.sought = sought{offset, c.ends.AtLeast(&c.byEnd, offset+1), true}
	}
	return c.sought.after
}

// place is the key of an offset in the slab.
func (c *Placed) place(offset uint64) uint64 { return place(c.slab, offset/c.align) }

// Take hands out a range that is free, a multiple of the alignment within the slab. Of its bytes, Owner returns owner.
func (c *Placed) Take(offset, size uint64, owner int32) Part {
	after := c.endsBehind(offset)
	if size == 0 || offset+size > c.size || (offset|size)&(c.align-1) != 0 || after != 0 && c.ranges[after].offset < offset+size {
		panic(fmt.Sprintf("carve: %d bytes at %d are not free", size, offset))
	}
	if after == 0 {
		after = start
	}
	before := c.ranges[after].before
	c.close(before)
	i := c.newRange(placed{offset, size, before, after, owner})
	c.ranges[before].after, c.ranges[after].before = i, i
	c.ends.Insert(&c.byEnd, i, offset+size, 0)
	c.parts.put(c.place(offset), i)
	c.sought.holds = false
	c.open(before)
	c.open(i)
	part := Part{Slab: c.slab, Offset: offset, Size: size, Fresh: offset >= c.used}
	c.used = max(c.used, offset+size)
	return part
}

// Free implements Carver.
func (c *Placed) Free(p Part) (empty bool) {
	i := int32(0)
	if p.Slab == c.slab && p.Offset < c.size {
		i = c.parts.take(c.place(p.Offset))
	}
	if i == 0 || c.ranges[i].offset != p.Offset || c.ranges[i].size != p.Size {
		panic(fmt.Sprintf("carve: %+v comes back and is no part", p))
	}
	r := c.ranges[i]
	c.close(r.before)
	c.close(i)
	c.ends.Remove(&c.byEnd, i)
	c.sought.holds = false
	c.ranges[r.before].after, c.ranges[r.after].before = r.after, r.before
	c.open(r.before)
	c.ranges[i] = placed{}
	c.spare = append(c.spare, i)
	return c.byEnd.Count == 0
}

// Space implements Carver. Its ranges lie between sub-allocations, and serve what is placed there.
func (c *Placed) Space() Space {
	largest := uint64(0)
	if i := c.gaps.Last(&c.bySize); i != 0 {
		largest = c.gaps.Size(i)
	}
	return c.tally.space(largest)
}

// gap returns the bytes between a range and the next one.
func (c *Placed) gap(i int32) (offset, size uint64) {
	offset = c.ranges[i].offset + c.ranges[i].size
	end := c.size
	if after := c.ranges[i].after; after != start {
		end = c.ranges[after].offset
	}
	return offset, end - offset
}

// open counts the gap behind a range, and close takes it out.
func (c *Placed) open(i int32) {
	if offset, size := c.gap(i); size != 0 {
		c.gaps.Insert(&c.bySize, i, size, offset)
		c.tally.Add(size, 1)
	}
}

func (c *Placed) close(i int32) {
	if _, size := c.gap(i); size != 0 {
		c.gaps.Remove(&c.bySize, i)
		c.tally.Add(size, -1)
	}
}

func (c *Placed) newRange(r placed) int32 {
	if n := len(c.spare); n > 0 {
		i := c.spare[n-1]
		c.spare = c.spare[:n-1]
		c.ranges[i] = r
		return i
	}
	c.ranges = append(c.ranges, r)
	i := int32(len(c.ranges) - 1)
	c.ends.Grow(int(i))
	c.gaps.Grow(int(i))
	return i
}

// Validate implements Carver.
func (c *Placed) Validate() error {
	var want Tally
	if c.slab == 0 {
		if c.byEnd.Count != 0 || c.tally != want {
			return errors.New("parts or gaps of no slab")
		}
		return nil
	}
	parts, end, before := 0, uint64(0), c.ranges[start].before
	for i := int32(start); ; i = c.ranges[i].after {
		r := &c.ranges[i]
		if i == start && parts > 0 {
			break
		}
		parts++
		if r.before != before || r.offset < end || r.offset+r.size > c.size || i != start && (r.size == 0 || r.offset+r.size > c.used) {
			return fmt.Errorf("range %d is %+v, after %d that ends at %d", i, *r, before, end)
		}
		end, before = r.offset+r.size, i
		if _, size := c.gap(i); size != 0 {
			want.Add(size, 1)
		}
		if r.after == start {
			break
		}
	}
	if want != c.tally || c.bySize.Count != want.Ranges || parts-1 != c.byEnd.Count || parts+1+len(c.spare) != len(c.ranges) {
		return fmt.Errorf("gaps are counted as %+v and are %+v; %d parts, %d by end", c.tally, want, parts-1, c.byEnd.Count)
	}
	return nil
}
