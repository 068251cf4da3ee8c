package carve

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/ualloc"
)

// binSlab is one slab of a binned: pages, an allocator of small sub-allocations on some of these pages, and counts that
// neither the pages nor the allocator keep. The allocator gets its chunks from the binSlab.
type binSlab struct {
	of       *binned
	geometry ualloc.Geometry
	pages    pages
	small    *ualloc.Allocator
	bins     []bin  // by page
	chunks   []int  // number of sub-allocations by chunk, or noChunk
	idle     int    // page of the chunk without sub-allocations that the allocator keeps; -1: none
	spare    int    // number of empty bins in other chunks
	slots    []int  // number of free slots by class
	units    bitset // units that were ever in a small sub-allocation
	parts    int
}

// noChunk marks pages that do not belong to a chunk.
const noChunk = -1

// bin is a page in a chunk.
type bin struct {
	class int8 // of its sub-allocations, if it has any
	parts int16
}

func newBinSlab(of *binned, count int) *binSlab {
	s := &binSlab{
		of:       of,
		geometry: of.geometry(count),
		pages:    newPages(count, of.shift, &of.tally),
		bins:     make([]bin, count),
		chunks:   make([]int, (count+chunkBins-1)/chunkBins),
		idle:     -1,
		slots:    make([]int, len(of.small)),
		units:    newBitset(uint64(count) << of.shift / of.unit),
	}
	for i := range s.chunks {
		s.chunks[i] = noChunk
	}
	small, err := ualloc.New(s, s.geometry, 1)
	if err != nil {
		panic("carve: " + err.Error()) // never: NewUAlloc and AddSlab meet its conditions
	}
	s.small = small
	return s
}

// Alloc implements ualloc.Coarse: a chunk for small sub-allocations.
func (s *binSlab) Alloc(order int, _ uint64) (page int, ok bool) {
	if page, ok = s.pages.takeBlock(order); ok {
		s.chunks[page/chunkBins] = 0
		s.countChunkAsSpare(page, 1)
	}
	return page, ok
}

// Free implements ualloc.Coarse: a chunk has no sub-allocation left.
func (s *binSlab) Free(page, order int) (ok bool) {
	if page == s.idle {
		s.countIdleChunkAsBins()
	}
	s.countChunkAsSpare(page, -1)
	s.chunks[page/chunkBins] = noChunk
	return s.pages.freeBlock(page, order)
}

// countChunkAsSpare adds the bins of a chunk to the spare bins (n = 1), or subtracts them (-1). In chunks of chunkBins bins
// all bins have tails, so all are worth the same.
func (s *binSlab) countChunkAsSpare(page, n int) {
	header := s.geometry.HeaderPages()
	s.countSpareBins(page+header, n*(chunkBins-header))
}

// countIdleChunkAsPages counts a chunk without sub-allocations as free pages. The allocator keeps that chunk for the next small
// request, but carveLarge may take its pages for any size. The allocator keeps at most one such chunk.
func (s *binSlab) countIdleChunkAsPages(page int) {
	if s.idle >= 0 {
		s.small.Trim()
		return
	}
	s.countChunkAsSpare(page, -1)
	order := orderOf(s.geometry.ChunkBytes(), s.of.shift)
	s.pages.countFreedBlock(order, s.pages.mergedOrder(page, order))
	s.idle = page
}

// countIdleChunkAsBins counts the idle chunk as bins again, and returns its page; -1: there is no such chunk.
func (s *binSlab) countIdleChunkAsBins() (page int) {
	page = s.idle
	if page < 0 {
		return page
	}
	s.idle = -1
	order := orderOf(s.geometry.ChunkBytes(), s.of.shift)
	s.pages.countCutBlock(order, s.pages.mergedOrder(page, order))
	s.countChunkAsSpare(page, 1)
	return page
}

// countSpareBins counts n more spare bins like the bin at a page.
func (s *binSlab) countSpareBins(page, n int) {
	s.spare += n
	s.of.tally.AddRanges(s.binBytes(page), n)
}

// binBytes returns the usable bytes of the empty bin at a page.
func (s *binSlab) binBytes(page int) uint64 { return uint64(s.binCapacity(page, 0)) * s.geometry.Unit }

// countFreeSlots counts n more free slots.
func (s *binSlab) countFreeSlots(class, n int) {
	s.slots[class] += n
	s.of.tally.AddRanges(s.geometry.Unit<<class, n)
}

// updateRank notes whether the slab has a free slot of a class.
func (s *binSlab) updateRank(slab int32, class int) {
	if ranks := &s.of.small[class]; ranks.rankOf(slab) != s.rankInClass(class) {
		ranks.setRank(slab, s.rankInClass(class))
	}
}

// binCapacity returns how many sub-allocations of a class the bin at a page holds.
func (s *binSlab) binCapacity(page, class int) int {
	return s.geometry.Capacity(page, s.geometry.Unit<<class)
}

// rankInClass returns 1 if the slab has a free slot of a class, else 0.
func (s *binSlab) rankInClass(class int) uint8 { return uint8(min(s.slots[class], 1)) }

// rankByRoom returns the slab's rank by room for a class without free slots.
func (s *binSlab) rankByRoom() uint8 {
	switch {
	case s.spare > 0:
		return roomInChunk
	case 1<<s.pages.largestFreeRank() > chunkBins:
		return roomForChunk
	}
	return noRoom
}

func (s *binSlab) carveLarge(size uint64) (Part, bool) {
	if s.idle >= 0 {
		s.small.Trim()
	}
	order := orderOf(size, s.of.shift)
	page, ok := s.pages.takeBlock(order)
	if !ok {
		return Part{}, false
	}
	fresh := s.pages.history.noteHandedOut(uint64(page), order)
	return Part{Offset: uint64(page) << s.of.shift, Size: 1 << (s.of.shift + order), Fresh: fresh}, true
}

func (s *binSlab) freeLarge(p Part) bool {
	order := orderOf(p.Size, s.of.shift)
	if p.Size != 1<<(s.of.shift+order) {
		return false
	}
	idle := s.countIdleChunkAsBins()
	ok := s.pages.freeBlock(int(p.Offset>>s.of.shift), order)
	if idle >= 0 {
		s.countIdleChunkAsPages(idle)
	}
	return ok
}

func (s *binSlab) carveSmall(slab int32, size uint64) (Part, bool) {
	offset, granted, ok := s.small.Alloc(0, size)
	if !ok {
		return Part{}, false
	}
	page, _ := s.geometry.BinPageOf(offset)
	if s.idle >= 0 && page/chunkBins == s.idle/chunkBins {
		s.countIdleChunkAsBins()
	}
	s.chunks[page/chunkBins]++
	class := s.of.smallClassOf(granted)
	if s.bins[page].parts == 0 {
		s.countSpareBins(page, -1)
		s.bins[page].class = int8(class)
		s.countFreeSlots(class, s.binCapacity(page, class))
	}
	s.bins[page].parts++
	s.countFreeSlots(class, -1)
	s.updateRank(slab, class)
	return Part{Offset: offset, Size: granted, Fresh: s.noteHandedOut(offset, granted)}, true
}

// freeSmall frees a small sub-allocation. It changes the counts of the bin first, because the allocator may then
// release the whole chunk.
func (s *binSlab) freeSmall(p Part) bool {
	page, ok := s.geometry.BinPageOf(p.Offset)
	if !ok || page >= len(s.bins) || s.bins[page].parts == 0 || p.Size != s.geometry.Unit<<s.bins[page].class {
		return false
	}
	class := int(s.bins[page].class)
	s.bins[page].parts--
	s.countFreeSlots(class, 1)
	if s.bins[page].parts == 0 {
		s.countFreeSlots(class, -s.binCapacity(page, class))
		s.countSpareBins(page, 1)
	}
	if _, ok = s.small.Free(p.Offset); !ok {
		return false
	}
	s.updateRank(p.Slab, class)
	number := page / chunkBins
	if s.chunks[number]--; s.chunks[number] == 0 {
		s.countIdleChunkAsPages(number * chunkBins)
	}
	return true
}

// noteHandedOut notes that a small sub-allocation is handed out, and reports whether it is fresh: no block of pages around it
// was handed out as a whole, and no small sub-allocation had any of its units.
func (s *binSlab) noteHandedOut(offset, size uint64) (fresh bool) {
	page := offset >> s.of.shift
	fresh = s.units.addConsecutive(offset/s.geometry.Unit, size/s.geometry.Unit) && !s.pages.history.wasHandedOut(page, 0)
	s.pages.history.noteBytesHandedOut(page, 0)
	return fresh
}

// validate checks the slab's sub-allocations against each other, and adds the free ranges to a tally.
func (s *binSlab) validate(want *Tally) error {
	if err := s.pages.validate(want); err != nil {
		return err
	}
	if err := s.small.Validate(); err != nil {
		return err
	}
	spare, inBins, slots, chunks := 0, 0, make([]int, len(s.slots)), slices.Clone(s.chunks)
	for page, b := range s.bins {
		switch {
		case b.parts > 0:
			free := s.binCapacity(page, int(b.class)) - int(b.parts)
			slots[b.class] += free
			want.AddRanges(s.geometry.Unit<<b.class, free)
			inBins += int(b.parts)
			chunks[page/chunkBins] -= int(b.parts)
		case s.chunks[page/chunkBins] != noChunk && page%chunkBins >= s.geometry.HeaderPages():
			spare++
			want.AddRanges(s.binBytes(page), 1)
		}
	}
	for number, parts := range chunks {
		if parts != 0 && parts != noChunk {
			return fmt.Errorf("chunk %d has %d parts less than are counted", number, parts)
		}
	}
	if stats := s.small.Stats(); spare != s.spare || !slices.Equal(slots, s.slots) || inBins != stats.Small || inBins > s.parts {
		return fmt.Errorf("%d spare bins and slots %v, counted as %d and %v; %d parts in bins of %+v", spare, slots, s.spare, s.slots, inBins, stats)
	}
	return nil
}
