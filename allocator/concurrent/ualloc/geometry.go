package ualloc

import (
	"fmt"
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/semaphore"
)

// The layout in units, which have 8 bytes in seed 001 §4.2: bins of 4 KiB with headers of 128 bytes, chunks of 512 KiB,
// tails of 128 bytes.
const (
	binUnits    = 512
	headerUnits = 16
	tailUnits   = 16
	bodyUnits   = binUnits - headerUnits

	// chunkBins is the largest number of bins of a chunk, and the number if Geometry.Bins is 0.
	chunkBins = 128
	// The first two bins of a chunk hold its header and the tails of others.
	headerBins = 2
	tailsInBin = bodyUnits / tailUnits
	tailedBins = headerBins * tailsInBin

	// classes is how many sizes there are: 1, 2, 4... units, as long as a bin holds two.
	classes = 8
	// tailClasses is how many classes fit into a tail.
	tailClasses = 5

	bitmapWords = binUnits / 64
)

// Geometry is the size of a pool, of its units and of its chunks.
type Geometry struct {
	// Unit is the size of the smallest block in bytes, a power of two. Every offset is a multiple of it. The seed has
	// 8; sub-buffers of OpenCL need CL_DEVICE_MEM_BASE_ADDR_ALIGN (OpenCL 3.0 §5.2.1). All other sizes grow with it.
	Unit uint64
	// Pages is the size of the pool in pages. A page is a bin: 512 units.
	Pages int
	// Bins is how many bins a chunk has: a power of two from 4 to 128; 0 is 128. The first two are its header, so
	// blocks can use a smaller share of a small chunk: 96.875 % of 64 bins or more, 93.75 % of 32, 87.5 % of 16.
	Bins int
}

// PageBytes returns the bytes of a page, which is also a bin.
func (g Geometry) PageBytes() uint64 { return binUnits * g.Unit }

// ChunkBytes returns the bytes of a chunk.
func (g Geometry) ChunkBytes() uint64 { return uint64(g.binsPerChunk()) * g.PageBytes() }

func (g Geometry) binsPerChunk() int {
	if g.Bins == 0 {
		return chunkBins
	}
	return g.Bins
}

// chunkOrder returns the order of a chunk, in pages.
func (g Geometry) chunkOrder() int { return bits.Len(uint(g.binsPerChunk())) - 1 }

// usableBins returns how many bins of a chunk are not headers.
func (g Geometry) usableBins() int { return g.binsPerChunk() - headerBins }

// chunkSlots returns how many blocks of one unit a chunk can hold.
func (g Geometry) chunkSlots() int {
	return g.usableBins()*bodyUnits + min(g.usableBins(), tailedBins)*tailUnits
}

// MaxChunks returns how many chunks an arena has at most: a semaphore must be able to count their slots.
func (g Geometry) MaxChunks() int { return semaphore.MaxUnits / g.chunkSlots() }

// LargestSmall returns the largest size in bytes that bins serve. A bin would hold only one block of the next size, half a
// page, so larger blocks consist of pages.
func (g Geometry) LargestSmall() uint64 { return g.Unit << (classes - 1) }

func (g Geometry) check() error {
	const most = 1 << 48 // keeps every sum below far from overflow
	switch {
	case g.Unit == 0 || bits.OnesCount64(g.Unit) != 1 || g.Unit > most/binUnits:
		return fmt.Errorf("a unit of %d bytes is not a power of two that is useful", g.Unit)
	case g.Bins != 0 && (g.Bins < 4 || g.Bins > chunkBins || bits.OnesCount(uint(g.Bins)) != 1):
		return fmt.Errorf("chunks of %d bins", g.Bins)
	case g.Pages < 1 || uint64(g.Pages) > most/g.PageBytes():
		return fmt.Errorf("a pool of %d pages of %d bytes", g.Pages, g.PageBytes())
	}
	return nil
}

// classOf returns the class of a size from 1 to Largest.
func (g Geometry) classOf(size uint64) int { return bits.Len64((size - 1) / g.Unit) }

// binCapacity returns how many blocks of a class the bin with that index holds. Only the first 62 usable bins of a
// chunk have tails.
func binCapacity(class, index int) int {
	n := bodyUnits >> class
	if index < headerBins+tailedBins {
		n += tailUnits >> class // 0 for classes that a tail is too small for
	}
	return n
}

// unitOf returns the unit of a chunk at which a block begins: in the block's bin, or in the tail of that bin.
func unitOf(class, index, slot int) int {
	unit := slot << class
	if unit < bodyUnits {
		return index*binUnits + headerUnits + unit
	}
	tail := index - headerBins
	return tail/tailsInBin*binUnits + headerUnits + tail%tailsInBin*tailUnits + unit - bodyUnits
}

// locateUnit is the inverse of unitOf: it returns the bin that a unit of a chunk belongs to, and the unit within that bin,
// where the tail follows the body. ok is false for headers, which no block covers.
func locateUnit(unit int) (index, within int, ok bool) {
	index, within = unit/binUnits, unit%binUnits-headerUnits
	if within < 0 {
		return 0, 0, false
	}
	if index < headerBins {
		tail := index*tailsInBin + within/tailUnits
		return headerBins + tail, bodyUnits + within%tailUnits, true
	}
	return index, within, true
}
