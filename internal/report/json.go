package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// Figures are a report for scripts: those of a run's summary at the top level, and what an analysis adds. Sizes are
// bytes, rates 0…1; the name of a time says its unit, and times are after the start of the run. docs/METRICS.md explains
// the words. Lists are never null, and have no bound but where METRICS says so.
type Figures struct {
	export.Summary
	Part        Part            `json:"part"`
	Before      uint64          `json:"before_attach,omitempty"` // buffers whose sizes are known as far as used
	Damage      string          `json:"damage"`                  // what of the recording could not be read
	Diagnoses   []DiagnosisJSON `json:"diagnoses"`
	Peak        PeakJSON        `json:"peak"`
	Reasons     []MissJSON      `json:"misses_by_reason"`
	Leaks       []LeakJSON      `json:"leaks"`
	Temporaries []TemporaryJSON `json:"temporaries"`
	Phases      []PhaseJSON     `json:"phases"`
	CreateCost  CostJSON        `json:"driver_create_cost"`
	CopyCost    CostJSON        `json:"driver_copying_create_cost"`
	ReleaseCost CostJSON        `json:"driver_release_cost"`
	Lag         LagJSON         `json:"lag"`
	Timeline    TimelineJSON    `json:"timeline"`
	Sizes       []BinJSON       `json:"sizes"`        // bars by bytes asked for
	Lifetimes   []BinJSON       `json:"lifetimes_ns"` // bars by ns
	Flame       *FrameJSON      `json:"flame"`        // null when no stack is known
	Limits      *LimitsJSON     `json:"hit_rate_by_limit,omitempty"`
}

// Part says which part of the recording the figures are of.
type Part struct {
	SinceSeconds float64 `json:"since_seconds"`
	UntilSeconds float64 `json:"until_seconds"` // 0: to the end
	Process      string  `json:"process"`       // empty: all
	Tag          string  `json:"tag"`           // pattern; empty: all call sites
	Events       uint64  `json:"events"`        // without what was carried over from before
	Whole        bool    `json:"whole"`         // the recording ended in order
}

// KnobJSON is a limit to change; limit is empty where none helps.
type KnobJSON struct {
	Limit string `json:"limit"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

// DiagnosisJSON is a conclusion.
type DiagnosisJSON struct {
	Severity string   `json:"severity"` // problem, advice or note
	Title    string   `json:"title"`
	Text     string   `json:"text"`
	Tag      string   `json:"tag"` // empty: the whole run
	Knob     KnobJSON `json:"knob"`
}

// PeakJSON is the first moment when the most was in use.
type PeakJSON struct {
	TimeNS    uint64        `json:"time_ns"`
	InUse     uint64        `json:"in_use"`
	Requested uint64        `json:"requested"`
	Reserved  uint64        `json:"reserved"`
	Buffers   uint64        `json:"buffers"`
	PerTag    []PeakTagJSON `json:"per_tag"`
}

// PeakTagJSON is what one call site held then.
type PeakTagJSON struct {
	Tag       string   `json:"tag"`
	Stack     []string `json:"stack"` // innermost first
	InUse     uint64   `json:"in_use"`
	Requested uint64   `json:"requested"`
	Buffers   uint64   `json:"buffers"`
}

// MissJSON is one reason for misses.
type MissJSON struct {
	Reason   string   `json:"reason"` // "too_small" and so on
	Misses   uint64   `json:"misses"`
	Bytes    uint64   `json:"bytes"`
	DriverNS uint64   `json:"driver_ns"` // that their creates took
	Knob     KnobJSON `json:"knob"`
}

// LeakJSON is what one call site left behind.
type LeakJSON struct {
	Tag      string   `json:"tag"`
	Stack    []string `json:"stack"` // innermost first
	Buffers  uint64   `json:"buffers"`
	Bytes    uint64   `json:"bytes"`
	OldestNS uint64   `json:"oldest_ns"`
}

// TemporaryJSON is one call site's temporary buffers.
type TemporaryJSON struct {
	Tag      string `json:"tag"`
	Buffers  uint64 `json:"buffers"`
	Creates  uint64 `json:"creates"`
	Bytes    uint64 `json:"bytes"`
	LifeP50  uint64 `json:"life_p50_ns"`
	DriverNS uint64 `json:"driver_ns"`
}

// PhaseJSON is a stretch of the run.
type PhaseJSON struct {
	Process    uint32 `json:"process"` // number in the recording
	Thread     uint32 `json:"thread"`
	StartNS    uint64 `json:"start_ns"`
	EndNS      uint64 `json:"end_ns"`
	Iterations uint64 `json:"iterations"` // 0: nothing repeats
	PeriodNS   uint64 `json:"period_ns"`
	Creates    uint64 `json:"creates_per_iteration"`
	Growth     int64  `json:"growth_per_iteration"`
	PeakInUse  uint64 `json:"peak_in_use"`
}

// CostJSON is the line base + per_byte × size through measured driver calls.
type CostJSON struct {
	Calls   uint64          `json:"calls"`
	Base    float64         `json:"base_ns"`
	PerByte float64         `json:"per_byte_ns"`
	R2      float64         `json:"r2"`
	P50     uint64          `json:"p50_ns"`
	P99     uint64          `json:"p99_ns"`
	Points  []CostPointJSON `json:"points"` // means by powers of two
}

// CostPointJSON is the mean of calls of similar size.
type CostPointJSON struct {
	Size   uint64  `json:"mean_size"`
	NS     float64 `json:"mean_ns"`
	Calls  uint64  `json:"calls"`
	StdDev float64 `json:"standard_deviation_ns"`
}

// LagJSON is how long memory was held after its last use. known and unused are 0 when uses were not recorded.
type LagJSON struct {
	Known       uint64       `json:"known"`
	Unused      uint64       `json:"unused"`
	P50         uint64       `json:"p50_ns"`
	P99         uint64       `json:"p99_ns"`
	ByteSeconds float64      `json:"byte_seconds"`
	PerTag      []LagTagJSON `json:"per_tag"`
}

// LagTagJSON is the lag of one call site.
type LagTagJSON struct {
	Tag         string  `json:"tag"`
	Known       uint64  `json:"known"`
	P50         uint64  `json:"p50_ns"`
	P99         uint64  `json:"p99_ns"`
	ByteSeconds float64 `json:"byte_seconds"`
}

// TimelineJSON is evenly spaced: point i stands for the time from start + i × step on.
type TimelineJSON struct {
	StartNS       uint64       `json:"start_ns"`
	StepNS        uint64       `json:"step_ns"`
	InUse         []uint64     `json:"in_use"`
	Cached        []uint64     `json:"cached"`
	Cooling       []uint64     `json:"cooling"`
	Hits          []uint64     `json:"hits"`
	Misses        []uint64     `json:"misses"`
	Fragmentation []float64    `json:"external_fragmentation"`
	Waste         []float64    `json:"waste"`
	Tags          []SeriesJSON `json:"in_use_per_tag"`
	Free          []SeriesJSON `json:"free_per_tag"`
}

// SeriesJSON is one call site's share of a timeline.
type SeriesJSON struct {
	Tag    string   `json:"tag"`
	Values []uint64 `json:"values"`
}

// BinJSON is one bar of a histogram.
type BinJSON struct {
	From  uint64 `json:"from"`
	To    uint64 `json:"to"`
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
}

// FrameJSON is a node of the call tree, from main inwards.
type FrameJSON struct {
	Name     string       `json:"name"`
	Peak     uint64       `json:"peak"`
	Total    uint64       `json:"total"`
	Creates  uint64       `json:"creates"`
	Leaked   uint64       `json:"leaked"`
	Children []*FrameJSON `json:"children"`
}

// JSON writes a report as one JSON object, for scripts: the Figures. The error is the writer's.
func JSON(w io.Writer, a *analysis.Analysis, o Options) error {
	figures := NewFigures(a)
	figures.Limits = limitsJSON(o.Limits)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(&figures); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// NewFigures returns an analysis in the form that JSON writes.
func NewFigures(a *analysis.Analysis) Figures {
	snapshot := a.Snapshot
	if snapshot == nil {
		snapshot = &model.Snapshot{}
	}
	f := Figures{
		Summary: summaryOf(a, snapshot), Before: a.Run.Before, Damage: a.Damage, Part: Part{
			SinceSeconds: a.Run.Since.Seconds(), UntilSeconds: a.Run.Until.Seconds(), Process: a.Run.Process, Tag: a.Run.Tag,
			Events: a.Run.Events, Whole: a.Run.Whole,
		},
		Peak: PeakJSON{
			TimeNS: a.Peak.Time, InUse: a.Peak.InUse, Requested: a.Peak.Requested, Reserved: a.Peak.Reserved, Buffers: a.Peak.Buffers,
			PerTag: each(a.Peak.Tags, func(t analysis.PeakTag) PeakTagJSON {
				return PeakTagJSON{t.Name, list(t.Stack), t.InUse, t.Requested, t.Buffers}
			}),
		},
		CreateCost: costJSON(&a.CreateCost), CopyCost: costJSON(&a.CopyCost), ReleaseCost: costJSON(&a.ReleaseCost), Lag: lagJSON(&a.Lag),
		Timeline: timelineJSON(&a.Timeline), Sizes: each(a.Sizes, binJSON), Lifetimes: each(a.Lifetimes, binJSON),
		Flame: frameJSON(a.Flame),
	}
	if a.Run.Whole {
		f.Exit = export.Exit{Status: a.Run.Footer.Status, Signal: a.Run.Footer.Signal}
	}
	f.lists(a)
	return f
}

// summaryOf returns the figures that a summary has, too.
func summaryOf(a *analysis.Analysis, s *model.Snapshot) export.Summary {
	if !a.Run.Header.Attached {
		return export.NewSummary(s)
	}
	running := 0
	if a.Run.Footer.Cut {
		for i := range s.Processes {
			if s.Processes[i].State == model.Running {
				running++
			}
		}
	}
	return export.NewWatchSummary(s, running)
}

// lists fills in what is listed by reason, call site and time.
func (f *Figures) lists(a *analysis.Analysis) {
	f.Diagnoses = each(a.Diagnoses, func(d analysis.Diagnosis) DiagnosisJSON {
		return DiagnosisJSON{string(d.Severity), d.Title, d.Text, d.Tag, KnobJSON(d.Knob)}
	})
	f.Reasons = each(a.Misses, func(m analysis.Miss) MissJSON {
		return MissJSON{strings.ReplaceAll(m.Reason, " ", "_"), m.Count, m.Bytes, m.LostNS, KnobJSON(m.Knob)}
	})
	f.Leaks = each(a.Leaks, func(l analysis.Leak) LeakJSON {
		return LeakJSON{l.Name, list(l.Stack), l.Buffers, l.Bytes, l.Oldest}
	})
	f.Temporaries = each(a.Temporaries, func(t analysis.Temporary) TemporaryJSON {
		return TemporaryJSON{t.Name, t.Buffers, t.Creates, t.Bytes, t.LifeP50, t.DriverNS}
	})
	f.Phases = each(a.Phases, func(p analysis.Phase) PhaseJSON {
		return PhaseJSON{p.Process, p.Thread, p.Start, p.End, p.Iterations, p.Period, p.Creates, p.Growth, p.PeakInUse}
	})
}

// each converts a list; that of nothing is empty, not null.
func each[From, To any](from []From, convert func(From) To) []To {
	to := make([]To, 0, len(from))
	for _, v := range from {
		to = append(to, convert(v))
	}
	return to
}

func list[T any](values []T) []T { return append([]T{}, values...) }

func binJSON(b analysis.Bin) BinJSON { return BinJSON(b) }

func costJSON(c *analysis.CostCurve) CostJSON {
	return CostJSON{
		Calls: c.Calls, Base: c.A, PerByte: c.B, R2: c.R2, P50: c.P50, P99: c.P99,
		Points: each(c.Points, func(p analysis.CostPoint) CostPointJSON { return CostPointJSON(p) }),
	}
}

func lagJSON(l *analysis.Lag) LagJSON {
	return LagJSON{
		Known: l.Known, Unused: l.Unused, P50: l.P50, P99: l.P99, ByteSeconds: l.ByteSeconds,
		PerTag: each(l.Tags, func(t analysis.LagTag) LagTagJSON { return LagTagJSON{t.Name, t.Known, t.P50, t.P99, t.ByteSeconds} }),
	}
}

func timelineJSON(l *analysis.Timeline) TimelineJSON {
	series := func(s analysis.Series) SeriesJSON { return SeriesJSON{s.Name, list(s.Values)} }
	return TimelineJSON{
		StartNS: l.Start, StepNS: l.Step, InUse: list(l.InUse), Cached: list(l.Cached), Cooling: list(l.Cooling),
		Hits: list(l.Hits), Misses: list(l.Misses), Fragmentation: list(l.Fragmentation), Waste: list(l.Waste),
		Tags: each(l.Tags, series), Free: each(l.Free, series),
	}
}

func frameJSON(f *analysis.Frame) *FrameJSON {
	if f == nil {
		return nil
	}
	return &FrameJSON{
		Name: f.Name, Peak: f.Peak, Total: f.Total, Creates: f.Creates, Leaked: f.Leaked, Children: each(f.Children, frameJSON),
	}
}
