package allocator

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// abortPart gives a part back that was not made, and a slab that was not created, with its last part.
func (p *pool) abortPart(i int32) {
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

// orphan takes the parts that other plans have in a slab that will never be created out of it, so that no further plan
// gets one. Their numbers stay until their plans are aborted, too.
func (p *pool) orphan(number int32) {
	s := &p.slabs.list[number]
	for i := 0; s.parts > 0 && i < len(p.entries); i++ { // rarely anybody has one
		if e := &p.entries[i]; e.slab == number && !e.isSlab {
			s.home.carver.Free(carve.Part{Slab: number, Offset: e.offset, Size: e.size})
			e.slab = 0
			s.parts--
			s.used -= e.size
		}
	}
}

// settle does what the end of its last part means for a slab, where no eviction can be reported.
func (p *pool) settle(s *slab) {
	e := &p.entries[s.entry]
	switch {
	case s.used == e.size: // all of it is lost
		e.doom = wire.EvictState
		p.doom(s.entry)
	case p.dropped[e.class] || e.stale != wire.EvictNone || p.stats.BytesCached > p.cap():
		e.doom = e.stale
		p.doom(s.entry)
	default:
		p.keep(s.entry)
	}
}

// idle reports whether nobody has a part of the slab, nor ever will have those that are lost.
func (s *slab) idle() bool { return int(s.parts) == len(s.lost) }

// cools reports whether nobody has a part of the slab but commands.
func (s *slab) cools() bool { return int(s.parts) == int(s.cooling)+len(s.lost) }

// giveBack returns a part's range to the carver.
func (p *pool) giveBack(i int32) {
	e, s := &p.entries[i], p.slabOf(i)
	s.home.carver.Free(carve.Part{Slab: e.slab, Offset: e.offset, Size: e.size})
	s.parts--
	s.used -= e.size
	if s.grown {
		p.stats.BytesCached += e.size
	}
	p.recycle(i)
}

// freePart takes back a part that nothing uses any more.
func (p *pool) freePart(i int32, out []Eviction) []Eviction {
	s := p.slabOf(i)
	p.stats.Parts--
	p.giveBack(i)
	if s.idle() {
		switch {
		case p.dropped[p.entries[s.entry].class]:
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

// losePart notes that a part's range may be used for as long as its slab lives: it counts as cooling until then.
func (p *pool) losePart(i int32) {
	e, s := &p.entries[i], p.slabOf(i)
	e.state = doomed // no call finds it any more
	p.stats.Parts--
	p.stats.BytesCooling += e.size
	for _, row := range p.of(e) {
		row.Cooling += e.size
	}
	s.lost = append(s.lost, i)
	p.stats.peaks()
	if s.idle() {
		p.settle(s)
	}
}

// removeSlab takes a slab that has no parts but lost ones from its carver.
func (p *pool) removeSlab(i int32, reason wire.Evict) {
	e, s := &p.entries[i], p.slabOf(i)
	c := s.home
	for _, part := range s.lost {
		lost := &p.entries[part]
		p.stats.BytesCooling -= lost.size
		for _, row := range p.of(lost) {
			row.Cooling -= lost.size
		}
		p.giveBack(part)
	}
	p.stats.Slabs--
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
func (p *pool) forgetCarver(class Class) {
	if c := p.slabs.classes[class]; c != nil && c.slabs == 0 && p.dropped[class] {
		delete(p.slabs.classes, class)
	}
}

// forgetSlab ends a slab that was never created.
func (p *pool) forgetSlab(number int32) {
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

// drainSlabs gives up slabs whose parts all cool, or are lost. Their parts' driver objects were released by the
// program; the driver keeps the memory until their commands end.
func (p *pool) drainSlabs(out []Eviction) []Eviction {
	if !slices.ContainsFunc(p.slabs.list, func(s slab) bool { return s.cooling > 0 && s.cools() }) {
		return out // of many cooling parts none needs a look
	}
	for i := p.coolingByAge.oldest; i != 0; {
		next := p.chain[i].newer
		if s := p.slabOf(i); p.isPart(i) && s.cools() {
			out = p.coolAtOnce(i, wire.EvictDrain, out)
		}
		i = next
	}
	return out
}

// coolAtOnce ends a cooling part whose range nobody will be given, and its slab with the last one.
func (p *pool) coolAtOnce(i int32, reason wire.Evict, out []Eviction) []Eviction {
	s := p.slabOf(i)
	p.leaveCooling(i)
	p.stats.Parts--
	p.giveBack(i)
	if !s.idle() {
		return out
	}
	return p.dismiss(s.entry, reason, out)
}

// dropSlabs gives up the cooling parts of a class, and the slabs that nobody has a part of.
func (p *pool) dropSlabs(class Class, out []Eviction) []Eviction {
	for i := p.coolingByAge.oldest; i != 0; {
		next := p.chain[i].newer
		if p.isPart(i) && p.entries[i].class == class {
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
