package main

import (
	"encoding/json"
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab/tune"
)

// tuned is what tune found. Its JSON keys are what scripts rely on; times are ns, sizes bytes.
type tuned struct {
	Of          string         `json:"of"`
	Recordings  int            `json:"recordings"`
	Events      int            `json:"events"`
	Tried       int            `json:"configurations"`
	Ending      string         `json:"ending"` // enough, exhausted, cut
	Device      string         `json:"device"` // whose costs these are; empty: those of the recordings
	PartNS      float64        `json:"part_ns_assumed"`
	Recommended tunedPoint     `json:"recommended"`
	Reason      string         `json:"reason"` // close, knee, fits, vain
	None        tunedPoint     `json:"none"`
	Present     *tunedPoint    `json:"present"`
	Front       []tunedPoint   `json:"front"`
	BoundPeak   uint64         `json:"bound_peak_reserved"`
	BoundNS     float64        `json:"bound_driver_ns"`       // of any policy
	BoundWhole  float64        `json:"bound_driver_ns_whole"` // of those by which each buffer has a block of its own
	Folds       []tunedFold    `json:"cross_validation"`
	OverFits    bool           `json:"over_fits"`
	Measured    *tunedMeasured `json:"measured"`
}

// tunedScore is a configuration and what it did.
type tunedScore struct {
	Policy   string            `json:"policy"`
	Set      map[string]string `json:"set"` // limits that differ from the policy's defaults, as --set takes them
	DriverNS float64           `json:"driver_ns_simulated"`
	Peak     uint64            `json:"peak_reserved_poolable"`
	HitRate  float64           `json:"hit_rate"`
	Creates  uint64            `json:"driver_creates_poolable"`
}

type tunedPoint struct {
	tunedScore
	RegretNS float64 `json:"regret_ns"`
	Regret   float64 `json:"regret"` // the same as a share of what could be saved, 0 to 1
}

type tunedFold struct {
	Held     int        `json:"held_out"` // from 0 on: the recording, or the half of the only one
	Chosen   tunedScore `json:"chosen"`
	Best     tunedScore `json:"best"`
	Slower   bool       `json:"slower"`
	Larger   bool       `json:"larger"`
	OverFits bool       `json:"over_fits"`
}

type tunedMeasured struct {
	Before    tunedTrial `json:"before"`
	After     tunedTrial `json:"after"`
	Predicted float64    `json:"predicted_change"` // of the time in the driver: -0.5 is half of it
	Differs   bool       `json:"differs"`
}

type tunedTrial struct {
	DriverNS uint64 `json:"driver_ns"`
	Peak     uint64 `json:"peak_reserved"`
	WallNS   uint64 `json:"wall_ns"`
}

func (t *tuner) writeJSON(w io.Writer) error {
	r := t.result
	out := tuned{
		Of: t.what, Recordings: len(t.tapes), Events: t.events, Tried: len(r.Points), Device: t.device, PartNS: r.PartNS,
		Ending:      map[tune.Ending]string{tune.Enough: "enough", tune.Exhausted: "exhausted", tune.Cut: "cut"}[r.Ending],
		Reason:      map[tune.Reason]string{tune.Close: "close", tune.Knee: "knee", tune.Fits: "fits", tune.Vain: "vain"}[r.Reason],
		Recommended: t.point(r.Recommended), None: t.point(&r.None),
		BoundPeak: r.Bound.Peak, BoundNS: r.Bound.Carved, BoundWhole: r.Bound.Whole, Front: []tunedPoint{}, Folds: []tunedFold{}, Measured: t.measured.script(),
	}
	if r.Present != nil {
		p := t.point(r.Present)
		out.Present = &p
	}
	for i := range r.Front {
		out.Front = append(out.Front, t.point(&r.Front[i]))
	}
	for i := range t.folds {
		f := &t.folds[i]
		out.Folds = append(out.Folds, tunedFold{f.Held, scored(&f.Chosen), scored(&f.Best), f.Slower, f.Larger, f.OverFits()})
		out.OverFits = out.OverFits || f.OverFits()
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(&out); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// script is what was measured, for scripts.
func (m *measured) script() *tunedMeasured {
	if m == nil {
		return nil
	}
	return &tunedMeasured{
		Before: tunedTrial{m.before.driverNS, m.before.peak, m.before.wallNS}, After: tunedTrial{m.after.driverNS, m.after.peak, m.after.wallNS},
		Predicted: (m.predicted[1] - m.predicted[0]) / max(m.predicted[0], 1), Differs: m.differs(),
	}
}

// point is a point for scripts.
func (t *tuner) point(p *tune.Point) tunedPoint {
	out := tunedPoint{tunedScore: scored(p)}
	out.RegretNS, out.Regret = t.result.Regret(p)
	return out
}

func scored(p *tune.Point) tunedScore {
	s := tunedScore{
		Policy: p.Configuration.Policy, Set: map[string]string{}, DriverNS: p.DriverNS, Peak: p.PeakReserved, HitRate: p.HitRate(), Creates: p.DriverCreates,
	}
	for _, setting := range p.Configuration.Settings {
		name, value := settingText(s.Policy, setting)
		s.Set[name] = value
	}
	return s
}
