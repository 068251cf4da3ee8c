// Package planfile keeps layouts of a program's memory as plans: files that people can read. It makes plans from
// recordings, writes and reads them, and finds their call sites in another run.
package planfile

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
)

// Plan is the content of a plan file: a layout with the names of its call sites. Sizes are bytes.
type Plan struct {
	Version    int       `toml:"version"`
	Program    string    `toml:"program"`    // base name of the file that contains most call sites
	Build      string    `toml:"build_id"`   // of that file, in hexadecimal; empty: unknown
	Tags       string    `toml:"tags"`       // how call sites are identified
	Recordings int       `toml:"recordings"` // number of recordings that the plan is made from
	Arenas     []Arena   `toml:"arena"`
	Sites      []Placed  `toml:"site"`
	Outside    []Outside `toml:"outside"`
}

// Arena is a slab that has places for buffers.
type Arena struct {
	Size  uint64 `toml:"size"`
	Align uint64 `toml:"alignment"`
	Bound uint64 `toml:"lower_bound"` // no arena can be smaller
}

// Placed is a call site with the places of its requests, in order.
type Placed struct {
	Site
	Places []Place `toml:"places"`
}

// Place is offset and size of a buffer in the layout.
type Place struct {
	Phase   int    `toml:"phase"`   // of the program, from 1
	Request int    `toml:"request"` // in a period of the phase, from 1
	Arena   int    `toml:"arena"`   // from 1
	Size    uint64 `toml:"size"`
	Offset  uint64 `toml:"offset"`
	Life    uint64 `toml:"lifetime"` // requests from its own on until its memory is free again
}

// Outside is a call site, or one request of a call site, that has no place.
type Outside struct {
	Name    string `toml:"name"`
	Request int    `toml:"request"` // 0: the whole call site
	Phase   int    `toml:"phase"`
	Size    uint64 `toml:"size"`
	Why     string `toml:"why"`
}

// layoutBySiteNumber returns the layout with the numbers of sites as tags.
func (p *Plan) layoutBySiteNumber() allocator.Layout {
	tags := map[string]allocator.Tag{}
	for i := range p.Sites {
		tags[p.Sites[i].keyOfSite()] = allocator.Tag(i + 1)
	}
	if layout := p.LayoutForTags(tags); layout != nil {
		return layout.Layout
	}
	return allocator.Layout{}
}

// LayoutForTags returns the layout for a run in which call sites have other tags. A site without a tag has no places. The
// layout is nil if no site has places.
func (p *Plan) LayoutForTags(tags map[string]allocator.Tag) *learn.Layout {
	layout := &learn.Layout{}
	for _, a := range p.Arenas {
		layout.Arenas = append(layout.Arenas, allocator.Arena{Size: a.Size, Align: a.Align, Bound: a.Bound})
		layout.Size, layout.Bound = layout.Size+a.Size, layout.Bound+a.Bound
	}
	for _, place := range p.placesByRequest() {
		layout.Period = max(layout.Period, place.Request)
		if tag, known := tags[p.Sites[place.site].keyOfSite()]; known {
			layout.Places = append(layout.Places, allocator.Place{Arena: place.Arena - 1, Tag: tag, Size: place.Size, Offset: place.Offset})
		}
	}
	for _, o := range p.Outside {
		if o.Request > 0 && o.Phase == 1 {
			layout.Outside++
			layout.Period = max(layout.Period, o.Request)
		}
	}
	if len(layout.Places) == 0 {
		return nil
	}
	return layout
}

// CheckBuild refuses another build of the plan's program, because its call sites are at other addresses. An unknown
// build id is accepted.
func (p *Plan) CheckBuild(program, build string) error {
	if program != p.Program || build == p.Build || build == "" || p.Build == "" {
		return nil
	}
	return fmt.Errorf("this is a plan for %s with build id %.12s, and the program's is %.12s: record it again, and use 'gpumemtop advise --write'",
		p.Program, p.Build, build)
}
