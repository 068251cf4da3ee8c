package allocator

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

const (
	placesAhead   = 8  // places of a site that may serve its next request
	orderAhead    = 64 // places in which its size is looked for at all
	unneeded      = 4  // periods that a block of the base policy stays cached without serving
	leastPatience = 64 // requests for which a driver that refused an arena is not asked again

	ofPlans = Class(1) << 31 // the class of a plan's blocks, with that of their requests: the base policy has others
)

// place serves a request as the plan says. Otherwise p.route says why not.
func (p *Pool) place(decision *Decision, req *Request, out []Eviction) ([]Eviction, bool) {
	if next := p.planner.next; next != nil && next.begins(req) {
		p.endPlan()
		out = p.evictStale(out)
		p.planner = newPlanner(next)
	}
	present := p.planner.present
	if present == nil {
		return p.depart(NoLayout, out)
	}
	here, why := p.siteOf(present, req)
	at := -1
	if here != nil {
		at, why = p.spotFor(present, here, req)
	}
	if at < 0 {
		present.departed = true
		return p.depart(why, out)
	}
	if present.arrive(here, at) {
		out = p.giveUp(present.begun(p.now), out)
	}
	if here.arena.whole {
		return p.takeBlock(decision, here.arena, &here.arena.blocks[here.places[at].at], req, out)
	}
	return p.takeSpot(decision, here.arena, here.places[at], req, out)
}

func (p *Pool) depart(why Departure, out []Eviction) ([]Eviction, bool) {
	p.route = why.route()
	p.planner.requests++
	return out, false
}

// begins reports whether a request is the first of a plan.
func (s *plan) begins(req *Request) bool {
	if req.Size != s.size || !s.first.arena.takes(req) {
		return false
	}
	for _, here := range s.sites[req.Tag] {
		if here == s.first {
			return true
		}
	}
	return false
}

// takes reports whether parts of an arena are aligned as a request needs it, or it has blocks and the request needs one.
func (a *arena) takes(req *Request) bool {
	if a.whole {
		return req.Align == 0 && req.Class != 0
	}
	return req.Align != 0 && a.align%req.Align == 0 && req.Class != 0
}

// siteOf returns the places of a request's site in the arena of its class. A class without an arena gets the first that
// has places for the site and no class.
func (p *Pool) siteOf(s *plan, req *Request) (*site, Departure) {
	list := s.sites[req.Tag]
	if len(list) == 0 {
		return nil, OtherSite
	}
	for _, here := range list {
		if here.arena.class == req.Class && here.arena.takes(req) && !p.gone(req.Class) {
			return here, 0
		}
	}
	if p.gone(req.Class) || s.has(req) {
		return nil, OtherClass
	}
	for _, here := range list {
		a := here.arena
		if (a.class == 0 || p.gone(a.class)) && a.slabs == 0 && a.takes(req) {
			a.class, a.alone = req.Class, false
			return here, 0
		}
	}
	return nil, OtherClass
}

// has reports whether the class of a request has an arena of the kind that it needs.
func (s *plan) has(req *Request) bool {
	for i := range s.arenas {
		if a := &s.arenas[i]; a.class == req.Class && a.whole == (req.Align == 0) {
			return true
		}
	}
	return false
}

// spotFor finds the place of a request: the next of its site, or one of those behind, if requests were left out. The
// departure counts from the first place of the right size.
func (p *Pool) spotFor(present *plan, s *site, req *Request) (at int, why Departure) {
	a := s.arena
	if s.lap != present.lap {
		s.next, s.lap = 0, present.lap
	}
	size := a.placed.Round(req.Size)
	why, at = OtherSize, s.next
	if over(size, req.Most()) {
		return -1, OtherClass
	}
	for n := range min(len(s.places), orderAhead) {
		spot := &s.places[at]
		if spot.size == size && n >= placesAhead && why == OtherSize {
			s.next = s.after(at)
			return -1, OtherOrder
		}
		if spot.size == size && n < placesAhead {
			owner := p.owner(a, spot)
			if owner == 0 {
				present.departed = present.departed || n > 0
				return at, 0
			}
			if why == OtherSize {
				why = p.occupied(owner)
			}
		}
		at = s.after(at)
	}
	s.next = s.after(s.next)
	return -1, why
}

// owner returns who has a place, 0 when it is free.
func (p *Pool) owner(a *arena, at *spot) int32 {
	switch {
	case a.whole:
		if i := p.entryOf(a.blocks[at.at].is); i != 0 && p.entries[i].state != cached {
			return i
		}
		return 0
	case a.slabs == 0:
		return 0
	}
	return a.placed.Owner(at.at, at.size)
}

// after returns the place of a site that comes after another, round and round.
func (s *site) after(at int) int {
	if at++; at == len(s.places) {
		return 0
	}
	return at
}

// occupied says what a block is there for.
func (p *Pool) occupied(owner int32) Departure {
	if state := p.entries[owner].state; state == cooling || state == doomed {
		return RangeCooling
	}
	return RangeInUse
}

// arrive notes that a place is asked for, and reports whether it is the first of the period. With that all sites begin
// again, if the last period was not as planned: what threads do in their own time is not disturbed otherwise.
func (s *plan) arrive(here *site, at int) bool {
	begins := at == 0 && here == s.first
	if begins && s.departed {
		s.lap++
		here.lap, s.departed = s.lap, false
	}
	here.next = here.after(at)
	return begins
}

// begun notes that a period begins, and returns when the oldest one did that still counts.
func (s *plan) begun(now int64) (since int64) {
	at := &s.starts[s.periods%unneeded]
	since, *at = *at, now
	s.periods++
	return since
}

// giveUp gives up the base policy's blocks that have been free since before a time.
func (p *Pool) giveUp(since int64, out []Eviction) []Eviction {
	for i := p.cachedByAge.oldest; i != 0 && p.entries[i].since < since; {
		next := p.chain[i].newer
		if !p.entries[i].isSlab {
			out = p.evict(i, wire.EvictPolicy, out)
		}
		i = next
	}
	return out
}

// takeSpot hands a free range out.
func (p *Pool) takeSpot(decision *Decision, a *arena, at spot, req *Request, out []Eviction) ([]Eviction, bool) {
	size, reason := uint64(0), wire.MissNone
	if a.slabs == 0 {
		if !p.affords(a, req) {
			return p.depart(NoArena, out)
		}
		if !a.alone {
			out = p.clear(req.Class, out)
			a.alone = true
		}
		size, reason = a.size, p.slabReason(req, a.carved)
		number := p.newSlab(req, size, a.carved)
		a.placed.Add(number, size)
		a.slabs++
	}
	p.route = wire.RoutePlanned
	i := p.newEntry()
	p.subAlloc(decision, i, req, a.placed.Take(at.at, at.size, i))
	decision.Hit, decision.SlabSize, decision.Reason = size == 0, size, reason
	p.entries[i].reason = reason
	return out, true
}

// takeBlock hands a block out that is free, or is to be created.
func (p *Pool) takeBlock(decision *Decision, a *arena, b *planBlock, req *Request, out []Eviction) ([]Eviction, bool) {
	if b.size > req.Size && over(b.size, req.Most()) {
		return p.depart(OtherClass, out)
	}
	if i := p.entryOf(b.is); i != 0 {
		p.route = wire.RoutePlanned
		p.reuse(decision, i, req)
		return out, true
	}
	if waste := b.size - req.Size; req.Exact && waste != 0 || waste > p.slack(req, least(req.Heap, p.short)) {
		return p.depart(NoArena, out)
	}
	if !a.alone {
		out = p.clear(req.Class, out)
		a.alone = true
	}
	reason := p.reason(req)
	p.route = wire.RoutePlanned
	p.create(decision, req, b.size, reason)
	p.entries[uint32(decision.Block)].class |= ofPlans
	b.is = decision.Block
	return out, true
}

// affords reports whether an arena may be created.
func (p *Pool) affords(a *arena, req *Request) bool {
	if a.most != 0 { // refused
		if a.wait++; a.wait < a.patience {
			return false
		}
		a.wait, a.patience, a.most = 0, 2*a.patience, 0
	}
	return !over(a.size, req.Max) && a.size <= p.slack(req, req.Heap)
}

// clear gives up what the base policy has of a class that gets an arena: what is free at once, the rest when it comes
// back.
func (p *Pool) clear(class Class, out []Eviction) []Eviction {
	for i := range p.entries {
		if e := &p.entries[i]; e.state != unused && e.class == class && e.slab == 0 {
			p.mark(e, e.passes, wire.EvictPolicy)
		}
	}
	return p.evictStale(out)
}

// endPlan ends the present plan. Its arenas go with their last sub-allocations, and its blocks as they come back.
func (p *Pool) endPlan() {
	if p.planner == nil || p.planner.present == nil {
		return
	}
	for i := range p.entries {
		if e := &p.entries[i]; e.state != unused && e.class >= ofPlans {
			p.mark(e, e.passes, wire.EvictPolicy)
		}
	}
	for i := range p.planner.present.arenas {
		if a := &p.planner.present.arenas[i]; a.slabs > 0 {
			p.slabs.former = append(p.slabs.former, a.carved)
			for number := range p.slabs.list {
				if s := &p.slabs.list[number]; s.home == a.carved {
					p.mark(&p.entries[s.entry], false, wire.EvictPolicy)
				}
			}
		}
	}
	p.planner.present = nil
}
