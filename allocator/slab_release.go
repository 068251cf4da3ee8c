package allocator

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// abortSubAlloc gives a sub-allocation back that was not made, and a slab that was not created, with its last
// sub-allocation.
func (p *Pool) abortSubAlloc(i int32) {
	s := p.slabOf(i)
	number, grower := p.entries[i].slab, p.entries[i].reason != wire.MissNone
	p.giveBack(i)
	if !s.grown && grower {
		s.home.refuse(p.entries[s.entry].size)
		p.orphan(number)
	}
	switch {
	case !s.idle():
	case !s.grown:
		p.forgetSlab(number)
	default:
		p.settle(s)
	}
	p.stats.peaks()
}

// orphan takes the sub-allocations of other decisions out of a slab that will never be created, so that no further
// decision gets one. Their entries stay until those decisions are aborted, too.
func (p *Pool) orphan(number int32) {
	s := &p.slabs.list[number]
	for i := 0; s.parts > 0 && i < len(p.entries); i++ { // rarely more than none
		if e := &p.entries[i]; e.slab == number && !e.isSlab {
			s.home.carver.Free(carve.Part{Slab: number, Offset: e.offset, Size: e.size})
			e.slab = 0
			s.parts--
			s.used -= e.size
		}
	}
}

// settle does what the end of its last sub-allocation means for a slab, where no eviction can be reported.
func (p *Pool) settle(s *slab) {
	e := &p.entries[s.entry]
	switch {
	case s.used == e.size: // all of it is lost
		e.doom = wire.EvictState
		p.doom(s.entry)
	case e.dropped || e.stale != wire.EvictNone || p.stats.BytesCached > p.cap():
		e.doom = e.stale
		p.doom(s.entry)
	default:
		p.keep(s.entry)
	}
}

// idle reports whether all sub-allocations of the slab are lost or gone.
func (s *slab) idle() bool { return int(s.parts) == len(s.lost) }

// cools reports whether only commands still use the slab.
func (s *slab) cools() bool { return int(s.parts) == int(s.cooling)+len(s.lost) }

// giveBack returns a sub-allocation's range to the carver.
func (p *Pool) giveBack(i int32) {
	e, s := &p.entries[i], p.slabOf(i)
	s.home.carver.Free(carve.Part{Slab: e.slab, Offset: e.offset, Size: e.size})
	s.parts--
	s.used -= e.size
	if s.grown {
		p.stats.BytesCached += e.size
	}
	p.recycle(i)
}

// freeSubAlloc takes back a sub-allocation that nothing uses any more.
func (p *Pool) freeSubAlloc(i int32, out []Eviction) []Eviction {
	s := p.slabOf(i)
	p.stats.Parts--
	p.giveBack(i)
	if s.idle() {
		switch {
		case p.entries[s.entry].dropped:
			return p.dismiss(s.entry, wire.EvictContext, out)
		case p.entries[s.entry].stale != wire.EvictNone:
			return p.dismiss(s.entry, p.entries[s.entry].stale, out)
		case p.limits.rejectNew && p.stats.BytesCached > p.cap():
			return p.dismiss(s.entry, wire.EvictLimit, out)
		}
		p.keep(s.entry)
	}
	out = p.evictOld(out)
	p.stats.peaks()
	return out
}

// loseSubAlloc notes that a sub-allocation's range may be used for as long as its slab lives: it counts as cooling
// until then.
func (p *Pool) loseSubAlloc(i int32) {
	e, s := &p.entries[i], p.slabOf(i)
	e.state = doomed // no call finds it any more
	p.stats.Parts--
	p.stats.BytesCooling += e.size
	s.lost = append(s.lost, i)
	p.stats.peaks()
	if s.idle() {
		p.settle(s)
	}
}

// removeSlab takes a slab that has no sub-allocations but lost ones from its carver.
func (p *Pool) removeSlab(i int32, reason wire.Evict) {
	e, s := &p.entries[i], p.slabOf(i)
	c := s.home
	for _, part := range s.lost {
		p.stats.BytesCooling -= p.entries[part].size
		p.giveBack(part)
	}
	p.stats.Slabs--
	p.slabs.bytes -= e.size
	p.stats.BytesCached -= e.size
	switch reason {
	case wire.EvictLimit, wire.EvictAge:
		c.gone, c.blame = c.gone+1, wire.MissLimit
	case wire.EvictDrain, wire.EvictTrim:
		c.gone, c.blame = c.gone+1, wire.MissDrained
	}
	p.slabs.remove(e.slab)
	p.forgetCarver(e.class)
}

// forgetCarver ends a class that was dropped, with its last slab.
func (p *Pool) forgetCarver(class Class) {
	if c := p.slabs.classes[class]; c != nil && c.slabs == 0 && p.gone(class) {
		delete(p.slabs.classes, class)
		p.slabs.last = nil
	}
}

// forgetSlab ends a slab that was never created.
func (p *Pool) forgetSlab(number int32) {
	i := p.slabs.list[number].entry
	class := p.entries[i].class
	p.slabs.remove(number)
	p.recycle(i)
	p.forgetCarver(class)
}

// remove ends a slab, and with its last one what another policy carved.
func (s *slabs) remove(number int32) {
	home := s.list[number].home
	home.carver.Remove(number)
	if home.slabs--; home.slabs == 0 {
		s.former = slices.DeleteFunc(s.former, func(c *carved) bool { return c == home })
	}
	s.list[number] = slab{}
	s.spare = append(s.spare, number)
}

// drainSlabs gives up slabs whose sub-allocations all cool, or are lost. Their sub-allocations' driver objects were
// released by the program; the driver keeps the memory until their commands end.
func (p *Pool) drainSlabs(out []Eviction) []Eviction {
	if !slices.ContainsFunc(p.slabs.list, func(s slab) bool { return s.cooling > 0 && s.cools() }) {
		return out // of many cooling sub-allocations none needs a look
	}
	for i := p.coolingByAge.oldest; i != 0; {
		next := p.chain[i].newer
		if s := p.slabOf(i); p.isSubAlloc(i) && s.cools() {
			out = p.coolAtOnce(i, wire.EvictDrain, out)
		}
		i = next
	}
	return out
}

// coolAtOnce ends a cooling sub-allocation whose range will not be reused, and its slab with the last one.
func (p *Pool) coolAtOnce(i int32, reason wire.Evict, out []Eviction) []Eviction {
	s := p.slabOf(i)
	p.leaveCooling(i)
	p.stats.Parts--
	p.giveBack(i)
	if !s.idle() {
		return out
	}
	return p.dismiss(s.entry, reason, out)
}

// dropSlabs evicts the cooling sub-allocations of a class, and the slabs that then have none in use.
func (p *Pool) dropSlabs(class Class, out []Eviction) []Eviction {
	for i := p.coolingByAge.oldest; i != 0; {
		next := p.chain[i].newer
		if p.isSubAlloc(i) && p.entries[i].class == class {
			out = p.coolAtOnce(i, wire.EvictContext, out)
		}
		i = next
	}
	for number := range p.slabs.list {
		i := p.slabs.list[number].entry
		if e := &p.entries[i]; e.isSlab && e.class == class && e.state == cached {
			out = p.evict(i, wire.EvictContext, out)
		}
	}
	p.forgetCarver(class)
	out = p.evictOld(out) // ranges that cooled are free now, in slabs that stay
	p.stats.peaks()
	return out
}
