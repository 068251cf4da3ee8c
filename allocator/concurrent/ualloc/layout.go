package ualloc

// The methods in this file are for callers that count free memory themselves.

// ChunkPages returns the pages of a chunk. Coarse is asked for chunks only when a small block needs one.
func (g Geometry) ChunkPages() int { return g.binsPerChunk() }

// HeaderPages returns how many pages at a chunk's start are not bins.
func (g Geometry) HeaderPages() int { return headerBins }

// BinPageOf returns the bin, as a page, of the small block at an offset. If the block is in a tail, it lies in another page.
// ok is false if no small block can be at the offset.
func (g Geometry) BinPageOf(offset uint64) (page int, ok bool) {
	index, _, ok := locateUnit(int(offset % g.ChunkBytes() / g.Unit))
	return int(offset/g.ChunkBytes())*g.binsPerChunk() + index, ok && index < g.binsPerChunk()
}

// Capacity returns how many blocks of size bytes, from 1 to LargestSmall, the bin at a page holds.
func (g Geometry) Capacity(page int, size uint64) int {
	return binCapacity(g.classOf(size), page%g.binsPerChunk())
}

// RoundUpSmall returns the bytes that a small block for a request of size bytes, from 1 to LargestSmall, has.
func (g Geometry) RoundUpSmall(size uint64) uint64 { return g.Unit << g.classOf(size) }
