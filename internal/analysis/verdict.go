package analysis

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// Verdict is what the list of a run comes to.
type Verdict uint8

// The verdicts.
const (
	Watching   Verdict = iota // nothing was found, nor judged for long enough
	Fine                      // nothing was found in what was judged, or only notes on contents
	Improvable                // the list has advice: the run could be better
	Wrong                     // it has a problem
)

const judgedNS = 10_000_000_000 // a run is not called fine before it was judged for so long, or has ended

// Verdict sums up the points of the last update, and says what was judged where there are none. Notes alone leave it open: what would
// refute them may be lost.
func (l *Live) Verdict() (v Verdict, judged string) {
	has := func(s Severity) bool {
		return slices.ContainsFunc(l.Points, func(d Diagnosis) bool { return d.Severity == s })
	}
	switch {
	case has(Problem):
		v = Wrong
	case has(Advice):
		v = Improvable
	case l.hasJudgedLongEnough() && !slices.ContainsFunc(l.Points, func(d Diagnosis) bool { return d.About != AboutContents }):
		v = Fine
	}
	return v, l.judgedSentence()
}

// hasJudgedLongEnough reports whether there was something to judge, for long enough. A run that ended is judged by all that it did.
func (l *Live) hasJudgedLongEnough() bool {
	s := l.latest
	switch {
	case s == nil || s.Totals.Creates == 0:
		return false
	case allEnded(s):
		return true
	}
	return l.judgedNS() >= judgedNS
}

// judgedNS returns for how many ns there was something to judge, since the latest change.
func (l *Live) judgedNS() uint64 {
	switch s := l.latest; {
	case l.Still: // a moment of a recording, which knows what was before
		return differenceOrZero(s.Started, s.Time)
	case l.begun > 0:
		return differenceOrZero(l.begun, s.Time)
	}
	return 0
}

// judgedSentence says what was judged, and what was not, where nothing was found.
func (l *Live) judgedSentence() string {
	switch s := l.latest; {
	case s == nil || s.Totals.Creates == 0:
		return "no allocation to judge"
	case !l.hasJudgedLongEnough():
		return fmt.Sprintf("watching… (judged in %d s)", (judgedNS-l.judgedNS()+999_999_999)/1_000_000_000)
	case allEnded(s):
		return "fine: no mistake, all memory released; " + comparedPoliciesText(s, "was", "")
	case l.Still:
		return "fine up to this time: no mistake, no growth; other policies: gpumemtop tune"
	default:
		return "fine: no mistake, no growth of late; " + comparedPoliciesText(s, "is", "serves")
	}
}

// comparedPoliciesText says what the policy was compared with: in time and hits or, where it has not been in force all the time, in hits of late.
func comparedPoliciesText(s *stats.Snapshot, is, serves string) string {
	g := s.Ghosts
	best, present := leadingGhost(g), g.PresentGhost()
	_, _, known := g.LeaderSaving()
	switch {
	case s.Policy == "none":
		return "there is no pool to judge"
	case known:
		return "no simulated policy " + is + " clearly better"
	case serves != "" && best != nil && present != nil && min(best.RecentRequests, present.RecentRequests) >= requestsLeast:
		return "no simulated policy " + serves + " clearly more"
	}
	return "other policies are not compared"
}
