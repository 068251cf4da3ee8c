package allocator

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// abortSubAlloc returns a sub-allocation that was not created to its slab. If the slab was not created either, it goes
// with its last sub-allocation.
func (c *cache) abortSubAlloc(i int32) {
	s := c.slabOf(c.at(i))
	number, grower := c.at(i).slab, c.at(i).reason != wire.MissNone
	c.giveBack(i)
	if !s.grown && grower {
		s.home.halveMost(c.at(s.entry).size)
		c.orphan(number)
	}
	switch {
	case !s.hasOnlyLost():
	case !s.grown:
		c.forgetSlab(number)
	default:
		c.cacheOrDoom(s)
	}
	c.stats.raisePeaks()
}

// orphan removes the sub-allocations of other decisions from a slab that will never be created, so that no further
// decision gets a range of it. Their entries stay until those decisions are aborted as well.
func (sl *slabs) orphan(number int32) {
	s := &sl.list[number]
	for i := int32(0); s.parts > 0 && i < sl.made; i++ { // the slab seldom has any parts
		if e := sl.at(i); e.slab == number && !e.isSlab {
			s.home.carver.Free(carve.Part{Slab: number, Offset: e.offset, Size: e.size})
			e.slab = 0
			s.parts--
			s.used -= e.size
		}
	}
}

// cacheOrDoom caches or dooms a slab that has lost its last sub-allocation in a call that reports no evictions.
func (c *cache) cacheOrDoom(s *slab) {
	e := c.at(s.entry)
	switch {
	case s.used == e.size: // all of it is lost
		e.doom = wire.EvictState
		c.mustEvict(s.entry)
	case e.dropped || e.stale != wire.EvictNone || c.stats.BytesCached > c.cap():
		e.doom = e.stale
		c.mustEvict(s.entry)
	default:
		c.addCached(s.entry)
	}
}

// hasOnlyLost reports whether the slab has no sub-allocations except lost ones.
func (s *slab) hasOnlyLost() bool { return int(s.parts) == len(s.lost) }

// cools reports whether only cooling and lost sub-allocations are left in the slab.
func (s *slab) cools() bool { return int(s.parts) == int(s.cooling)+len(s.lost) }

// giveBack returns a sub-allocation's range to the carver.
func (sl *slabs) giveBack(i int32) {
	e := sl.at(i)
	s := sl.slabOf(e)
	s.home.carver.Free(carve.Part{Slab: e.slab, Offset: e.offset, Size: e.size})
	s.parts--
	s.used -= e.size
	if s.grown {
		sl.stats.BytesCached += e.size
	}
	sl.recycle(i)
}

// freeSubAlloc returns to its slab a sub-allocation that neither the program nor a command uses.
func (c *cache) freeSubAlloc(i int32, out []Eviction) []Eviction {
	s := c.slabOf(c.at(i))
	c.stats.Parts--
	c.giveBack(i)
	if s.hasOnlyLost() {
		switch {
		case c.at(s.entry).dropped:
			return c.dismiss(s.entry, wire.EvictContext, out)
		case c.at(s.entry).stale != wire.EvictNone:
			return c.dismiss(s.entry, c.at(s.entry).stale, out)
		case c.limits.rejectNew && c.stats.BytesCached > c.cap():
			return c.dismiss(s.entry, wire.EvictLimit, out)
		}
		c.addCached(s.entry)
	}
	out = c.evictOld(out)
	c.stats.raisePeaks()
	return out
}

// loseSubAlloc notes that a sub-allocation's range may stay in use for as long as its slab lives. Until then it counts
// as cooling.
func (c *cache) loseSubAlloc(i int32) {
	e := c.at(i)
	s := c.slabOf(e)
	e.state = doomed // so that no call finds it
	c.stats.Parts--
	c.stats.BytesCooling += e.size
	s.lost = append(s.lost, i)
	c.stats.raisePeaks()
	if s.hasOnlyLost() {
		c.cacheOrDoom(s)
	}
}

// removeSlab removes a slab from its carver. Its lost sub-allocations end with it; it has no others.
func (sl *slabs) removeSlab(i int32, reason wire.Evict) {
	e := sl.at(i)
	s := sl.slabOf(e)
	c := s.home
	for _, part := range s.lost {
		sl.stats.BytesCooling -= sl.at(part).size
		sl.giveBack(part)
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
	sl.remove(e.slab)
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
	class := sl.at(i).class
	sl.remove(number)
	sl.recycle(i)
	sl.forgetCarver(class)
}

// remove removes a slab from the list. A former carver goes with its last slab.
func (sl *slabs) remove(number int32) {
	home := sl.list[number].home
	home.carver.Remove(number)
	if home.slabs--; home.slabs == 0 {
		sl.former = slices.DeleteFunc(sl.former, func(c *carved) bool { return c == home })
	}
	sl.list[number] = slab{}
	sl.vacant = append(sl.vacant, number)
}

// abandon ends the carving of a carver's slabs. They go with their last sub-allocations.
func (sl *slabs) abandon(home *carved) {
	sl.former = append(sl.former, home)
	for number := range sl.list {
		if s := &sl.list[number]; s.home == home {
			sl.mark(sl.at(s.entry), false, wire.EvictPolicy)
		}
	}
}

// drainSlabs gives up slabs whose sub-allocations all cool, or are lost. The program released the driver objects of these
// sub-allocations; the driver keeps the memory until their commands end.
func (sl *slabs) drainSlabs(out []Eviction) []Eviction {
	if !slices.ContainsFunc(sl.list, func(s slab) bool { return s.cooling > 0 && s.cools() }) {
		return out // saves the visit of each cooling sub-allocation: there may be many
	}
	for i := sl.coolingByAge.oldest; i != 0; {
		next := sl.chain[i].newer
		if e := sl.at(i); e.isSubAlloc() && sl.slabOf(e).cools() {
			out = sl.endCooling(i, wire.EvictDrain, out)
		}
		i = next
	}
	return out
}

// endCooling ends a cooling sub-allocation whose range will not be reused. Its slab goes with the last one.
func (sl *slabs) endCooling(i int32, reason wire.Evict, out []Eviction) []Eviction {
	s := sl.slabOf(sl.at(i))
	sl.leaveCooling(i)
	sl.stats.Parts--
	sl.giveBack(i)
	if !s.hasOnlyLost() {
		return out
	}
	return sl.dismiss(s.entry, reason, out)
}

// dropSlabs ends the cooling sub-allocations of a class, and evicts its slabs that then have no sub-allocation in use.
func (c *cache) dropSlabs(class Class, out []Eviction) []Eviction {
	for i := c.coolingByAge.oldest; i != 0; {
		next := c.chain[i].newer
		if e := c.at(i); e.isSubAlloc() && e.class == class {
			out = c.endCooling(i, wire.EvictContext, out)
		}
		i = next
	}
	for number := range c.slabs.list {
		i := c.slabs.list[number].entry
		if e := c.at(i); e.isSlab && e.class == class && e.state == cached {
			out = c.evict(i, wire.EvictContext, out)
		}
	}
	c.forgetCarver(class)
	out = c.evictOld(out) // in slabs that stay, the ranges that cooled count as cached now
	c.stats.raisePeaks()
	return out
}
