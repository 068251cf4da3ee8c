package report

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Measured is the result of an experiment in the program: the present configuration and an alternative served parts of the run in
// random order.
type Measured struct {
	Alternative string `json:"alternative"` // "none", or a policy and its limits
	Running     bool   `json:"running,omitempty"`
	Why         string `json:"why,omitempty"`     // why it ended, or measured nothing
	Auto        string `json:"auto,omitempty"`    // what auto decided
	Adopted     bool   `json:"adopted,omitempty"` // by auto
	Requests    uint64 `json:"requests_per_iteration,omitempty"`
	// The following keys are left out if there is no interval.
	*MeasuredAnswer
}

// MeasuredAnswer is an answer with an interval. Times are ns per iteration, medians over the blocks; changes are fractions of the
// alternative's time.
type MeasuredAnswer struct {
	Time              float64 `json:"iteration_ns"`
	AlternativeTime   float64 `json:"alternative_iteration_ns"`
	Difference        float64 `json:"difference"`
	Low               float64 `json:"difference_low"` // lower end of the 95 % interval
	High              float64 `json:"difference_high"`
	Certain           bool    `json:"certain"` // the interval is on one side of 0
	Driver            float64 `json:"driver_ns"`
	AlternativeDriver float64 `json:"alternative_driver_ns"`
	Memory            uint64  `json:"memory"`                       // most bytes that a block took from the driver
	AlternativeMemory uint64  `json:"alternative_memory,omitempty"` // left out if it includes memory of other blocks
	Blocks            int     `json:"blocks"`
	Iterations        int     `json:"iterations"`
}

func measuredResults(results measure.Results) (list []Measured) {
	for i := range results {
		list = append(list, *NewMeasured(&results[i]))
	}
	return list
}

// NewMeasured returns what an experiment found; nil if there was none.
func NewMeasured(r *measure.Result) *Measured {
	if r == nil {
		return nil
	}
	m := &Measured{Alternative: r.Alternative, Running: r.Running, Why: r.Why, Auto: r.Auto, Adopted: r.Adopted, Requests: r.Requests}
	if !r.IsKnown() {
		return m
	}
	a := &r.Answer
	m.MeasuredAnswer = &MeasuredAnswer{
		Time: a.Present.Time, AlternativeTime: a.Alternative.Time, Difference: a.Difference, Low: a.Low, High: a.High, Certain: a.Certain,
		Driver: a.Present.Driver, AlternativeDriver: a.Alternative.Driver, Memory: a.Present.Bytes, Blocks: a.Blocks, Iterations: a.Iterations,
	}
	if r.Alternative == "none" {
		m.AlternativeMemory = a.Alternative.Bytes
	}
	return m
}

// autoDecisionTexts say what auto decided, by what measurement.
func autoDecisionTexts(s *stats.Snapshot) (texts []string) {
	for i := range s.Measured {
		if text := s.Measured[i].Auto; text != "" {
			texts = append(texts, text)
		}
	}
	if texts == nil && s.Auto != nil && s.Change.Done == 0 {
		texts = []string{"changed nothing: no experiment began"}
	}
	return texts
}

// experimentTexts say what the user's experiments found.
func experimentTexts(s *stats.Snapshot) (texts []string) {
	for i := range s.Measured {
		r := &s.Measured[i]
		if r.Auto != "" {
			continue
		}
		texts = append(texts, r.Text())
		if a := &r.Answer; r.IsKnown() && a.Present.Driver+a.Alternative.Driver > 0 {
			texts = append(texts, fmt.Sprintf("the driver's calls take %s of it instead of %s", units.DurationLong(a.Present.Driver), units.DurationLong(a.Alternative.Driver)))
		}
	}
	return texts
}
