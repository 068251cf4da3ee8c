package check

import (
	"fmt"
	"io"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Verdict is the result of one rule.
type Verdict struct {
	Rule   string   `json:"rule"`
	Tag    string   `json:"tag,omitempty"` // call site, or the pattern when none matches
	Bound  float64  `json:"bound"`         // bytes, ns, a rate or a count
	Value  *float64 `json:"value"`         // null if unknown
	Passed bool     `json:"passed"`
	Why    string   `json:"why,omitempty"` // why it could not be judged, which counts as failed
	text   string
}

// Result is the result of all rules.
type Result struct {
	Passed   bool      `json:"passed"`
	Verdicts []Verdict `json:"rules"`
}

// JudgeRun tests a run against the rules. A rule that cannot be judged fails, for a rule that silently tests nothing is worse
// than none; a rule for call sites that matches none fails, too. A damaged recording fails, and a recording with too low
// figures: it has more live objects than are kept or, unless a rule allows that, it lost events.
func (s *Rules) JudgeRun(a *analysis.Analysis) *Result {
	result := &Result{Passed: true, Verdicts: s.judgeCompleteness(a)}
	run := figures.SubjectOfRecording(a)
	for i := range s.list {
		result.Verdicts = append(result.Verdicts, s.list[i].judgeRun(run)...)
	}
	for i := range result.Verdicts {
		result.Passed = result.Passed && result.Verdicts[i].Passed
	}
	return result
}

// judgeCompleteness judges what needs no rule. It returns nothing if all is well.
func (s *Rules) judgeCompleteness(a *analysis.Analysis) []Verdict {
	var verdicts []Verdict
	if a.Damage != "" {
		verdicts = append(verdicts, Verdict{Rule: "recording", Why: a.Damage, text: "not whole: " + a.Damage})
	}
	if left := a.Snapshot.LeftOut; left != "" {
		why := left + " are left out: figures are too low"
		verdicts = append(verdicts, Verdict{Rule: "recording", Why: why, text: "not whole: " + why})
	}
	asked := slices.ContainsFunc(s.list, func(r rule) bool { return r.figure == figures.LostEvents })
	if lost := a.Snapshot.Lost; lost > 0 && !asked {
		verdicts = append(verdicts, Verdict{
			Rule: lostEvents, Value: new(float64(lost)), text: fmt.Sprintf("%d, want 0 unless %s allows more", lost, lostEvents),
		})
	}
	return verdicts
}

func (r *rule) judgeRun(run *figures.Subject) []Verdict {
	if r.tag == nil {
		return []Verdict{r.verdictOnValue("", r.figure.ValueOf(run))}
	}
	var verdicts []Verdict
	for i := range run.Run.Tags {
		t := &run.Run.Tags[i]
		if !t.Slabs && r.tag.MatchString(t.Name) {
			verdicts = append(verdicts, r.verdictOnValue(t.Name, r.figure.ValueOfSite(run, t)))
		}
	}
	if len(verdicts) == 0 {
		return []Verdict{r.verdictOnValue(r.tag.String(), figures.Value{Why: "no call site matches"})}
	}
	return verdicts
}

func (r *rule) verdictOnValue(tag string, value figures.Value) Verdict {
	unit := r.figure.Unit
	v := Verdict{Rule: r.figure.Rule, Tag: units.Clean(tag), Bound: r.bound}
	sign, bound := "at most", formatFigure(unit, r.bound)
	if r.isLowerBound() {
		sign = "at least"
	}
	if !value.IsKnown() {
		v.Why = value.Why
		v.text = fmt.Sprintf("%s, want %s %s", value.Why, sign, bound)
		return v
	}
	number := value.Number
	v.Value = &number
	v.Passed = number <= r.bound
	if r.isLowerBound() {
		v.Passed = number >= r.bound
	}
	text := formatFigure(unit, number)
	if text == bound && number != r.bound { // what was rounded away is what matters
		text, bound = formatWithAllDigits(unit, number), formatWithAllDigits(unit, r.bound)
	}
	v.text = fmt.Sprintf("%s, want %s %s", text, sign, bound)
	return v
}

// WriteText writes a line for each rule, and marks those that failed.
func (s *Result) WriteText(w io.Writer) error {
	failed := 0
	for i := range s.Verdicts {
		v := &s.Verdicts[i]
		mark := "ok  "
		if !v.Passed {
			mark = "FAIL"
			failed++
		}
		where := ""
		if v.Tag != "" {
			where = " of " + v.Tag
		}
		if _, err := fmt.Fprintf(w, "%s  %s%s: %s\n", mark, v.Rule, where, v.text); err != nil {
			return fmt.Errorf("write verdicts: %w", err)
		}
	}
	if _, err := fmt.Fprintf(w, "%d of %d rules kept\n", len(s.Verdicts)-failed, len(s.Verdicts)); err != nil {
		return fmt.Errorf("write verdicts: %w", err)
	}
	return nil
}

// WriteJSON writes the same for programs.
func (s *Result) WriteJSON(w io.Writer) error {
	if err := units.WriteJSON(w, s); err != nil {
		return fmt.Errorf("write verdicts: %w", err)
	}
	return nil
}
