package tune

import "codeberg.org/gpumemtop/gpumemtop/internal/setting"

// Document is the result of a search for scripts, which rely on its JSON keys. Times are ns, sizes bytes.
type Document struct {
	Of          string          `json:"of"`
	Recordings  int             `json:"recordings"`
	Events      int             `json:"events"`
	Tried       int             `json:"configurations"`
	Ending      string          `json:"ending"` // enough, exhausted, cut
	Device      string          `json:"device"` // the device whose costs were used; empty: those of the recordings
	PartNS      float64         `json:"part_ns_assumed"`
	Recommended PointDocument   `json:"recommended"`
	Reason      string          `json:"reason"`     // close, knee, fits, vain
	Little      bool            `json:"too_little"` // it saves less than 1 % of ran_ns
	RanNS       uint64          `json:"ran_ns"`     // how long the recorded runs were, together
	None        PointDocument   `json:"none"`
	Present     *PointDocument  `json:"present"`
	Front       []PointDocument `json:"front"`
	Assumed     []PointDocument `json:"front_assumed"` // would be in the front at assumed costs; never recommended
	BoundPeak   uint64          `json:"bound_peak_reserved"`
	BoundNS     float64         `json:"bound_driver_ns"`       // of any policy
	BoundWhole  float64         `json:"bound_driver_ns_whole"` // of policies that give each buffer a block of its own
	Folds       []FoldDocument  `json:"cross_validation"`
	OverFits    bool            `json:"over_fits"`
}

// ScoreDocument is a configuration and its figures.
type ScoreDocument struct {
	Policy   string            `json:"policy"`
	Set      map[string]string `json:"set"` // limits that differ from the policy's defaults, as --set accepts them
	DriverNS float64           `json:"driver_ns_simulated"`
	Peak     uint64            `json:"peak_reserved_poolable"`
	HitRate  float64           `json:"hit_rate"`
	Creates  uint64            `json:"driver_creates_poolable"`
}

// PointDocument is a configuration and its distance from the bound.
type PointDocument struct {
	ScoreDocument
	RegretNS float64 `json:"regret_ns"`
	Regret   float64 `json:"regret"` // as a share of what could be saved, 0 to 1
}

// FoldDocument is one step of the cross-validation.
type FoldDocument struct {
	Held     int           `json:"held_out"` // from 0: the recording, or the half of the only recording
	Chosen   ScoreDocument `json:"chosen"`
	Best     ScoreDocument `json:"best"`
	Slower   bool          `json:"slower"`
	Larger   bool          `json:"larger"`
	OverFits bool          `json:"over_fits"`
}

var (
	endings = map[Ending]string{Enough: "enough", Exhausted: "exhausted", Cut: "cut"}
	reasons = map[Reason]string{Close: "close", Knee: "knee", Fits: "fits", Vain: "vain"}
)

// DocumentOfResult returns a result, which has a recommendation, with its cross-validation. The caller adds of, recordings,
// events and device.
func (r *Result) DocumentOfResult(folds []Fold) Document {
	d := Document{
		Tried: len(r.Points), PartNS: r.PartNS, Ending: endings[r.Ending], Reason: reasons[r.Reason],
		Recommended: r.documentWithRegret(r.Recommended), Little: r.SavesLittle(r.PointInUse()), RanNS: r.RanNS, None: r.documentWithRegret(&r.None),
		BoundPeak: r.Bound.Peak, BoundNS: r.Bound.Carved, BoundWhole: r.Bound.Whole, Front: []PointDocument{}, Assumed: []PointDocument{}, Folds: []FoldDocument{},
	}
	if r.Present != nil {
		p := r.documentWithRegret(r.Present)
		d.Present = &p
	}
	for i := range r.Front {
		d.Front = append(d.Front, r.documentWithRegret(&r.Front[i]))
	}
	for i := range r.Assumed {
		d.Assumed = append(d.Assumed, r.documentWithRegret(&r.Assumed[i]))
	}
	for i := range folds {
		f := &folds[i]
		d.Folds = append(d.Folds, FoldDocument{f.Held, f.Chosen.scoreDocument(), f.Best.scoreDocument(), f.Slower, f.Larger, f.OverFits()})
		d.OverFits = d.OverFits || f.OverFits()
	}
	return d
}

func (r *Result) documentWithRegret(p *Point) PointDocument {
	d := PointDocument{ScoreDocument: p.scoreDocument()}
	d.RegretNS, d.Regret = r.RegretOf(p)
	return d
}

func (p *Point) scoreDocument() ScoreDocument {
	d := ScoreDocument{
		Policy: p.Configuration.Policy, Set: map[string]string{}, DriverNS: p.DriverNS, Peak: p.PeakReserved, HitRate: p.HitRate(), Creates: p.DriverCreates,
	}
	for _, s := range p.Configuration.Settings {
		name, value := setting.NameAndValueText(d.Policy, s)
		d.Set[name] = value
	}
	return d
}
