package advise

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// document is the WriteJSON of a result. Scripts rely on its keys, see docs/METRICS.md.
type document struct {
	Form     string            `json:"form"`  // as requested
	Sizes    string            `json:"sizes"` // "equal" or "any"
	Programs []programDocument `json:"programs"`
	Empty    []string          `json:"empty"` // recordings without records of memory
}

type programDocument struct {
	Program string           `json:"program"`
	Runs    []runDocument    `json:"runs"`
	Advice  []adviceDocument `json:"advice"`
}

type runDocument struct {
	Recording  string          `json:"recording"`
	Process    uint32          `json:"process"`
	PID        int             `json:"pid"`
	Now        metricsDocument `json:"now"`
	Merged     metricsDocument `json:"merged"`
	NoOps      int             `json:"no_op_copies"`
	NearMisses int             `json:"near_misses"`
	Reuse      reuseDocument   `json:"reuse"`
	Lacks      []string        `json:"lacks"`
}

type metricsDocument struct {
	merging.Metrics
	Copies int `json:"copies"`
}

type reuseDocument struct {
	Form    string             `json:"form"` // the form that was used
	Before  merging.Footprint  `json:"before"`
	After   merging.Footprint  `json:"after"`
	Bound   merging.Footprint  `json:"bound"`
	Linear  *merging.Footprint `json:"linear"` // null if there are too many buffers for it
	Best    merging.Footprint  `json:"best"`
	Method  string             `json:"method"`
	Optimal bool               `json:"optimal"`
	Groups  []Group            `json:"groups"`
}

type adviceDocument struct {
	*merging.Advice
	Miss     *missDocument `json:"miss,omitempty"`
	Sentence string        `json:"sentence"`
}

// missDocument is the condition that a near miss fails.
type missDocument struct {
	Condition   string `json:"condition"`
	Producer    bool   `json:"producer"`
	Run         int    `json:"run"`  // index in runs
	Step        *int   `json:"step"` // null if it failed at no step
	HoistCreate bool   `json:"hoist_create"`
	HoistFill   bool   `json:"hoist_fill"`
}

// WriteJSON writes the result as one WriteJSON object. The error is the writer's.
func (r *Result) WriteJSON(w io.Writer) error {
	d := document{Form: r.Options.Form.String(), Sizes: "equal", Programs: []programDocument{}, Empty: append([]string{}, r.Empty...)}
	if r.Options.Max {
		d.Sizes = "any"
	}
	for i := range r.Programs {
		d.Programs = append(d.Programs, r.Programs[i].documentOfProgram())
	}
	if err := units.WriteJSON(w, &d); err != nil {
		return fmt.Errorf("write advice: %w", err)
	}
	return nil
}

func (p *Program) documentOfProgram() programDocument {
	d := programDocument{Program: p.Name, Runs: []runDocument{}, Advice: []adviceDocument{}}
	for i := range p.Runs {
		d.Runs = append(d.Runs, p.Runs[i].documentOfRun())
	}
	for i := range p.Advice {
		d.Advice = append(d.Advice, adviceDocumentOf(&p.Advice[i]))
	}
	return d
}

func (r *Run) documentOfRun() runDocument {
	f := &r.Found
	d := runDocument{
		Recording: r.Recording, Process: r.Process, PID: r.PID, Now: metricsDocument{f.Now, f.Copies}, Merged: metricsDocument{f.Merged,
			r.countRemainingCopies()},
		NoOps: f.NoOps, NearMisses: f.NearMisses, Lacks: append([]string{}, r.Lacks...),
	}
	u := f.Reuse
	d.Reuse = reuseDocument{
		Form: u.Form.String(), Before: u.Before, After: u.After,
		Bound: u.Bound, Best: u.Best, Method: u.Method, Optimal: u.Optimal,
		Groups: append([]Group{}, r.GroupsBySites()...),
	}
	if u.Linear.Blocks > 0 {
		d.Reuse.Linear = &u.Linear
	}
	return d
}

func adviceDocumentOf(a *merging.Advice) adviceDocument {
	d := adviceDocument{Advice: a, Sentence: a.Sentence}
	if a.Failed != 0 {
		d.Miss = &missDocument{
			Condition: a.Failed.String(), Producer: a.Producer, Run: a.Run,
			HoistCreate: a.Hoist&merging.HoistCreate != 0, HoistFill: a.Hoist&merging.HoistFill != 0,
		}
		if a.Step != merging.None {
			d.Miss.Step = &a.Step
		}
	}
	return d
}

// Group is a set of blocks that serve buffers of the same call sites.
type Group struct {
	Sites   []string `json:"sites"`   // in the order of their buffers in the first of the blocks
	Blocks  int      `json:"blocks"`  // each serves two buffers or more, one after the other
	Buffers int      `json:"buffers"` // that the blocks serve
	Bytes   uint64   `json:"bytes"`   // of the blocks
}

// GroupsBySites returns the shared blocks of a run, grouped by the call sites whose buffers they serve, those with the most
// buffers first.
func (r *Run) GroupsBySites() []Group {
	var groups []Group
	index := map[string]int{}
	for _, members := range r.Found.Reuse.Groups {
		var sites []string
		var most uint64
		for _, buffer := range members {
			b := &r.Program.Buffers[buffer]
			most = max(most, b.Size)
			if name := r.Program.NameOfSite(b.Site); !slices.Contains(sites, name) {
				sites = append(sites, name)
			}
		}
		key := strings.Join(slices.Sorted(slices.Values(sites)), "\x00")
		i, seen := index[key]
		if !seen {
			i = len(groups)
			index[key] = i
			groups = append(groups, Group{Sites: sites})
		}
		g := &groups[i]
		g.Blocks++
		g.Buffers += len(members)
		g.Bytes += most
	}
	slices.SortStableFunc(groups, func(x, y Group) int {
		return cmp.Or(cmp.Compare(y.Buffers, x.Buffers), cmp.Compare(y.Bytes, x.Bytes))
	})
	return groups
}

// countRemainingCopies returns how many copies between buffers remain.
func (r *Run) countRemainingCopies() int {
	return r.Found.Copies - r.Found.NoOps - r.Found.Merged.Coalescings
}
