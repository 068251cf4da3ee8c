package allocator

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

const (
	placesAhead   = 8  // how many of a site's next places may serve its next request
	orderAhead    = 64 // in how many of them the request's size is looked for
	unneeded      = 4  // periods for which a block of the base policy stays cached without serving a request
	leastPatience = 64 // requests until a driver that refused an arena is asked again

	// ofArena marks the classes of arena blocks: such a block has this bit and the class of its requests. The base policy's
	// blocks never have the bit.
	ofArena = Class(1) << 31
)

// serveFromLayout serves a request as the current layout says, and reports whether it did. If not, the decision's route
// says why.
func (p *Pool) serveFromLayout(decision *Decision, req *Request, out []Eviction) ([]Eviction, bool) {
	if next := p.layouts.next; next != nil && next.beginsPeriod(req) {
		p.endLayout()
		out = p.evictStale(out)
		p.layouts = newLayouts(next)
	}
	layout := p.layouts.current
	if layout == nil {
		return p.leaveToBasePolicy(decision, NoLayout, out)
	}
	s, why := layout.siteForRequest(&p.blockTable, req)
	index := -1
	if s != nil {
		index, why = layout.placeForRequest(&p.blockTable, s, req)
	}
	if index < 0 {
		layout.departed = true
		return p.leaveToBasePolicy(decision, why, out)
	}
	if layout.notePlaceRequested(s, index) {
		out = p.evictUnused(layout.beginPeriod(p.now), out)
	}
	if s.arena.whole {
		return p.serveWithArenaBlock(decision, s.arena, &s.arena.blocks[s.places[index].number], req, out)
	}
	return p.serveFromPlace(decision, s.arena, s.places[index], req, out)
}

// leaveToBasePolicy leaves a request to the base policy.
func (p *Pool) leaveToBasePolicy(decision *Decision, why Departure, out []Eviction) ([]Eviction, bool) {
	decision.Route = why.recordedRoute()
	p.layouts.requests++
	return out, false
}

// beginsPeriod reports whether a request is the first of a period.
func (l *activeLayout) beginsPeriod(req *Request) bool {
	if req.Size != l.size || !l.first.arena.canServe(req) {
		return false
	}
	for _, s := range l.sites[req.Tag] {
		if s == l.first {
			return true
		}
	}
	return false
}

// canServe reports whether an arena has the kind of memory that a request needs: ranges with its alignment, or blocks.
func (a *activeArena) canServe(req *Request) bool {
	if a.whole {
		return req.Align == 0 && req.Class != 0
	}
	return req.Align != 0 && a.align%req.Align == 0 && req.Class != 0
}

// siteForRequest returns a request's site in the arena of its class. A class without an arena gets the first arena that has
// places for the site and no class.
func (l *activeLayout) siteForRequest(t *blockTable, req *Request) (*site, Departure) {
	list := l.sites[req.Tag]
	if len(list) == 0 {
		return nil, OtherSite
	}
	for _, s := range list {
		if s.arena.class == req.Class && s.arena.canServe(req) && !t.isDropped(req.Class) {
			return s, 0
		}
	}
	if t.isDropped(req.Class) || l.hasArena(req) {
		return nil, OtherClass
	}
	for _, s := range list {
		a := s.arena
		if (a.class == 0 || t.isDropped(a.class)) && a.slabs == 0 && a.canServe(req) {
			a.class, a.cleared = req.Class, false
			return s, 0
		}
	}
	return nil, OtherClass
}

// hasArena reports whether the class of a request has an arena of the kind that the request needs.
func (l *activeLayout) hasArena(req *Request) bool {
	for i := range l.arenas {
		if a := &l.arenas[i]; a.class == req.Class && a.whole == (req.Align == 0) {
			return true
		}
	}
	return false
}

// placeForRequest returns the index of the place for a request: the site's next place, or a later one if the program left
// requests out. If there is no place, it returns -1 and the departure of the first place of the right size.
func (l *activeLayout) placeForRequest(t *blockTable, s *site, req *Request) (index int, why Departure) {
	a := s.arena
	if s.restarts != l.restarts {
		s.next, s.restarts = 0, l.restarts
	}
	size := a.placed.RoundUp(req.Size)
	why, index = OtherSize, s.next
	if exceedsBound(size, req.MaxBlockBytes()) {
		return -1, OtherClass
	}
	for n := range min(len(s.places), orderAhead) {
		place := &s.places[index]
		if place.size == size && n >= placesAhead && why == OtherSize {
			s.next = s.indexAfter(index)
			return -1, OtherOrder
		}
		if place.size == size && n < placesAhead {
			owner := a.entryOnPlace(t, place)
			if owner == 0 {
				l.departed = l.departed || n > 0
				return index, 0
			}
			if why == OtherSize {
				why = t.whyPlaceTaken(owner)
			}
		}
		index = s.indexAfter(index)
	}
	s.next = s.indexAfter(s.next)
	return -1, why
}

// entryOnPlace returns the entry that takes up a place, 0 when the place is free.
func (a *activeArena) entryOnPlace(t *blockTable, place *sitePlace) int32 {
	switch {
	case a.whole:
		if i := t.entryOf(a.blocks[place.number].block); i != 0 && t.entryAt(i).state != cached {
			return i
		}
		return 0
	case a.slabs == 0:
		return 0
	}
	return a.placed.OwnerOf(place.number, place.size)
}

// indexAfter returns the index of the place after a place of a site; after the last place comes the first.
func (s *site) indexAfter(index int) int {
	if index++; index == len(s.places) {
		return 0
	}
	return index
}

// whyPlaceTaken returns the departure for a place that an entry takes up.
func (t *blockTable) whyPlaceTaken(owner int32) Departure {
	if state := t.entryAt(owner).state; state == cooling || state == doomed {
		return RangeCooling
	}
	return RangeInUse
}

// notePlaceRequested notes that a place is requested, and reports whether that begins a period. If the last period departed from
// the layout, all sites then begin again. Otherwise each site continues, because threads need not begin a period
// together.
func (l *activeLayout) notePlaceRequested(s *site, index int) bool {
	begins := index == 0 && s == l.first
	if begins && l.departed {
		l.restarts++
		s.restarts, l.departed = l.restarts, false
	}
	s.next = s.indexAfter(index)
	return begins
}

// beginPeriod notes that a period begins, and returns when the period began that is unneeded periods older.
func (l *activeLayout) beginPeriod(now int64) (since int64) {
	start := &l.starts[l.periods%unneeded]
	since, *start = *start, now
	l.periods++
	return since
}

// serveFromPlace serves a request with a free range of an arena. If the arena's slab does not exist, the decision creates
// it.
func (p *Pool) serveFromPlace(decision *Decision, a *activeArena, place sitePlace, req *Request, out []Eviction) ([]Eviction, bool) {
	size, reason := uint64(0), wire.MissNone
	if a.slabs == 0 {
		if !p.mayCreateArenaSlab(a, req) {
			return p.leaveToBasePolicy(decision, NoArena, out)
		}
		if !a.cleared {
			out = p.evictClassForArena(req.Class, out)
			a.cleared = true
		}
		size, reason = a.size, p.whyNoSlabHasRoom(req, a.carved)
		number := p.newSlab(req, size, a.carved)
		a.placed.AddSlab(number, size)
		a.slabs++
	}
	decision.Route = wire.RoutePlanned
	i := p.newEntry()
	p.fillSubAlloc(decision, i, req, a.placed.TakeRange(place.number, place.size, i))
	decision.Hit, decision.SlabSize, decision.Reason = size == 0, size, reason
	p.entryAt(i).reason = reason
	return out, true
}

// serveWithArenaBlock serves a request with an arena's block, which is cached or must be created.
func (p *Pool) serveWithArenaBlock(decision *Decision, a *activeArena, b *arenaBlock, req *Request, out []Eviction) ([]Eviction, bool) {
	if b.size > req.Size && exceedsBound(b.size, req.MaxBlockBytes()) {
		return p.leaveToBasePolicy(decision, OtherClass, out)
	}
	if i := p.entryOf(b.block); i != 0 {
		decision.Route = wire.RoutePlanned
		p.reuseBlock(decision, i, req)
		return out, true
	}
	if waste := b.size - req.Size; req.Exact && waste != 0 || waste > p.bytesForWaste(req, smallerOfBounds(req.Heap, p.short)) {
		return p.leaveToBasePolicy(decision, NoArena, out)
	}
	if !a.cleared {
		out = p.evictClassForArena(req.Class, out)
		a.cleared = true
	}
	reason := p.whyMissed(req)
	decision.Route = wire.RoutePlanned
	p.decideOnNewBlock(decision, req, b.size, reason)
	p.entryAt(p.entryOf(decision.Block)).class |= ofArena
	b.block = decision.Block
	return out, true
}

// mayCreateArenaSlab reports whether the slab of an arena may be created now.
func (p *Pool) mayCreateArenaSlab(a *activeArena, req *Request) bool {
	if a.most != 0 { // the driver refused it
		if a.wait++; a.wait < a.patience {
			return false
		}
		a.wait, a.patience, a.most = 0, 2*a.patience, 0
	}
	return !exceedsBound(a.size, req.Max) && a.size <= p.bytesForWaste(req, req.Heap)
}

// endLayout ends the current layout. Its slabs go with their last sub-allocations, its blocks when they come back.
func (p *Pool) endLayout() {
	arenas := p.layouts.currentArenas()
	if arenas == nil {
		return
	}
	for i := range p.made {
		if e := p.entryAt(i); e.state != unused && e.class >= ofArena {
			p.setLeavesOnReturn(e, e.passes, wire.EvictPolicy)
		}
	}
	for i := range arenas {
		if a := &arenas[i]; a.slabs > 0 {
			p.endCarving(a.carved)
		}
	}
	p.layouts.current = nil
}
