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

// Collection holds the runs of recordings, by program. The zero Collection is empty.
type Collection struct{ programs map[string]*programRuns }

type programRuns struct {
	build, tags string
	runs        []Run
	size        uint64 // bytes, of all layouts
}

// Source is a recording to learn from; *recording.Reader is one.
type Source interface {
	recording.Source
	definer
}

// AddRecording learns a layout of each process of a recording: the last layout that a replay learns. tags says how the recording
// identifies call sites. The error is that of the source.
func (c *Collection) AddRecording(src Source, tags string) error {
	sites := map[uint32]map[allocator.Tag]Site{}
	names := callsite.NewNames()
	err := eachDefinition(src, func(r *wire.Record) {
		names.AddRecord(r)
		if site, tag, ok := SiteOfRecord(r); ok {
			if sites[r.Process] == nil {
				sites[r.Process] = map[allocator.Tag]Site{}
			}
			sites[r.Process][tag] = site
		}
	})
	if err != nil {
		return err
	}
	layouts := map[uint32]*learn.Layout{}
	_, err = replay.Replay(src, replay.Options{
		Policy: replay.LayoutPolicy, OnLayout: func(process uint32, layout *learn.Layout) { layouts[process] = layout },
	})
	if err != nil {
		return err
	}
	for _, process := range slices.Sorted(maps.Keys(layouts)) {
		p := names.Process(process)
		runs := c.findOrAddProgramRuns(callsite.BaseName(p.Program), tags)
		runs.build = cmp.Or(runs.build, p.BuildIDOfBase(callsite.BaseName(p.Program)))
		runs.runs = append(runs.runs, Run{Layout: layouts[process], Sites: sites[process]})
		runs.size += layouts[process].Size
	}
	return nil
}

func (c *Collection) findOrAddProgramRuns(name, tags string) *programRuns {
	p := c.programs[name]
	if p == nil {
		if c.programs == nil {
			c.programs = map[string]*programRuns{}
		}
		p = &programRuns{tags: tags}
		c.programs[name] = p
	}
	return p
}

// PlanOfMostRuns makes a plan for the program with the most runs, and returns how many other programs there are.
func (c *Collection) PlanOfMostRuns() (p *Plan, others int, err error) {
	if len(c.programs) == 0 {
		return nil, 0, ErrNothing
	}
	name := slices.MaxFunc(slices.Sorted(maps.Keys(c.programs)), func(a, b string) int {
		a1, b1 := c.programs[a], c.programs[b]
		return cmp.Or(cmp.Compare(len(a1.runs), len(b1.runs)), cmp.Compare(a1.size, b1.size))
	})
	runs := c.programs[name]
	if p, err = MakePlan(runs.runs); err == nil {
		p.Program, p.Build, p.Tags = name, runs.build, runs.tags
	}
	return p, len(c.programs) - 1, err
}
