package planfile

import (
	"errors"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Finder finds the call sites of a plan in the processes of another run. One goroutine uses it.
type Finder struct {
	plan      *Plan
	wanted    map[string]bool // keys of the plan's sites
	requests  int             // of a period
	processes map[uint32]*processSites
}

// processSites are the plan's call sites that a process has shown.
type processSites struct {
	tags            map[string]allocator.Tag
	createsSinceNew int  // creates since the newest of them
	hasNew          bool // the latest layout lacks some of them
}

// NewFinder returns a finder that has read nothing.
func NewFinder(p *Plan) *Finder {
	f := &Finder{plan: p, wanted: map[string]bool{}, processes: map[uint32]*processSites{}}
	for i := range p.Sites {
		f.wanted[p.Sites[i].keyOfSite()] = true
		f.requests += len(p.Sites[i].Places)
	}
	return f
}

// TakeRecord takes a record of a run. It returns a layout for the record's process when it is time for one: all call sites are
// known, or no new one came up for the length of a period. Otherwise it returns nil.
func (f *Finder) TakeRecord(r *wire.Record) *learn.Layout {
	switch r.Kind {
	case wire.KindSite, wire.KindTag:
		f.notePlannedSite(r)
	case wire.KindCreate:
		if p := f.processes[r.Process]; p != nil {
			p.createsSinceNew++
		}
	case wire.KindExit:
		delete(f.processes, r.Process)
	default:
		return nil
	}
	p := f.processes[r.Process]
	if p == nil || !p.hasNew || len(p.tags) < len(f.wanted) && p.createsSinceNew < f.requests {
		return nil
	}
	p.hasNew = false
	return f.plan.LayoutForTags(p.tags)
}

// notePlannedSite notes a call site of the plan. Of two sites with the same frames the first counts.
func (f *Finder) notePlannedSite(r *wire.Record) {
	site, tag, ok := SiteOfRecord(r)
	if !ok || !f.wanted[site.keyOfSite()] {
		return
	}
	p := f.processes[r.Process]
	if p == nil {
		p = &processSites{tags: map[string]allocator.Tag{}}
		f.processes[r.Process] = p
	}
	if _, known := p.tags[site.keyOfSite()]; !known {
		p.tags[site.keyOfSite()], p.createsSinceNew, p.hasNew = tag, 0, true
	}
}

// LayoutForProcess returns the layout for the call sites that a process has shown so far, nil if it has shown none.
func (f *Finder) LayoutForProcess(process uint32) *learn.Layout {
	p := f.processes[process]
	if p == nil {
		return nil
	}
	return f.plan.LayoutForTags(p.tags)
}

// definer is a source that can return the records that define names without reading the others.
type definer interface {
	EachDefinition(func(*wire.Record) error) error
	Rewind() error
}

// eachDefinition calls add for each record of a source that defines names, and rewinds the source.
func eachDefinition(src definer, add func(*wire.Record)) error {
	err := src.EachDefinition(func(r *wire.Record) error {
		add(r)
		return nil
	})
	return errors.Join(err, src.Rewind())
}

// ReadSites notes the call sites of a recording, and rewinds it.
func (f *Finder) ReadSites(src definer) error { return eachDefinition(src, f.notePlannedSite) }
