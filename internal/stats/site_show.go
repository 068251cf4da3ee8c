package stats

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
)

// listTags returns the call sites of all processes as they are now.
func (cs *callSites) listTags() []Tag {
	tags := make([]Tag, 0, len(cs.list))
	for _, s := range cs.list {
		if !s.unseen {
			tags = append(tags, cs.rowOfSite(s, &s.siteFigures, s.processes))
		}
	}
	return tags
}

// listTagsOf returns the call sites of a process as they are now.
func (cs *callSites) listTagsOf(p *process) []Tag {
	p.sites = slices.DeleteFunc(p.sites, func(s *processSite) bool { return s.into != nil })
	tags := make([]Tag, 0, len(p.sites))
	for i, s := range p.sites {
		if !s.unseen {
			tags = append(tags, cs.rowOfSite(s.site, s.siteFigures, p.sites[i:i+1]))
		}
	}
	return tags
}

// rowOfSite returns a row with figures of a site: those of all its processes, or of one. Snapshots share the lists in it as long as
// these do not change.
func (cs *callSites) rowOfSite(s *site, f *siteFigures, of []*processSite) Tag {
	cs.refreshFigures(f, of)
	return Tag{
		ID: s.id, Name: s.siteTitle(), Stack: s.stack, Module: s.module, Wrapper: s.wrapper,
		Live: heap.NonNegative(f.live), InUse: heap.NonNegative(f.inUse), Requested: heap.NonNegative(f.requested),
		Cached: heap.NonNegative(f.cached), Cooling: heap.NonNegative(f.cooling), Idle: heap.NonNegative(f.idle),
		CachedCount: heap.NonNegative(f.blocks),
		Hits:        f.hits, Misses: f.misses.all, MissReasons: f.misses.countsByReason(),
		Creates: f.creates, Exposed: f.exposed, Window: f.pace.countInFullSlots(cs.clock.slot), PeakInUse: f.peak, Held: f.trend.recentMost(),
		Trend: f.trend.pointsSoFar(), Free: f.free, InFlight: f.early,
	}
}

// refreshFigures brings the trend and the free list up to date.
func (cs *callSites) refreshFigures(f *siteFigures, of []*processSite) {
	f.trend.advanceToSecond(cs.clock.second, heap.NonNegative(f.inUse))
	if f.free == nil {
		f.free = cs.freeClasses(of)
	}
}

// saveSiteFigures copies what a process has of each call site, to be shown when its memory has left the heap.
func (cs *callSites) saveSiteFigures(p *process) []siteFigures {
	kept := make([]siteFigures, len(p.sites))
	for i, s := range p.sites {
		cs.copySharedFigures(s.site) // the site loses what the process holds
		cs.refreshFigures(s.siteFigures, p.sites[i:i+1])
		kept[i] = *s.siteFigures
		kept[i].trend.detachCopy()
	}
	return kept
}

// restoreSiteFigures gives the call sites of a process the gauges that keep copied.
func (cs *callSites) restoreSiteFigures(p *process, kept []siteFigures) {
	for i, s := range p.sites {
		k := &kept[i]
		s.live, s.inUse, s.requested = k.live, k.inUse, k.requested
		s.cached, s.cooling, s.blocks, s.idle = k.cached, k.cooling, k.blocks, k.idle
		s.trend, s.free = k.trend, k.free
		s.classes.FreeIfEmpty()
	}
}
