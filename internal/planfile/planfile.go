// Package planfile keeps plans of a program's memory in files that people can read: it makes them of recordings, writes and
// reads them, and finds their call sites in another run.
package planfile

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
)

// Plan is what a file says. Sizes are bytes.
type Plan struct {
	Version    int       `toml:"version"`
	Program    string    `toml:"program"`    // base name of the file that most call sites are in
	Build      string    `toml:"build_id"`   // of that, in hexadecimal; empty: unknown
	Tags       string    `toml:"tags"`       // what call sites are made of
	Recordings int       `toml:"recordings"` // that it is made from
	Arenas     []Arena   `toml:"arena"`
	Sites      []Placed  `toml:"site"`
	Outside    []Outside `toml:"outside"`
}

// Arena is a slab that buffers have places in.
type Arena struct {
	Size  uint64 `toml:"size"`
	Align uint64 `toml:"alignment"`
	Bound uint64 `toml:"lower_bound"` // no arena is smaller
}

// Placed is a call site with the places of its requests, in their order.
type Placed struct {
	Site
	Places []Place `toml:"places"`
}

// Place is where a buffer goes.
type Place struct {
	Phase   int    `toml:"phase"`   // of the program, from 1
	Request int    `toml:"request"` // in an iteration of the phase, from 1
	Arena   int    `toml:"arena"`   // from 1
	Size    uint64 `toml:"size"`
	Offset  uint64 `toml:"offset"`
	Life    uint64 `toml:"lifetime"` // requests from its own on until its memory is free again
}

// Outside is a call site, or a request of one, that has no place.
type Outside struct {
	Name    string `toml:"name"`
	Request int    `toml:"request"` // 0: none in particular
	Phase   int    `toml:"phase"`
	Size    uint64 `toml:"size"`
	Why     string `toml:"why"`
}

// layout returns the plan with the numbers of sites as tags.
func (p *Plan) layout() allocator.Layout {
	tags := map[string]allocator.Tag{}
	for i := range p.Sites {
		tags[p.Sites[i].key()] = allocator.Tag(i + 1)
	}
	if plan := p.Learned(tags); plan != nil {
		return plan.Layout
	}
	return allocator.Layout{}
}

// Learned returns the plan for a run in which call sites have other tags; a site without a tag has no places. It is nil
// when none has any.
func (p *Plan) Learned(tags map[string]allocator.Tag) *learn.Layout {
	plan := &learn.Layout{}
	for _, a := range p.Arenas {
		plan.Arenas = append(plan.Arenas, allocator.Arena{Size: a.Size, Align: a.Align, Bound: a.Bound})
		plan.Size, plan.Bound = plan.Size+a.Size, plan.Bound+a.Bound
	}
	for _, at := range p.inOrder() {
		plan.Period = max(plan.Period, at.Request)
		if tag, known := tags[p.Sites[at.site].key()]; known {
			plan.Places = append(plan.Places, allocator.Place{Arena: at.Arena - 1, Tag: tag, Size: at.Size, Offset: at.Offset})
		}
	}
	for _, o := range p.Outside {
		if o.Request > 0 && o.Phase == 1 {
			plan.Outside++
			plan.Period = max(plan.Period, o.Request)
		}
	}
	if len(plan.Places) == 0 {
		return nil
	}
	return plan
}

// CheckBuild refuses a program of the plan's name that is another build: its call sites are elsewhere. An id that is
// unknown is none of another build.
func (p *Plan) CheckBuild(program, build string) error {
	if program != p.Program || build == p.Build || build == "" || p.Build == "" {
		return nil
	}
	return fmt.Errorf("this is a plan for %s with build id %.12s, and the program's is %.12s: record it again, and use 'gpumemtop advise --write'",
		p.Program, p.Build, build)
}
