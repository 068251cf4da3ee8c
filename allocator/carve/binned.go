package carve

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/ualloc"
)

// binned serves small requests from bins (seed 001 §4.2) and large ones by pages (§4.1). The alignment of an offset
// shows which: every large sub-allocation begins at a multiple of a page, and no small one does.
//
// A small request goes to the lowest slab where a bin of its size has a free slot; otherwise to the lowest slab with a bin
// that has no size yet; otherwise to the lowest slab with room for another chunk of bins. A large request is served as in
// the buddy system. Carve and Free cost O(log n) of the pages of a slab, plus O(log n) of the slabs.
type binned struct {
	unit  uint64
	fine  int // the unit is 1 << fine bytes
	shift int // a page is 1 << shift bytes
	slabs numbers[*binSlab]
	tally Tally
	large firsts   // slabs by largest free block
	rooms firsts   // slabs by the room for small requests
	small []firsts // by class: slabs with a free slot in a bin (1)
}

// Ranks of slabs by their room for small requests of any size.
const (
	noRoom uint8 = iota
	roomForChunk
	roomInChunk
)

// chunkBins is the number of bins of a chunk. Seed 001 has 64 or 128 (it prints both), for units of 8 bytes. With a
// unit of 512 bytes such a chunk has 16 or 32 MiB, too much for a program with a few small buffers. A chunk of 32 bins
// has 2 MiB for a unit of 128 bytes and 8 MiB for 512. Two bins of each chunk are headers, so small chunks cost 3 %
// more headers.
const chunkBins = 32

const pageShift = 9 // a page is 1 << pageShift units

// NewUAlloc returns a Carver that keeps small sub-allocations in bins. Offsets are multiples of unit bytes. It panics
// unless unit is a power of two, 1 MiB at most.
//
// All other sizes are those of seed 001 in units; the seed has units of 8 bytes. A bin, which is a page, has 512 units.
// Requests up to 128 units are small; larger ones get a power of two of pages. Without room for a chunk of bins, a slab
// could not serve small requests, so a device that cannot allocate a chunk has no slabs.
func NewUAlloc(unit uint64) Carver {
	fine := exponentOfPowerOfTwo("unit", unit)
	u := &binned{unit: unit, fine: fine, shift: fine + pageShift}
	u.small = make([]firsts, u.smallClassOf(u.geometry(1).LargestSmall())+1)
	return u
}

func (u *binned) geometry(pages int) ualloc.Geometry {
	return ualloc.Geometry{Unit: u.unit, Pages: pages, Bins: chunkBins}
}

// smallClassOf numbers the small sizes from 0.
func (u *binned) smallClassOf(size uint64) int { return orderOf(size, u.fine) }

// isSmall reports whether bins serve a request.
func (u *binned) isSmall(size uint64) bool { return size <= u.geometry(1).LargestSmall() }

// pagesOfSlab returns the number of pages of a slab, 0 if it has no room for a chunk. It returns no more pages than ualloc
// can use.
func (u *binned) pagesOfSlab(slabSize uint64) int {
	chunk := u.geometry(1).ChunkPages()
	pages := int(min(slabSize>>u.shift, uint64(chunk*u.geometry(1).MaxChunks())))
	if pages < chunk {
		return 0
	}
	return pages
}

// largestSlab returns the bytes of the largest slab.
func (u *binned) largestSlab() uint64 { return uint64(u.pagesOfSlab(maxBytes)) << u.shift }

// RoundUp implements Carver.
func (u *binned) RoundUp(size uint64) uint64 {
	switch {
	case u.isSmall(size):
		return u.geometry(1).RoundUpSmall(max(size, 1))
	case size > u.UsableBytes(maxBytes):
		return 0
	}
	return 1 << (u.shift + orderOf(size, u.shift))
}

// SlabSize implements Carver: any number of pages from a chunk on.
func (u *binned) SlabSize(want uint64) uint64 {
	if want > u.largestSlab() {
		return 0
	}
	page := uint64(1) << u.shift
	return max((want+page-1)&^(page-1), u.geometry(1).ChunkBytes())
}

// UsableBytes implements Carver.
func (u *binned) UsableBytes(slabSize uint64) uint64 {
	return largestBlockBytes(u.pagesOfSlab(slabSize), u.shift)
}

// AddSlab implements Carver.
func (u *binned) AddSlab(slab int32, size uint64) {
	count := u.pagesOfSlab(size)
	if count == 0 {
		panic(fmt.Sprintf("carve: slab %d has no room for a chunk of %d bytes", slab, u.geometry(1).ChunkBytes()))
	}
	s := u.slabs.addSlab(slab)
	*s = newBinSlab(u, count)
	u.updateRanks(slab, *s)
}

// RemoveSlab implements Carver.
func (u *binned) RemoveSlab(slab int32) {
	s := *u.slabs.elementOf(slab)
	if s.parts != 0 {
		panic(fmt.Sprintf("carve: slab %d is to go and has %d parts", slab, s.parts))
	}
	s.pages.removeFromTally()
	u.large.setRank(slab, 0)
	u.rooms.setRank(slab, noRoom)
	u.slabs.removeSlab(slab)
}

// Carve implements Carver.
func (u *binned) Carve(size uint64) (p Part, ok bool) {
	slab := u.chooseSlab(size)
	if slab == 0 {
		return Part{}, false
	}
	s := *u.slabs.elementOf(slab)
	if u.isSmall(size) {
		p, ok = s.carveSmall(slab, max(size, 1))
	} else {
		p, ok = s.carveLarge(size)
	}
	if !ok {
		return Part{}, false // never: the ranks say that there is room
	}
	p.Slab = slab
	s.parts++
	u.updateRanks(slab, s)
	return p, true
}

// chooseSlab returns the slab for a request, 0 when none has room.
func (u *binned) chooseSlab(size uint64) int32 {
	if !u.isSmall(size) {
		return u.large.lowestWithRank(uint8(orderOf(size, u.shift) + 1))
	}
	if slab := u.small[u.smallClassOf(size)].lowestWithRank(1); slab != 0 {
		return slab
	}
	return u.rooms.lowestWithRank(max(u.rooms.highestRank(), roomForChunk))
}

// Free implements Carver.
func (u *binned) Free(p Part) (empty bool) {
	s := *u.slabs.elementOf(p.Slab)
	var ok bool
	if p.Offset&(1<<u.shift-1) == 0 {
		ok = s.freeLarge(p)
	} else {
		ok = s.freeSmall(p)
	}
	if !ok {
		panic(fmt.Sprintf("carve: %+v comes back and is no part", p))
	}
	s.parts--
	u.updateRanks(p.Slab, s)
	return s.parts == 0
}

// updateRanks updates the ranks of a slab.
func (u *binned) updateRanks(slab int32, s *binSlab) {
	if rank := s.pages.largestFreeRank(); u.large.rankOf(slab) != rank {
		u.large.setRank(slab, rank)
	}
	if room := s.rankByRoom(); u.rooms.rankOf(slab) != room {
		u.rooms.setRank(slab, room)
	}
}

// FreeSpace implements Carver. Ranges are the free blocks of pages, the free slots of bins, and bins without a size. Such a
// bin counts with the bytes of all its slots of the smallest size.
func (u *binned) FreeSpace() Space {
	most := largestFreeBlock(&u.large, u.shift)
	for class := len(u.small) - 1; most == 0 && class >= 0; class-- {
		if u.small[class].highestRank() != 0 || u.rooms.highestRank() != noRoom {
			most = u.unit << class
		}
	}
	return u.tally.spaceWithLargest(most)
}

// Validate implements Carver.
func (u *binned) Validate() error {
	var want Tally
	for i := range u.slabs.list {
		if err := u.validateRanks(int32(i)); err != nil {
			return err
		}
	}
	// Idle chunks count as free pages here, but as taken in the tree and the allocator: wake makes them agree.
	for i := range u.slabs.list {
		if !u.slabs.added[i] {
			continue
		}
		s := u.slabs.list[i]
		if idle := s.countIdleChunkAsBins(); idle >= 0 {
			defer s.countIdleChunkAsPages(idle)
		}
		if err := s.validate(&want); err != nil {
			return fmt.Errorf("slab %d: %w", i, err)
		}
	}
	if want != u.tally {
		return fmt.Errorf("free ranges are counted as %+v, and are %+v", u.tally, want)
	}
	return nil
}

// validateRanks checks the ranks of a slab.
func (u *binned) validateRanks(slab int32) error {
	if !u.slabs.added[slab] {
		if u.large.rankOf(slab) != 0 || u.rooms.rankOf(slab) != noRoom {
			return fmt.Errorf("slab %d is gone and has a rank", slab)
		}
		return nil
	}
	s := *u.slabs.elementOf(slab)
	if u.large.rankOf(slab) != s.pages.largestFreeRank() {
		return fmt.Errorf("slab %d has rank %d and stands in %d", slab, s.pages.largestFreeRank(), u.large.rankOf(slab))
	}
	for class := range u.small {
		if u.small[class].rankOf(slab) != s.rankInClass(class) {
			return fmt.Errorf("slab %d has %d slots of class %d, and stands in %d", slab, s.slots[class], class, u.small[class].rankOf(slab))
		}
	}
	if u.rooms.rankOf(slab) != s.rankByRoom() {
		return fmt.Errorf("slab %d has room %d and stands in %d", slab, s.rankByRoom(), u.rooms.rankOf(slab))
	}
	return nil
}
