package stats

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
)

// freeBlock is a block's place in the free list of its call site.
type freeBlock struct {
	site           *processSite // the last that had the block
	class          int32        // the list, in callSites.classes
	previous, next int32        // blocks in that list
	age
}

// class is a list of the free blocks of one size of a call site, in the order in which they were freed.
type class struct {
	size           uint64
	first, last    int32 // places of blocks in the heap, -1 at the ends
	count, cooling uint64
}

// addFreeBlock appends a free block to the free list of the call site that had it.
func (cs *callSites) addFreeBlock(b *heap.Block) {
	cs.appendFreeBlock(b, cs.blocks[b.Place].site.finalSite())
	cs.enqueueCached(b, b.Freed)
}

func (cs *callSites) appendFreeBlock(b *heap.Block, s *processSite) {
	at := s.classes.PlaceOf(b.Size)
	if at < 0 {
		var c *class
		at, c = cs.classes.TakePlace()
		*c = class{size: b.Size, first: -1, last: -1}
		s.classes.Put(b.Size, at)
	}
	c, n := cs.classes.At(at), &cs.blocks[b.Place]
	n.site, n.class, n.previous, n.next = s, at, c.last, -1
	if c.last < 0 {
		c.first = b.Place
	} else {
		cs.blocks[c.last].next = b.Place
	}
	c.last = b.Place
	c.count++
	s.markFreeListStale()
	changeFreeBlockGauges(b, s, c, 1, n.idle)
}

// removeFreeBlock takes a block out of its free list, for good.
func (cs *callSites) removeFreeBlock(b *heap.Block) {
	cs.unlinkFreeBlock(b)
	cs.dequeueCached(b)
}

func (cs *callSites) unlinkFreeBlock(b *heap.Block) {
	n := &cs.blocks[b.Place]
	s, c := n.site.finalSite(), cs.classes.At(n.class)
	if n.previous < 0 {
		c.first = n.next
	} else {
		cs.blocks[n.previous].next = n.next
	}
	if n.next < 0 {
		c.last = n.previous
	} else {
		cs.blocks[n.next].previous = n.previous
	}
	c.count--
	s.markFreeListStale()
	changeFreeBlockGauges(b, s, c, -1, n.idle)
	if c.count == 0 {
		s.classes.Remove(c.size)
		cs.classes.ReturnPlace(n.class)
	}
}

// changeFreeBlockGauges adds a free block to the gauges of its call site, or takes it off.
func changeFreeBlockGauges(b *heap.Block, s *processSite, c *class, sign int64, idle bool) {
	bytes := sign * int64(b.Size)
	cools := b.State == heap.Cooling
	if cools {
		c.cooling += uint64(sign)
	}
	for f := range s.eachFigures {
		if cools {
			f.cooling += bytes
			continue
		}
		f.cached += bytes
		f.blocks += sign
		if idle {
			f.idle += bytes
		}
	}
}

// noteBlockCooled notes a free block that is cached from now on.
func (cs *callSites) noteBlockCooled(b *heap.Block) {
	n := &cs.blocks[b.Place]
	s, bytes := n.site.finalSite(), int64(b.Size)
	cs.classes.At(n.class).cooling--
	for f := range s.eachFigures {
		f.cooling -= bytes
		f.cached += bytes
		f.blocks++
	}
	s.markFreeListStale()
	cs.enqueueCached(b, cs.heap.Now())
}

// mergeFreeLists moves the free blocks of two call sites of a process into one list, in the order in which they were freed.
func (cs *callSites) mergeFreeLists(from, to *processSite) {
	var places []int32
	for _, s := range [2]*processSite{from, to} {
		s.classes.EachKey(func(_ uint64, place int32) {
			for b := cs.classes.At(place).first; b >= 0; b = cs.blocks[b].next {
				places = append(places, b)
			}
		})
	}
	slices.SortFunc(places, func(a, b int32) int {
		x, y := cs.heap.BlockAt(a), cs.heap.BlockAt(b)
		return cmp.Or(cmp.Compare(x.Freed, y.Freed), cmp.Compare(x.ID, y.ID))
	})
	for _, place := range places {
		b := cs.heap.BlockAt(place)
		cs.unlinkFreeBlock(b)
		cs.appendFreeBlock(b, to)
	}
}

// markFreeListStale notes that the free list has changed since it was shown.
func (s *processSite) markFreeListStale() { s.free, s.site.free = nil, nil }

// freeClasses lists the free blocks of call sites by size, smallest first.
func (cs *callSites) freeClasses(of []*processSite) []FreeClass {
	list := []FreeClass{}
	for _, s := range of {
		s.classes.EachKey(func(size uint64, place int32) {
			c := cs.classes.At(place)
			list = append(list, FreeClass{
				Size: size, Blocks: c.count, Cooling: c.cooling, Oldest: cs.heap.BlockAt(c.first).Freed,
			})
		})
	}
	sortClasses(list)
	return joinEqualClasses(list)
}

func sortClasses(list []FreeClass) {
	slices.SortFunc(list, func(a, b FreeClass) int { return cmp.Compare(a.Size, b.Size) })
}

// joinEqualClasses makes one class of neighbours of the same size. These are the classes of several processes.
func joinEqualClasses(list []FreeClass) []FreeClass {
	joined := list[:0]
	for _, c := range list {
		last := len(joined) - 1
		if last < 0 || joined[last].Size != c.Size {
			joined = append(joined, c)
			continue
		}
		joined[last].Blocks += c.Blocks
		joined[last].Cooling += c.Cooling
		joined[last].Oldest = min(joined[last].Oldest, c.Oldest)
	}
	return joined
}
