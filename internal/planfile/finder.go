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
	wanted    map[string]bool // keys of sites
	length    int             // requests of an iteration
	processes map[uint32]*found
}

// found are the call sites of a plan that a process has shown.
type found struct {
	tags  map[string]allocator.Tag
	quiet int  // creates since the last of them
	fresh bool // they are more than the latest plan has
}

// NewFinder returns one that has seen nothing.
func NewFinder(p *Plan) *Finder {
	f := &Finder{plan: p, wanted: map[string]bool{}, processes: map[uint32]*found{}}
	for i := range p.Sites {
		f.wanted[p.Sites[i].key()] = true
		f.length += len(p.Sites[i].Places)
	}
	return f
}

// Add takes a record of a run. It returns a plan for the process of the record when it is time for one: all call sites are
// known, or no more of them came up in an iteration. Otherwise it returns nil.
func (f *Finder) Add(r *wire.Record) *learn.Layout {
	switch r.Kind {
	case wire.KindSite, wire.KindTag:
		f.site(r)
	case wire.KindCreate:
		if p := f.processes[r.Process]; p != nil {
			p.quiet++
		}
	case wire.KindExit:
		delete(f.processes, r.Process)
	default:
		return nil
	}
	p := f.processes[r.Process]
	if p == nil || !p.fresh || len(p.tags) < len(f.wanted) && p.quiet < f.length {
		return nil
	}
	p.fresh = false
	return f.plan.Learned(p.tags)
}

// site notes a call site of the plan. Of two that look alike the first counts.
func (f *Finder) site(r *wire.Record) {
	site, tag, ok := SiteOf(r)
	if !ok || !f.wanted[site.key()] {
		return
	}
	p := f.processes[r.Process]
	if p == nil {
		p = &found{tags: map[string]allocator.Tag{}}
		f.processes[r.Process] = p
	}
	if _, known := p.tags[site.key()]; !known {
		p.tags[site.key()], p.quiet, p.fresh = tag, 0, true
	}
}

// Plan returns the plan for the call sites that a process has shown so far, nil when it has shown none.
func (f *Finder) Plan(process uint32) *learn.Layout {
	p := f.processes[process]
	if p == nil {
		return nil
	}
	return f.plan.Learned(p.tags)
}

// definer is a source that can return the records that define names without all others.
type definer interface {
	Definitions(func(*wire.Record) error) error
	Rewind() error
}

// define calls add with the records of a source that define names, and leaves it rewound.
func define(src definer, add func(*wire.Record)) error {
	err := src.Definitions(func(r *wire.Record) error {
		add(r)
		return nil
	})
	return errors.Join(err, src.Rewind())
}

// Read notes the call sites of a recording, and leaves it rewound.
func (f *Finder) Read(src definer) error { return define(src, f.site) }
