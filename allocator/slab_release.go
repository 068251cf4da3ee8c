package allocator

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// abortSubAlloc returns a sub-allocation that was not created to its slab. If the slab was not created either, it goes
// with its last sub-allocation.
func (c *cache) abortSubAlloc(i int32) {
	s := c.slabOf(c.entryAt(i))
	number, grower := c.entryAt(i).slab, c.entryAt(i).reason != wire.MissNone
	c.returnRangeToCarver(i)
	if !s.grown && grower {
		s.home.halveSlabBound(c.entryAt(s.entry).size)
		c.orphanSubAllocs(number)
	}
	switch {
	case !s.hasOnlyLostSubAllocs():
	case !s.grown:
		c.forgetSlab(number)
	default:
		c.cacheOrDoomSlab(s)
	}
	c.stats.raisePeaks()
}

// orphanSubAllocs removes the sub-allocations of other decisions from a slab that will never be created, so that no further
// decision gets a range of it. Their entries stay until those decisions are aborted as well.
func (sl *slabs) orphanSubAllocs(number int32) {
	s := &sl.list[number]
	for i := int32(0); s.parts > 0 && i < sl.made; i++ { // the slab seldom has any parts
		if e := sl.entryAt(i); e.slab == number && !e.isSlab {
			s.home.carver.Free(carve.Part{Slab: number, Offset: e.offset, Size: e.size})
			e.slab, e.reason = 0, wire.MissCold // no hit of a cached block
			s.parts--
			s.used -= e.size
		}
	}
}

// cacheOrDoomSlab caches or dooms a slab that has lost its last sub-allocation in a call that reports no evictions.
func (c *cache) cacheOrDoomSlab(s *slab) {
	e := c.entryAt(s.entry)
	switch {
	case s.used == e.size: // all of it is lost
		e.doom = wire.EvictState
		c.markDoomed(s.entry)
	case e.dropped || e.stale != wire.EvictNone || c.stats.BytesCached > c.maxCachedBytes():
		e.doom = e.stale
		c.markDoomed(s.entry)
	default:
		c.addCached(s.entry)
	}
}

// hasOnlyLostSubAllocs reports whether the slab has no sub-allocations except lost ones.
func (s *slab) hasOnlyLostSubAllocs() bool { return int(s.parts) == len(s.lost) }

// hasOnlyCoolingSubAllocs reports whether only cooling and lost sub-allocations are left in the slab.
func (s *slab) hasOnlyCoolingSubAllocs() bool { return int(s.parts) == int(s.cooling)+len(s.lost) }

// returnRangeToCarver returns a sub-allocation's range to the carver.
func (sl *slabs) returnRangeToCarver(i int32) {
	e := sl.entryAt(i)
	s := sl.slabOf(e)
	s.home.carver.Free(carve.Part{Slab: e.slab, Offset: e.offset, Size: e.size})
	s.parts--
	s.used -= e.size
	if s.grown {
		sl.stats.BytesCached += e.size
	}
	sl.recycleEntry(i)
}

// freeSubAlloc returns to its slab a sub-allocation that neither the program nor a command uses.
func (c *cache) freeSubAlloc(i int32, out []Eviction) []Eviction {
	s := c.slabOf(c.entryAt(i))
	c.stats.Parts--
	c.returnRangeToCarver(i)
	if s.hasOnlyLostSubAllocs() {
		switch {
		case c.entryAt(s.entry).dropped:
			return c.dismissBlock(s.entry, wire.EvictContext, out)
		case c.entryAt(s.entry).stale != wire.EvictNone:
			return c.dismissBlock(s.entry, c.entryAt(s.entry).stale, out)
		case c.limits.rejectNew && c.stats.BytesCached > c.maxCachedBytes():
			return c.dismissBlock(s.entry, wire.EvictLimit, out)
		}
		c.addCached(s.entry)
	}
	out = c.evictOldest(out)
	c.stats.raisePeaks()
	return out
}

// loseSubAlloc notes that a sub-allocation's range may stay in use for as long as its slab lives. Until then it counts
// as cooling.
func (c *cache) loseSubAlloc(i int32) {
	e := c.entryAt(i)
	s := c.slabOf(e)
	e.state = doomed // so that no call finds it
	c.stats.Parts--
	c.stats.BytesCooling += e.size
	s.lost = append(s.lost, i)
	c.stats.raisePeaks()
	if s.hasOnlyLostSubAllocs() {
		c.cacheOrDoomSlab(s)
	}
}

// removeSlab removes a slab from its carver. Its lost sub-allocations end with it; it has no others.
func (sl *slabs) removeSlab(i int32, reason wire.Evict) {
	e := sl.entryAt(i)
	s := sl.slabOf(e)
	c := s.home
	for _, part := range s.lost {
		sl.stats.BytesCooling -= sl.entryAt(part).size
		sl.returnRangeToCarver(part)
	}
	sl.stats.Slabs--
	sl.bytes -= e.size
	sl.stats.BytesCached -= e.size
	switch reason {
	case wire.EvictLimit, wire.EvictAge, wire.EvictProportion:
		c.evicted, c.blame = c.evicted+1, wire.MissLimit
	case wire.EvictDrain, wire.EvictTrim, wire.EvictRelief:
		c.evicted, c.blame = c.evicted+1, wire.MissDrained
	}
	sl.removeFromList(e.slab)
	sl.forgetCarver(e.class)
}

// forgetCarver forgets the carver of a class that was dropped, once it has no slabs.
func (sl *slabs) forgetCarver(class Class) {
	if c := sl.classes[class]; c != nil && c.slabs == 0 && sl.isDropped(class) {
		delete(sl.classes, class)
		sl.last = nil
	}
}

// forgetSlab forgets a slab that was never created.
func (sl *slabs) forgetSlab(number int32) {
	i := sl.list[number].entry
	class := sl.entryAt(i).class
	sl.removeFromList(number)
	sl.recycleEntry(i)
	sl.forgetCarver(class)
}

// removeFromList removes a slab from the list. A former carver goes with its last slab.
func (sl *slabs) removeFromList(number int32) {
	home := sl.list[number].home
	home.carver.RemoveSlab(number)
	if home.slabs--; home.slabs == 0 {
		sl.former = slices.DeleteFunc(sl.former, func(c *carved) bool { return c == home })
	}
	sl.list[number] = slab{}
	sl.vacant = append(sl.vacant, number)
}

// endCarving ends the carving of a carver's slabs. They go with their last sub-allocations.
func (sl *slabs) endCarving(home *carved) {
	sl.former = append(sl.former, home)
	for number := range sl.list {
		if s := &sl.list[number]; s.home == home {
			sl.setLeavesOnReturn(sl.entryAt(s.entry), false, wire.EvictPolicy)
		}
	}
}

// drainSlabs gives up slabs whose sub-allocations all cool, or are lost. The program released the driver objects of these
// sub-allocations; the driver keeps the memory until their commands end.
func (sl *slabs) drainSlabs(out []Eviction) []Eviction {
	if !slices.ContainsFunc(sl.list, func(s slab) bool { return s.cooling > 0 && s.hasOnlyCoolingSubAllocs() }) {
		return out // saves the visit of each cooling sub-allocation: there may be many
	}
	for i := sl.coolingByAge.oldest; i != 0; {
		next := sl.chain.At(i).newer
		if e := sl.entryAt(i); e.isSubAlloc() && sl.slabOf(e).hasOnlyCoolingSubAllocs() {
			out = sl.discardCoolingRange(i, wire.EvictDrain, out)
		}
		i = next
	}
	return out
}

// discardCoolingRange ends a cooling sub-allocation whose range will not be reused. Its slab goes with the last one.
func (sl *slabs) discardCoolingRange(i int32, reason wire.Evict, out []Eviction) []Eviction {
	s := sl.slabOf(sl.entryAt(i))
	sl.removeFromCooling(i)
	sl.stats.Parts--
	sl.returnRangeToCarver(i)
	if !s.hasOnlyLostSubAllocs() {
		return out
	}
	return sl.dismissBlock(s.entry, reason, out)
}

// dropSlabs ends the cooling sub-allocations of a class, and evicts its slabs that then have no sub-allocation in use.
func (c *cache) dropSlabs(class Class, out []Eviction) []Eviction {
	for i := c.coolingByAge.oldest; i != 0; {
		next := c.chain.At(i).newer
		if e := c.entryAt(i); e.isSubAlloc() && e.class == class {
			out = c.discardCoolingRange(i, wire.EvictContext, out)
		}
		i = next
	}
	for number := range c.slabs.list {
		i := c.slabs.list[number].entry
		if e := c.entryAt(i); e.isSlab && e.class == class && e.state == cached {
			out = c.evictCachedBlock(i, wire.EvictContext, out)
		}
	}
	c.forgetCarver(class)
	out = c.evictOldest(out) // in slabs that stay, the ranges that cooled count as cached now
	c.stats.raisePeaks()
	return out
}
