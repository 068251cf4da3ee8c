package planfile

import (
	"cmp"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Collection are the runs that recordings show, by program. The zero Collection is empty.
type Collection struct{ programs map[string]*program }

type program struct {
	build, tags string
	runs        []Run
	size        uint64 // bytes, of all plans
}

// Source is a recording to learn from; *recording.Reader is one.
type Source interface {
	recording.Source
	definer
}

// Add learns a plan of each process of a recording: the last that a replay makes. tags says what its call sites are made
// of. An error is that of the source.
func (c *Collection) Add(src Source, tags string) error {
	sites := map[uint32]map[allocator.Tag]Site{}
	names := callsite.NewNames()
	err := define(src, func(r *wire.Record) {
		names.Add(r)
		if site, tag, ok := SiteOf(r); ok {
			if sites[r.Process] == nil {
				sites[r.Process] = map[allocator.Tag]Site{}
			}
			sites[r.Process][tag] = site
		}
	})
	if err != nil {
		return err
	}
	plans := map[uint32]*learn.Layout{}
	_, err = replay.Replay(src, replay.Options{
		Policy: replay.LayoutPolicy, OnLayout: func(process uint32, plan *learn.Layout) { plans[process] = plan },
	})
	if err != nil {
		return err
	}
	for _, process := range slices.Sorted(maps.Keys(plans)) {
		p := names.Process(process)
		of := c.program(callsite.Base(p.Program), tags)
		of.build = cmp.Or(of.build, p.BuildOf(callsite.Base(p.Program)))
		of.runs = append(of.runs, Run{Plan: plans[process], Sites: sites[process]})
		of.size += plans[process].Size
	}
	return nil
}

func (c *Collection) program(name, tags string) *program {
	p := c.programs[name]
	if p == nil {
		if c.programs == nil {
			c.programs = map[string]*program{}
		}
		p = &program{tags: tags}
		c.programs[name] = p
	}
	return p
}

// Make makes a plan of the program with the most runs, and returns how many other programs there are.
func (c *Collection) Make() (p *Plan, others int, err error) {
	if len(c.programs) == 0 {
		return nil, 0, ErrNothing
	}
	name := slices.MaxFunc(slices.Sorted(maps.Keys(c.programs)), func(a, b string) int {
		a1, b1 := c.programs[a], c.programs[b]
		return cmp.Or(cmp.Compare(len(a1.runs), len(b1.runs)), cmp.Compare(a1.size, b1.size))
	})
	of := c.programs[name]
	if p, err = Make(of.runs); err == nil {
		p.Program, p.Build, p.Tags = name, of.build, of.tags
	}
	return p, len(c.programs) - 1, err
}
