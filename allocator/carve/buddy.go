package carve

import (
	"fmt"
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/tbuddy"
)

// buddy gives every request a power of two of pages, at a multiple of its size (seed 001 §4.1). Each slab has a tree. A
// request goes to the lowest slab whose largest free block is large enough, and there to the lowest page with a block
// of the smallest sufficient order. Carve and Free cost O(log n) of the pages of a slab, plus O(log n) of the slabs.
type buddy struct {
	shift int // a page is 1 << shift bytes
	slabs numbers[buddySlab]
	ranks firsts
	tally Tally
}

type buddySlab struct {
	pages pages
	parts int
}

// NewBuddy returns a Carver with a buddy system in each slab. A page, in bytes, is the smallest sub-allocation, and offsets
// are multiples of it. NewBuddy panics unless page is a power of two, 1 MiB at most. A slab has at most tbuddy.MaxPages
// pages, and needs 9 to 17 bytes of host memory for each.
func NewBuddy(page uint64) Carver { return &buddy{shift: exponentOfPowerOfTwo("page", page)} }

// RoundUp implements Carver.
func (b *buddy) RoundUp(size uint64) uint64 {
	if size > tbuddy.MaxPages<<b.shift {
		return 0
	}
	return 1 << (b.shift + orderOf(size, b.shift))
}

// SlabSize implements Carver: a slab has any number of pages. Its largest sub-allocation has the largest power of two of
// pages that fits.
func (b *buddy) SlabSize(want uint64) uint64 {
	if want > tbuddy.MaxPages<<b.shift {
		return 0
	}
	page := uint64(1) << b.shift
	return (max(want, 1) + page - 1) &^ (page - 1)
}

// UsableBytes implements Carver: the largest power of two of pages.
func (b *buddy) UsableBytes(slabSize uint64) uint64 {
	return largestBlockBytes(b.pagesIn(slabSize), b.shift)
}

// pagesIn returns the pages of a slab.
func (b *buddy) pagesIn(slabSize uint64) int {
	return int(min(slabSize>>b.shift, tbuddy.MaxPages))
}

// largestBlockBytes returns the bytes of the largest power of two of pages.
func largestBlockBytes(pages, shift int) uint64 {
	if pages == 0 {
		return 0
	}
	return 1 << (shift + bits.Len(uint(pages)) - 1)
}

// AddSlab implements Carver.
func (b *buddy) AddSlab(slab int32, size uint64) {
	if b.pagesIn(size) == 0 {
		panic(fmt.Sprintf("carve: slab %d is smaller than a page", slab))
	}
	s := b.slabs.addSlab(slab)
	s.pages = newPages(b.pagesIn(size), b.shift, &b.tally)
	b.ranks.setRank(slab, s.pages.largestFreeRank())
}

// RemoveSlab implements Carver.
func (b *buddy) RemoveSlab(slab int32) {
	s := b.slabs.elementOf(slab)
	if s.parts != 0 {
		panic(fmt.Sprintf("carve: slab %d is to go and has %d parts", slab, s.parts))
	}
	s.pages.removeFromTally()
	b.ranks.setRank(slab, 0)
	b.slabs.removeSlab(slab)
}

// Carve implements Carver.
func (b *buddy) Carve(size uint64) (Part, bool) {
	order := orderOf(size, b.shift)
	slab := b.ranks.lowestWithRank(uint8(order + 1))
	if slab == 0 {
		return Part{}, false
	}
	s := b.slabs.elementOf(slab)
	page, ok := s.pages.takeBlock(order)
	if !ok {
		return Part{}, false // never: the rank says that there is one
	}
	s.parts++
	b.ranks.setRank(slab, s.pages.largestFreeRank())
	return Part{
		Slab: slab, Offset: uint64(page) << b.shift, Size: 1 << (b.shift + order), Fresh: s.pages.history.noteHandedOut(uint64(page), order),
	}, true
}

// Free implements Carver.
func (b *buddy) Free(p Part) (empty bool) {
	s := b.slabs.elementOf(p.Slab)
	order := orderOf(p.Size, b.shift)
	page := p.Offset >> b.shift
	if page<<b.shift != p.Offset || p.Size != 1<<(b.shift+order) || !s.pages.freeBlock(int(page), order) {
		panic(fmt.Sprintf("carve: %+v comes back and is no part", p))
	}
	s.parts--
	b.ranks.setRank(p.Slab, s.pages.largestFreeRank())
	return s.parts == 0
}

// FreeSpace implements Carver.
func (b *buddy) FreeSpace() Space {
	return b.tally.spaceWithLargest(largestFreeBlock(&b.ranks, b.shift))
}

// largestFreeBlock returns the bytes of the largest free block of all slabs, by their ranks.
func largestFreeBlock(ranks *firsts, shift int) uint64 {
	if rank := ranks.highestRank(); rank > 0 {
		return 1 << (shift + int(rank) - 1)
	}
	return 0
}

// Validate implements Carver.
func (b *buddy) Validate() error {
	var want Tally
	for i := range b.slabs.list {
		slab := int32(i)
		rank := uint8(0)
		if b.slabs.added[slab] {
			s := b.slabs.elementOf(slab)
			if err := s.pages.validate(&want); err != nil {
				return fmt.Errorf("slab %d: %w", slab, err)
			}
			rank = s.pages.largestFreeRank()
		}
		if b.ranks.rankOf(slab) != rank {
			return fmt.Errorf("slab %d has rank %d and stands in %d", slab, rank, b.ranks.rankOf(slab))
		}
	}
	if want != b.tally {
		return fmt.Errorf("free blocks are counted as %+v, and are %+v", b.tally, want)
	}
	return nil
}
