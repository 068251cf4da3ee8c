// Package ualloc is the unaligned allocator UAlloc of seed 001 §4.2: small blocks of a pool for many threads at once.
// It is pure: no device, no clock, no I/O, no goroutine. It hands out offsets and never touches the memory, which may
// be a device's; headers are on the host, but their place in the pool stays unused, as the seed lays it out.
//
// Definition. The pool is pages, given out in powers of two by a coarse allocator. A chunk is 128 pages or fewer, which
// are its bins. A bin has a class, and is divided into blocks of 1, 2, 4... 128 units after a header of 16 units. The
// first two bins of a chunk are its header, and divided into 62 tails of 16 units. Logically, a tail is the end of the
// bin that it belongs to, for classes up to 16 units. Sizes are rounded up to a power of two of units. Pages serve
// requests so large that a bin could not hold two. Each arena has its own chunks, a list of bins with free slots for
// each class, and a bulk semaphore for its chunks and for each list. An allocation takes a unit of the semaphore, then
// decrements the free counter of some bin in the list, then sets a zero bit in its bitmap. A thread that gets no unit
// adds a new bin, and if necessary a new chunk. A bin without blocks goes back to its chunk, a chunk without bins in
// use to the coarse allocator.
//
// The seed gives bins back at once. A program that takes one block and frees it, again and again, would make a chunk
// and a bin each time. So each arena keeps one empty bin for each class, the most recently emptied, with its chunk: at
// most 8 bins in 8 chunks for each arena. Kept bins are free memory: an arena gives its own back before it asks for
// another chunk. Trim, and an allocation that finds no memory, give back all of them.
//
// The seed describes a chunk of 512 KiB with bins of 4 KiB, 64 bins and 62 tails. But 512/4 is 128. Two bins hold 62
// tails in both cases, so here 62 of the 126 usable bins have a tail, and the others hold that much less. The share of
// a chunk that small blocks can use is the same in both readings: everything but the headers, 1 - 16/512 = 96.875 %.
//
// Invariants:
//   - Blocks do not overlap, and start at multiples of the unit.
//   - A block of at most LargestSmall bytes never starts at a multiple of a page, a larger one always does: an offset says
//     who owns it (§4).
//   - A thread that has a unit of a semaphore finds the slot or bin that the unit counts.
//   - When no call is under way, free counter plus blocks in use is a bin's capacity, and the free counters of a list
//     add up to its semaphore. Only kept bins have no blocks. When all blocks are freed and the pool is trimmed, the
//     coarse allocator has all pages back.
//   - Calls that do not overlap in time give the same answers in every run.
package ualloc

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync/atomic"
)

// Coarse gives out pages: blocks of 2^order pages that start at a multiple of their size. Alloc returns false if it has
// no block, whatever the order; with different scatter it may look in different places. Free returns false if no such
// block is out. All methods may be called from any thread. A tbuddy.Tree is a Coarse.
type Coarse interface {
	Alloc(order int, scatter uint64) (page int, ok bool)
	Free(page, order int) (ok bool)
}

// Allocator is the allocator of one pool. Make one with New. All methods may be called from any thread.
type Allocator struct {
	geometry Geometry
	coarse   Coarse
	arenas   []*arena
	chunks   []atomic.Pointer[chunk] // by offset
	// large has, for the first page of a block of pages, its order plus one. A tree of pages knows its orders itself,
	// but only the block's owner knows whether a page is a block's first.
	large   []atomic.Uint32
	arrived atomic.Uint64 // how often units, a bin or a chunk that another thread had taken out came back
	wanting atomic.Int32  // allocations that have found nothing so far: meanwhile no bin is kept
}

// New returns an allocator for a pool whose pages coarse has, all of them free. More arenas mean less contention and
// more chunks that are not full. There must be at least one arena.
func New(coarse Coarse, geometry Geometry, arenas int) (*Allocator, error) {
	if err := geometry.check(); err != nil {
		return nil, fmt.Errorf("ualloc: %w", err)
	}
	if arenas < 1 {
		return nil, fmt.Errorf("ualloc: %d arenas", arenas)
	}
	al := &Allocator{
		geometry: geometry,
		coarse:   coarse,
		arenas:   make([]*arena, arenas),
		chunks:   make([]atomic.Pointer[chunk], (geometry.Pages+geometry.binsPerChunk()-1)/geometry.binsPerChunk()),
		large:    make([]atomic.Uint32, geometry.Pages),
	}
	for i := range al.arenas {
		al.arenas[i] = newArena(al, i)
	}
	return al, nil
}

// Geometry returns what New was given.
func (al *Allocator) Geometry() Geometry { return al.geometry }

// Alloc takes a block of at least size bytes, and returns its offset and its bytes. A small block comes from the arena
// with that number, modulo the number of arenas: threads with different numbers do not disturb each other. If neither
// this arena nor the coarse allocator has room, the next arenas serve; the seed has no rule for that. ok is false for
// size 0, and if there is no room; memory that calls in progress are about to free counts as in use.
func (al *Allocator) Alloc(arena int, size uint64) (offset, granted uint64, ok bool) {
	if size == 0 || size > uint64(al.geometry.Pages)*al.geometry.PageBytes() {
		return 0, 0, false
	}
	if offset, granted, ok = al.allocFromAnyArena(arena, size); ok {
		return offset, granted, true
	}
	return al.retryAlloc(arena, size)
}

// retryAlloc tries again with all free memory (§3.1: false resource starvation). It takes back the kept bins, keeps no bin
// meanwhile, and waits for bins that wait for readers.
func (al *Allocator) retryAlloc(arena int, size uint64) (offset, granted uint64, ok bool) {
	al.wanting.Add(1)
	defer al.wanting.Add(-1)
	al.returnKeptBins()
	for range tries {
		arrived := al.arrived.Load()
		if offset, granted, ok = al.allocFromAnyArena(arena, size); ok {
			return offset, granted, true
		}
		if !al.returnKeptBins() && !al.waitForLentMemory(arrived) && al.arrived.Load() == arrived {
			break
		}
	}
	return 0, 0, false
}

// Trim gives back the kept bins and their chunks: see the package comment. Bins that calls in progress keep may stay.
// It waits for readers as Free does.
func (al *Allocator) Trim() {
	al.returnKeptBins()
	al.waitForLentMemory(al.arrived.Load())
}

// returnKeptBins sends the kept bins of all arenas to their chunks. Unlike Trim it does not wait for bins that other threads
// send there. It reports whether a bin was kept.
func (al *Allocator) returnKeptBins() bool {
	found := false
	for _, a := range al.arenas {
		found = a.returnKeptBins() || found
	}
	return found
}

// tries is how often retryAlloc tries if memory came back meanwhile. Without a limit, an allocation that nothing can serve
// would try for as long as other threads allocate and free.
const tries = 16

func (al *Allocator) allocFromAnyArena(arena int, size uint64) (offset, granted uint64, ok bool) {
	if size > al.geometry.LargestSmall() {
		return al.allocLarge(arena, size)
	}
	class := al.geometry.classOf(size)
	n := uint(len(al.arenas))
	for i := range n {
		if b, slot, ok := al.arenas[(uint(arena)%n+i)%n].alloc(class); ok {
			unit := b.chunk.page*binUnits + unitOf(class, b.index, slot)
			return uint64(unit) * al.geometry.Unit, al.geometry.Unit << class, true
		}
	}
	return 0, 0, false
}

// waitForLentMemory waits until the memory that other threads have taken out is back: all of it, or in each arena some of it since
// arrived was read. It reports whether any was out. A barrier alone is not enough: a thread that takes a bin out queues
// the bin's return a little later.
func (al *Allocator) waitForLentMemory(arrived uint64) bool {
	waited := false
	for _, a := range al.arenas {
		for a.leaving.Load() > 0 {
			waited = true
			a.readers.Barrier()
			if al.arrived.Load() != arrived {
				break
			}
			runtime.Gosched()
		}
	}
	return waited
}

// Free frees the block at an offset, and returns its bytes. ok is false, and nothing happens, if no block begins there:
// for example, if the block was freed before and not given out again since. Free may wait for threads that walk the
// list of a bin that has become empty; these wait for nothing but a list's mutex.
func (al *Allocator) Free(offset uint64) (granted uint64, ok bool) {
	page := offset / al.geometry.PageBytes()
	switch {
	case offset%al.geometry.Unit != 0 || page >= uint64(al.geometry.Pages):
		return 0, false
	case offset%al.geometry.PageBytes() == 0:
		return al.freeLarge(int(page))
	}
	number := int(offset / al.geometry.ChunkBytes())
	c := al.chunks[number].Load()
	if c == nil {
		return 0, false
	}
	index, within, ok := locateUnit(int(offset % al.geometry.ChunkBytes() / al.geometry.Unit))
	if !ok || index >= len(c.bins) { // a small chunk has room for more tails than bins
		return 0, false
	}
	class, ok := c.arena.free(c, number, index, within)
	if !ok {
		return 0, false
	}
	return al.geometry.Unit << class, true
}

func (al *Allocator) allocLarge(arena int, size uint64) (offset, granted uint64, ok bool) {
	order := bits.Len64((size - 1) / al.geometry.PageBytes())
	page, ok := al.coarse.Alloc(order, uint64(arena))
	if !ok {
		return 0, 0, false
	}
	al.large[page].Store(uint32(order) + 1)
	return uint64(page) * al.geometry.PageBytes(), al.geometry.PageBytes() << order, true
}

func (al *Allocator) freeLarge(page int) (granted uint64, ok bool) {
	noted := al.large[page].Swap(0)
	if noted == 0 {
		return 0, false
	}
	order := int(noted) - 1
	return al.geometry.PageBytes() << order, al.coarse.Free(page, order)
}
