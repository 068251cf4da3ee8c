package allocator

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// freeBlocks orders the blocks that the program does not use, and counts all blocks.
//
//   - A cached block is listed by age and has a slot. Unless it is a slab, it stands on the free list, too.
//   - A cooling block is listed by age and stands on the list of cooling blocks.
//   - Ages are in the order in which blocks became cached; now never goes back.
//   - The counters and gauges of stats agree with the block table; tally sums the cached blocks that are not slabs.
type freeBlocks struct {
	blockTable
	now  int64  // the latest time that a call named, in ns
	turn uint64 // blocks that ever became cached

	free          freeList // cached blocks, except slabs
	coolingBlocks freeList
	chain         chain // of entries
	cachedByAge,
	coolingByAge ages
	slots   slots           // of cached blocks
	moments Chunked[moment] // of cached blocks, by slot
	evicted *recentlyEvicted

	stats Stats // after the lists: it is large, and hits would find them on further cache lines
	tally carve.Tally
}

// moment is when a block became cached.
type moment struct {
	since int64
	turn  uint64 // number of that event: 1 for the first block that became cached
}

// cachingMoment returns when cached block i became cached.
func (f *freeBlocks) cachingMoment(i int32) *moment { return f.moments.At(int32(f.entryAt(i).wanted)) }

// rebuildFreeLists makes free lists that are sorted as a rule needs, and moves the blocks of the former lists to them.
func (f *freeBlocks) rebuildFreeLists(r rule) {
	tagged := r != nil && r.sortsByTag()
	f.free, f.coolingBlocks = newFreeList(tagged), newFreeList(tagged)
	f.evicted = newRecentlyEvicted(tagged)
	for i := f.cachedByAge.oldest; i != 0; i = f.chain.At(i).newer {
		f.free.addBlock(i, f.entryAt(i))
	}
	for i := f.coolingByAge.oldest; i != 0; i = f.chain.At(i).newer {
		f.coolingBlocks.addBlock(i, f.entryAt(i))
	}
}

// addCached makes a block cached.
func (f *freeBlocks) addCached(i int32) {
	e := f.entryAt(i)
	f.turn++
	e.state, e.wanted = cached, uint64(f.slots.occupySlot(i))
	f.moments.MakePlace(int32(e.wanted))
	*f.cachingMoment(i) = moment{f.now, f.turn}
	f.chain.addAsNewest(&f.cachedByAge, i)
	if e.isSlab {
		return // its bytes are counted as a carver's
	}
	f.free.addBlock(i, e)
	f.stats.BytesCached += e.size
	f.tally.AddRanges(e.size, 1)
}

// removeCached ends the caching of a block.
func (f *freeBlocks) removeCached(i int32) {
	e := f.entryAt(i)
	f.slots.vacateSlot(int32(e.wanted))
	f.chain.removeEntry(&f.cachedByAge, i)
	if e.isSlab {
		return
	}
	f.free.removeBlock(i, e)
	f.stats.BytesCached -= e.size
	f.tally.AddRanges(e.size, -1)
}

// noteBlockOutOfUse notes that the program no longer uses a block.
func (f *freeBlocks) noteBlockOutOfUse(i int32) {
	e := f.entryAt(i)
	f.stats.BytesInUse -= e.size
	f.stats.BytesWanted -= e.wanted
}

// cachedOfTag returns the cached blocks of a block's tag by age. The first call makes the lists: only max_per_tag needs them,
// and few programs set it.
func (f *freeBlocks) cachedOfTag(e *entry) ages {
	if !f.free.byAge {
		var blocks []int32
		for i := f.cachedByAge.oldest; i != 0; i = f.chain.At(i).newer {
			if !f.entryAt(i).isSlab {
				blocks = append(blocks, i)
			}
		}
		f.free.startListingByAge(blocks)
	}
	return f.free.blocksOfTagByAge(e.class, e.tag)
}

// cachedInDrainOrder lists the cached blocks, slabs included. Where all of them go at once, the oldest come first.
func (f *freeBlocks) cachedInDrainOrder(order order) []int32 {
	var list []int32
	for i := f.cachedByAge.oldest; i != 0; i = f.chain.At(i).newer {
		list = append(list, i)
	}
	switch order {
	case bySlot:
		slices.SortFunc(list, func(i, j int32) int { return cmp.Compare(f.entryAt(i).wanted, f.entryAt(j).wanted) })
	case largestFirst:
		slices.SortFunc(list, f.compareBySize)
	}
	return list
}

// compareBySize orders cached blocks from the largest to the smallest, and equal ones from the latest to the oldest. It does not
// look at the numbers of classes: a replay may meet the classes in another order.
func (f *freeBlocks) compareBySize(i, j int32) int {
	a, b := f.entryAt(i), f.entryAt(j)
	return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(f.cachingMoment(j).turn, f.cachingMoment(i).turn))
}

// reuseBlock serves a request with a cached block.
func (f *freeBlocks) reuseBlock(decision *Decision, i int32, req *Request) {
	f.removeCached(i)
	e := f.entryAt(i)
	e.state, e.reason, e.wanted, e.route = decided, wire.MissNone, req.Size, decision.Route
	decision.Hit, decision.Block, decision.Size = true, f.blockOfEntry(i), e.size
}
