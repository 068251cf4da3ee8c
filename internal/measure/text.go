package measure

import (
	"fmt"
	"math"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// IsKnown reports whether there is an answer with an interval.
func (r *Result) IsKnown() bool { return r != nil && r.Answer.Looks > 0 }

// LatestResult returns the latest result; nil: there is none.
func (rs Results) LatestResult() *Result {
	if len(rs) == 0 {
		return nil
	}
	return &rs[len(rs)-1]
}

// RunningResult returns the result of the experiment that goes on; nil: none does.
func (rs Results) RunningResult() *Result {
	if r := rs.LatestResult(); r != nil && r.Running {
		return r
	}
	return nil
}

// LatestKnown returns the latest result with an interval, of the comparison with no pool if there is one; nil: there is none. Results
// from before a change of the configuration are of another one.
func (rs Results) LatestKnown() (known *Result) {
	for i := range rs {
		if rs[i].Adopted || rs[i].Former {
			known = nil
		} else if r := &rs[i]; r.IsKnown() && (known == nil || known.Alternative != "none" || r.Alternative == "none") {
			known = r
		}
	}
	return known
}

// Text says what was found, or why nothing was; empty for nil.
func (r *Result) Text() string {
	if r == nil {
		return ""
	}
	with := ""
	if r.Alternative != "none" && r.Alternative != "" {
		with = " " + r.AlternativeText()
	}
	switch {
	case r.Running && r.IsKnown():
		return fmt.Sprintf("measuring%s: %s, %s so far", with, r.blocksText(), r.ChangeText())
	case r.Running:
		return fmt.Sprintf("measuring%s: %s so far", with, r.blocksText())
	case !r.IsKnown() && r.Why == "":
		return fmt.Sprintf("nothing%s: an answer needs more than %s", with, r.blocksText())
	case !r.IsKnown():
		return fmt.Sprintf("nothing%s: %s", with, r.Why)
	}
	return r.answerSentence()
}

// answerSentence says what a known answer is.
func (r *Result) answerSentence() string {
	a := &r.Answer
	present, alternative := a.Present.Time, a.Alternative.Time
	text := fmt.Sprintf("%s %s instead of %s %s: %s", r.whatIsTimedText(), units.DurationLong(present), units.DurationLong(alternative), r.AlternativeText(), r.ChangeText())
	if !a.Certain {
		text = fmt.Sprintf("no certain difference: %s %s than %s", r.whatIsTimedText(), r.ChangeText(), r.AlternativeText())
	}
	text += fmt.Sprintf(" (%s, %s %s)", r.blocksText(), units.FormatGrouped(uint64(a.Iterations)), r.countedUnits())
	if r.Warming {
		text += "; caches may still fill in them"
	}
	if bytes := r.BytesBeyondProgram(); bytes > 0 {
		text += "; it costs " + units.FormatLong(bytes)
	}
	if r.Former && !r.Adopted {
		text += "; settings have changed since"
	}
	return text
}

// whatIsTimedText says what takes the time.
func (r *Result) whatIsTimedText() string {
	if r.Requests == 0 {
		return "from request to request it takes"
	}
	return "an iteration takes"
}

// countedUnits says what was counted.
func (r *Result) countedUnits() string {
	if r.Requests == 0 {
		return "requests"
	}
	return "iterations"
}

// AlternativeText says what the alternative was.
func (r *Result) AlternativeText() string {
	if r.Alternative == "none" {
		return "without the pool, but watched"
	}
	policy, limits, several := strings.Cut(r.Alternative, ",")
	if several {
		policy += " (" + strings.ReplaceAll(limits, ",", ", ") + ")"
	}
	return "with " + policy
}

// BytesBeyondProgram returns the bytes of memory that the present configuration takes beyond those that the program uses; 0: none, or unknown.
func (r *Result) BytesBeyondProgram() uint64 {
	a := &r.Answer
	if r.Alternative != "none" {
		return 0
	}
	return a.Present.Bytes - min(a.Present.Bytes, a.Alternative.Bytes)
}

func (r *Result) blocksText() string { return units.Count(uint64(r.Answer.Blocks), "block") }

// ChangeText writes the difference with its interval: "37 ± 3 % less", or "8 % less (1 to 22)" where the interval reaches much
// farther to one side, but not to 0.
func (r *Result) ChangeText() string {
	return ChangeText(r.Answer.Difference, r.Answer.Low, r.Answer.High)
}

// ChangeText writes a difference, as a part of 1, with the ends of its interval.
func ChangeText(difference, low, high float64) string {
	half := max(high-difference, difference-low)
	word := "less"
	if difference > 0 {
		word = "more"
	}
	if (low > 0 || high < 0) && half >= math.Abs(difference) {
		low, high = math.Abs(low), math.Abs(high)
		return fmt.Sprintf("%s %% %s (%s to %s)", formatPercent(math.Abs(difference)), word, formatPercent(min(low, high)), formatPercent(max(low, high)))
	}
	return fmt.Sprintf("%s ± %s %% %s", formatPercent(math.Abs(difference)), formatPercent(half), word)
}

// formatPercent writes a part of 1 with two digits, or whole percents.
func formatPercent(part float64) string {
	switch p := 100 * part; {
	case p < 0.995:
		return fmt.Sprintf("%.2g", p)
	case p < 9.95:
		return fmt.Sprintf("%.1f", p)
	default:
		return fmt.Sprintf("%.0f", p)
	}
}
