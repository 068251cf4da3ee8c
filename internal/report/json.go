package report

import (
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Data is a report for scripts: a run's summary at the top level, and the findings of an analysis. Sizes are bytes, rates 0…1.
// Keys of times say their unit; times are since the start of the run. docs/METRICS.md explains the keys. Lists are never null,
// and are unbounded unless METRICS says otherwise.
type Data struct {
	Summary
	findings
}

// MarshalJSON implements json.Marshaler.
func (d Data) MarshalJSON() ([]byte, error) {
	return append(d.Summary.joinParts(), &d.findings).MarshalJSON()
}

// findings are the keys that an analysis adds to a summary.
type findings struct {
	Part        Part                 `json:"part"`
	Before      uint64               `json:"before_attach,omitempty"` // buffers from before the attach, whose sizes are known only from their uses
	Damage      string               `json:"damage"`                  // says which part of the recording could not be read
	Diagnoses   []analysis.Diagnosis `json:"diagnoses"`
	Peak        analysis.Peak        `json:"peak"`
	Reasons     []analysis.Miss      `json:"misses_by_reason"`
	Leaks       []analysis.Leak      `json:"leaks"`
	Temporaries []analysis.Temporary `json:"temporaries"`
	Phases      []analysis.Phase     `json:"phases"`
	// TransferFindings are transfers that could go or be faster, the largest share first.
	TransferFindings []analysis.TransferFinding `json:"transfer_findings"`
	CreateCost       analysis.CostCurve         `json:"driver_create_cost"`
	CopyCost         analysis.CostCurve         `json:"driver_copying_create_cost"`
	ReleaseCost      analysis.CostCurve         `json:"driver_release_cost"`
	Lag              analysis.Lag               `json:"lag"`
	Timeline         analysis.Timeline          `json:"timeline"`
	Sizes            []analysis.Bin             `json:"sizes"`        // bars by bytes asked for
	Lifetimes        []analysis.Bin             `json:"lifetimes_ns"` // bars by ns
	Flame            *analysis.Frame            `json:"flame"`        // null when no stack is known
	Limits           *LimitsJSON                `json:"hit_rate_by_limit,omitempty"`
}

// Part is the part of the recording that the figures cover.
type Part struct {
	SinceSeconds float64 `json:"since_seconds"`
	UntilSeconds float64 `json:"until_seconds"` // 0: to the end
	Process      string  `json:"process"`       // empty: all
	Tag          string  `json:"tag"`           // pattern; empty: all call sites
	Events       uint64  `json:"events"`        // without those carried over
	Whole        bool    `json:"whole"`         // the recording has its end
}

// WriteJSON writes a report as one JSON object, for scripts: its Data. The error is the writer's.
func WriteJSON(w io.Writer, a *analysis.Analysis, o Options) error {
	data := NewData(a)
	data.Limits = limitsJSON(o.Limits)
	if data.Plan != nil && len(o.Unplanned) > 0 {
		data.Plan.Unplanned = map[string]uint64{}
		for _, u := range o.Unplanned {
			data.Plan.Unplanned[u.Policy] = u.Reserved
		}
	}
	if err := units.WriteJSON(w, &data); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// NewData returns the data of an analysis that JSON writes.
func NewData(a *analysis.Analysis) Data {
	s := a.Snapshot
	if s == nil {
		s = &stats.Snapshot{}
	}
	f := Data{summaryOfAnalysis(a, s), findings{
		Before: a.Run.Before, Damage: a.Damage, Part: Part{
			SinceSeconds: a.Run.Since.Seconds(), UntilSeconds: a.Run.Until.Seconds(), Process: a.Run.Process, Tag: a.Run.Tag,
			Events: a.Run.Events, Whole: a.Run.Whole,
		},
		Diagnoses: a.Diagnoses, Peak: a.Peak, Reasons: a.Misses, Leaks: a.Leaks, Temporaries: a.Temporaries, Phases: a.Phases, TransferFindings: a.Transfers,
		CreateCost: a.CreateCost, CopyCost: a.CopyCost, ReleaseCost: a.ReleaseCost, Lag: a.Lag, Timeline: a.Timeline,
		Sizes: a.Sizes, Lifetimes: a.Lifetimes, Flame: a.Flame,
	}}
	addGrowth(f.Machine, a.Growth)
	addObjectGrowth(f.Objects, a.Phases)
	f.Asked = a.Run.Footer.Asked
	if a.Run.Whole {
		f.Exit = Exit{Status: a.Run.Footer.Status, Signal: a.Run.Footer.Signal}
	}
	return f
}

// summaryOfAnalysis returns the summary of an analysis.
func summaryOfAnalysis(a *analysis.Analysis, s *stats.Snapshot) Summary {
	if !a.Run.Header.Attached {
		return NewSummary(s)
	}
	running := 0
	if a.Run.Footer.Cut {
		for i := range s.Processes {
			if s.Processes[i].State == stats.Running {
				running++
			}
		}
	}
	return NewWatchSummary(s, running)
}
