package carve

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator/treap"
)

// bestFit takes the smallest free range of all slabs that is large enough, and merges a returned range with its free
// neighbours (seed 004). Of equal ranges it takes the one in the lowest slab, then at the lowest offset. So
// sub-allocations gather in the first slabs, and later slabs become empty. A sub-allocation takes the low end of its
// range.
//
// Each slab is a list of segments in order of offset, sub-allocations and free ranges; no two free ones are neighbours.
// Carve and Free cost O(log n) of the number of free ranges.
type bestFit struct {
	shift    int       // the alignment is 1 << shift bytes
	segments []segment // [0] is none
	spare    []int32   // unused segments
	order    treap.Forest
	free     treap.Tree // free segments, by size and place
	parts    table      // sub-allocations, by place
	tally    Tally
	slabs    numbers[bestSlab]
}

type bestSlab struct {
	size  uint64 // managed bytes
	used  uint64 // no byte from this offset on was ever handed out
	first int32  // segment
	parts int
}

// segment is a range of a slab.
type segment struct {
	offset, size  uint64
	before, after int32 // neighbours, 0 at the slab's ends
	slab          int32
	free          bool
}

// NewBestFit returns a best fit Carver. Offsets are multiples of align bytes, and sizes are rounded up to such
// multiples. It panics unless align is a power of two, 1 MiB at most.
func NewBestFit(align uint64) Carver {
	return &bestFit{shift: exponentOfPowerOfTwo("alignment", align), segments: make([]segment, 1)}
}

// RoundUp implements Carver.
func (b *bestFit) RoundUp(size uint64) uint64 {
	align := uint64(1) << b.shift
	if size > b.UsableBytes(^uint64(0)) {
		return 0
	}
	return (max(size, 1) + align - 1) &^ (align - 1)
}

// SlabSize implements Carver: a slab is any multiple of the alignment.
func (b *bestFit) SlabSize(want uint64) uint64 { return b.RoundUp(want) }

// UsableBytes implements Carver: all of the slab.
func (b *bestFit) UsableBytes(slabSize uint64) uint64 {
	return min(min(slabSize, maxBytes)>>b.shift, maxUnits-1) << b.shift
}

// AddSlab implements Carver.
func (b *bestFit) AddSlab(slab int32, size uint64) {
	size = b.UsableBytes(size)
	if size == 0 {
		panic(fmt.Sprintf("carve: slab %d is smaller than the alignment", slab))
	}
	s := b.slabs.addSlab(slab)
	s.size = size
	s.first = b.newSegment(segment{size: size, slab: slab})
	b.addFree(s.first)
}

// RemoveSlab implements Carver.
func (b *bestFit) RemoveSlab(slab int32) {
	s := b.slabs.elementOf(slab)
	if s.parts != 0 {
		panic(fmt.Sprintf("carve: slab %d is to go and has %d parts", slab, s.parts))
	}
	b.removeFree(s.first)
	b.spare = append(b.spare, s.first)
	b.slabs.removeSlab(slab)
}

// Carve implements Carver.
func (b *bestFit) Carve(size uint64) (Part, bool) {
	size = b.RoundUp(size)
	if size == 0 {
		return Part{}, false
	}
	i := b.order.SmallestAtLeast(&b.free, size)
	if i == 0 {
		return Part{}, false
	}
	b.removeFree(i)
	if b.segments[i].size > size {
		b.splitSegment(i, size)
	}
	g := &b.segments[i]
	s := b.slabs.elementOf(g.slab)
	p := Part{Slab: g.slab, Offset: g.offset, Size: size, Fresh: g.offset >= s.used}
	s.used = max(s.used, g.offset+size)
	s.parts++
	b.parts.addPlace(b.placeOfSegment(i), i)
	return p, true
}

// splitSegment cuts a free segment down to size bytes; the rest is a free segment of its own.
func (b *bestFit) splitSegment(i int32, size uint64) {
	whole := b.segments[i]
	rest := b.newSegment(segment{
		offset: whole.offset + size, size: whole.size - size, before: i, after: whole.after, slab: whole.slab,
	})
	if whole.after != 0 {
		b.segments[whole.after].before = rest
	}
	b.segments[i].size, b.segments[i].after = size, rest
	b.addFree(rest)
}

// Free implements Carver.
func (b *bestFit) Free(p Part) (empty bool) {
	s := b.slabs.elementOf(p.Slab)
	i := int32(0)
	if p.Offset < s.size {
		i = b.parts.removePlace(packPlace(p.Slab, p.Offset>>b.shift))
	}
	if i == 0 || b.segments[i].size != p.Size || b.segments[i].offset != p.Offset {
		panic(fmt.Sprintf("carve: %+v comes back and is no part", p))
	}
	s.parts--
	if before := b.segments[i].before; before != 0 && b.segments[before].free {
		b.removeFree(before)
		b.joinNext(before, i)
		i = before
	}
	if after := b.segments[i].after; after != 0 && b.segments[after].free {
		b.removeFree(after)
		b.joinNext(i, after)
	}
	b.addFree(i)
	return s.parts == 0
}

// joinNext joins a segment and its neighbour after it.
func (b *bestFit) joinNext(i, after int32) {
	gone := &b.segments[after]
	b.segments[i].size += gone.size
	b.segments[i].after = gone.after
	if gone.after != 0 {
		b.segments[gone.after].before = i
	}
	*gone = segment{}
	b.spare = append(b.spare, after)
}

// FreeSpace implements Carver.
func (b *bestFit) FreeSpace() Space {
	largest := uint64(0)
	if i := b.order.Last(&b.free); i != 0 {
		largest = b.segments[i].size
	}
	return b.tally.spaceWithLargest(largest)
}

// placeOfSegment returns a segment's place.
func (b *bestFit) placeOfSegment(i int32) uint64 {
	return packPlace(b.segments[i].slab, b.segments[i].offset>>b.shift)
}

// addFree makes a segment a free range.
func (b *bestFit) addFree(i int32) {
	g := &b.segments[i]
	g.free = true
	b.order.Insert(&b.free, i, g.size, b.placeOfSegment(i))
	b.tally.AddRanges(g.size, 1)
}

// removeFree makes a free range a sub-allocation.
func (b *bestFit) removeFree(i int32) {
	g := &b.segments[i]
	g.free = false
	b.order.Remove(&b.free, i)
	b.tally.AddRanges(g.size, -1)
}

// newSegment returns the index of a new segment.
func (b *bestFit) newSegment(g segment) int32 {
	if n := len(b.spare); n > 0 {
		i := b.spare[n-1]
		b.spare = b.spare[:n-1]
		b.segments[i] = g
		return i
	}
	b.segments = append(b.segments, g)
	i := int32(len(b.segments) - 1)
	b.order.Grow(int(i))
	return i
}

// Validate implements Carver: it walks every slab, and counts everything again.
func (b *bestFit) Validate() error {
	var want Tally
	known, parts := 0, 0
	for slab := range b.slabs.list {
		if !b.slabs.added[slab] {
			continue
		}
		s := &b.slabs.list[slab]
		segments, err := b.validateSlab(int32(slab), s, &want)
		if err != nil {
			return fmt.Errorf("slab %d: %w", slab, err)
		}
		known += segments
		parts += s.parts
	}
	if want != b.tally {
		return fmt.Errorf("free ranges are counted as %+v, and are %+v", b.tally, want)
	}
	if parts != b.parts.count || known+len(b.spare) != len(b.segments)-1 {
		return fmt.Errorf("%d parts of %d, %d of %d segments", b.parts.count, parts, known+len(b.spare), len(b.segments)-1)
	}
	return b.validateOrder()
}

// validateSlab walks one slab's segments.
func (b *bestFit) validateSlab(slab int32, s *bestSlab, want *Tally) (segments int, err error) {
	parts, end, before := 0, uint64(0), int32(0)
	for i := s.first; i != 0; i = b.segments[i].after {
		g := &b.segments[i]
		switch {
		case g.slab != slab || g.before != before || g.offset != end || g.size == 0 || g.size>>b.shift<<b.shift != g.size:
			return 0, fmt.Errorf("segment %d is %+v, after %d that ends at %d", i, *g, before, end)
		case g.free && b.segments[before].free: // [0] never is
			return 0, fmt.Errorf("segments %d and %d are free neighbours", before, i)
		case !g.free && g.offset+g.size > s.used:
			return 0, fmt.Errorf("part %d ends at %d, nothing from %d on was handed out", i, g.offset+g.size, s.used)
		case !g.free && b.parts.numberAtPlace(b.placeOfSegment(i)) != i:
			return 0, fmt.Errorf("part %d is not found at its place", i)
		}
		if g.free {
			want.AddRanges(g.size, 1)
		} else {
			parts++
		}
		segments++
		end, before = g.offset+g.size, i
	}
	if end != s.size || parts != s.parts {
		return 0, fmt.Errorf("has %d of %d bytes and %d parts counted as %d", end, s.size, parts, s.parts)
	}
	return segments, nil
}

// validateOrder checks that the tree holds only free segments, in order, with their keys. The tally shows that the tree
// holds all of them.
func (b *bestFit) validateOrder() (err error) {
	before, count := int32(0), 0
	b.order.Each(&b.free, func(i int32) {
		if g := &b.segments[i]; !g.free || g.size != b.order.Size(i) || before != 0 && !b.order.Less(before, i) {
			err = fmt.Errorf("segment %d %+v stands in the order after %d", i, *g, before)
		}
		before = i
		count++
	})
	if err == nil && (count != b.free.Count || count != b.tally.Ranges) {
		err = fmt.Errorf("the order counts %d and holds %d of %d", b.free.Count, count, b.tally.Ranges)
	}
	return err
}
