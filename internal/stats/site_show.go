package stats

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
)

// show returns the call sites of all processes as they are now.
func (cs *callSites) show() []Tag {
	tags := make([]Tag, 0, len(cs.list))
	for _, s := range cs.list {
		if !s.unseen {
			tags = append(tags, cs.row(s, &s.siteFigures, s.processes))
		}
	}
	return tags
}

// showProcess returns the call sites of a process as they are now.
func (cs *callSites) showProcess(p *process) []Tag {
	p.sites = slices.DeleteFunc(p.sites, func(s *processSite) bool { return s.into != nil })
	tags := make([]Tag, 0, len(p.sites))
	for i, s := range p.sites {
		if !s.unseen {
			tags = append(tags, cs.row(s.site, s.siteFigures, p.sites[i:i+1]))
		}
	}
	return tags
}

// row returns a row with figures of a site: those of all its processes, or of one. Snapshots share the lists in it as long as
// these do not change.
func (cs *callSites) row(s *site, f *siteFigures, of []*processSite) Tag {
	cs.refresh(f, of)
	return Tag{
		ID: s.id, Name: s.title(), Stack: s.stack, Module: s.module, Wrapper: s.wrapper,
		Live: heap.Amount(f.live), InUse: heap.Amount(f.inUse), Requested: heap.Amount(f.requested),
		Cached: heap.Amount(f.cached), Cooling: heap.Amount(f.cooling), Idle: heap.Amount(f.idle), CachedCount: heap.Amount(f.blocks),
		Hits: f.hits, Misses: f.misses.all, MissReasons: f.misses.list(),
		Creates: f.creates, Exposed: f.exposed, Window: f.pace.last(cs.clock.slot), PeakInUse: f.peak, Held: f.trend.held(),
		Trend: f.trend.shown(), Free: f.free, InFlight: f.early,
	}
}

// refresh brings the trend and the free list up to date.
func (cs *callSites) refresh(f *siteFigures, of []*processSite) {
	f.trend.advance(cs.clock.second, heap.Amount(f.inUse))
	if f.free == nil {
		f.free = cs.freeClasses(of)
	}
}

// saveFigures copies what a process has of each call site, to be shown when its memory has left the heap.
func (cs *callSites) saveFigures(p *process) []siteFigures {
	kept := make([]siteFigures, len(p.sites))
	for i, s := range p.sites {
		cs.separate(s.site) // the site loses what the process holds
		cs.refresh(s.siteFigures, p.sites[i:i+1])
		kept[i] = *s.siteFigures
		kept[i].trend.separate()
	}
	return kept
}

// restoreFigures gives the call sites of a process the gauges that keep copied.
func (cs *callSites) restoreFigures(p *process, kept []siteFigures) {
	for i, s := range p.sites {
		k := &kept[i]
		s.live, s.inUse, s.requested = k.live, k.inUse, k.requested
		s.cached, s.cooling, s.blocks, s.idle = k.cached, k.cooling, k.blocks, k.idle
		s.trend, s.free = k.trend, k.free
		s.classes.Shrink()
	}
}
