package advice

import (
	"encoding/json"
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/merging"
)

// document is the JSON of a result. Its keys are what scripts rely on, see docs/METRICS.md.
type document struct {
	Form     string            `json:"form"`  // that was asked for
	Sizes    string            `json:"sizes"` // "equal" or "any"
	Programs []programDocument `json:"programs"`
	Empty    []string          `json:"empty"` // recordings that tell of no memory
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
	Peak        uint64 `json:"peak"`
	NS          uint64 `json:"time_ns"`
	Allocated   uint64 `json:"bytes_allocated"`
	Freed       uint64 `json:"bytes_freed"`
	Coalescings int    `json:"coalescings"`
	Reuses      int    `json:"reuses"`
	Copies      int    `json:"copies"`
}

type demandDocument struct {
	Blocks int    `json:"blocks"`
	Peak   uint64 `json:"bytes"`
}

type reuseDocument struct {
	Form    string          `json:"form"` // that counted
	Before  demandDocument  `json:"before"`
	After   demandDocument  `json:"after"`
	Bound   demandDocument  `json:"bound"`
	Linear  *demandDocument `json:"linear"` // null when there are too many buffers for it
	Best    demandDocument  `json:"best"`
	Method  string          `json:"method"`
	Optimal bool            `json:"optimal"`
	Groups  []Group         `json:"groups"`
}

type adviceDocument struct {
	Topic    string        `json:"topic"`
	Verdict  string        `json:"verdict"`
	Sites    []string      `json:"sites"`
	Copies   []string      `json:"copies,omitempty"` // of concat
	Count    int           `json:"count"`
	Bytes    uint64        `json:"bytes"`
	NS       uint64        `json:"copies_ns,omitempty"`
	Runs     int           `json:"runs"`
	Offsets  []uint64      `json:"offsets,omitempty"`
	Blocks   int           `json:"blocks,omitempty"`
	Unused   bool          `json:"unused,omitempty"`
	Flags    bool          `json:"other_flags,omitempty"`
	Nested   bool          `json:"nested,omitempty"`
	Refilled bool          `json:"refilled,omitempty"`
	Miss     *missDocument `json:"miss,omitempty"`
	Sentence string        `json:"sentence"`
}

// missDocument is what is in the way of a near miss.
type missDocument struct {
	Condition   string `json:"condition"`
	Producer    bool   `json:"producer"`
	Run         int    `json:"run"`  // its place in runs
	Step        *int   `json:"step"` // null when it was none
	HoistCreate bool   `json:"hoist_create"`
	HoistFill   bool   `json:"hoist_fill"`
}

// JSON writes what was found as one JSON object. The error is the writer's.
func (r *Result) JSON(w io.Writer) error {
	d := document{Form: r.Options.Form.String(), Sizes: "equal", Programs: []programDocument{}, Empty: append([]string{}, r.Empty...)}
	if r.Options.Max {
		d.Sizes = "any"
	}
	for i := range r.Programs {
		d.Programs = append(d.Programs, r.Programs[i].document())
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(&d); err != nil {
		return fmt.Errorf("write advice: %w", err)
	}
	return nil
}

func (p *Program) document() programDocument {
	d := programDocument{Program: p.Name, Runs: []runDocument{}, Advice: []adviceDocument{}}
	for i := range p.Runs {
		d.Runs = append(d.Runs, p.Runs[i].document())
	}
	for i := range p.Advice {
		d.Advice = append(d.Advice, adviceOf(&p.Advice[i]))
	}
	return d
}

func (r *Run) document() runDocument {
	f := &r.Found
	d := runDocument{
		Recording: r.Recording, Process: r.Process, PID: r.PID, Now: metricsOf(&f.Now), Merged: metricsOf(&f.Merged),
		NoOps: f.NoOps, NearMisses: f.NearMisses, Lacks: append([]string{}, r.Lacks...),
	}
	d.Now.Copies, d.Merged.Copies = f.Copies, r.left()
	u := f.Reuse
	d.Reuse = reuseDocument{
		Form: u.Form.String(), Before: demandDocument(u.Before), After: demandDocument(u.After),
		Bound: demandDocument(u.Bound), Best: demandDocument(u.Best), Method: u.Method, Optimal: u.Optimal,
		Groups: append([]Group{}, r.Groups()...),
	}
	if u.Linear.Blocks > 0 {
		linear := demandDocument(u.Linear)
		d.Reuse.Linear = &linear
	}
	return d
}

func metricsOf(m *merging.Metrics) metricsDocument {
	return metricsDocument{
		Peak: m.Peak, NS: m.NS, Allocated: m.Allocated, Freed: m.Freed, Coalescings: m.Coalescings, Reuses: m.Reuses,
	}
}

func adviceOf(a *merging.Advice) adviceDocument {
	d := adviceDocument{
		Topic: a.Topic.String(), Verdict: a.Verdict.String(), Sites: a.Sites, Copies: a.Copies, Count: a.Count, Bytes: a.Bytes, NS: a.Nanos,
		Runs: a.Runs, Offsets: a.Offsets, Blocks: a.Blocks, Unused: a.Unused, Flags: a.OtherFlags, Nested: a.Nested, Refilled: a.Refilled,
		Sentence: a.Sentence,
	}
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
