package ui

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// The effect of a change is measured at these times after it, in ns of snapshot time, and compared with as long a time before it.
const (
	soonNS      = 3e9
	laterNS     = 30e9
	tallyStepNS = 5e8
	changesMax  = 50
	changeShown = 60e9 // how long the latest change has the message line
)

// tally holds the counts of a run up to a time.
type tally struct{ time, hits, misses, calls, cached uint64 }

func tallyOfSnapshot(s *stats.Snapshot) tally {
	t := &s.Totals
	return tally{s.Time, t.Hits, t.Misses, saturatingSum(t.DriverCreates, t.DriverReleases), t.Cached}
}

// effectBetween returns what happened between two tallies.
func effectBetween(a, b tally) analysis.Effect {
	hits := differenceOrZero(a.hits, b.hits)
	e := analysis.Effect{Hits: hits, Requests: saturatingSum(hits, differenceOrZero(a.misses, b.misses)), Cached: b.cached}
	if b.time > a.time {
		e.Calls = float64(differenceOrZero(a.calls, b.calls)) / (float64(b.time-a.time) / 1e9)
	}
	return e
}

// change is a change of a limit or of the policy that the program has acknowledged.
type change struct {
	label  string            // "max_waste_ratio 2 → 2.5"
	limit  string            // empty: the policy changed
	value  float64           // of the limit before
	policy string            // before
	limits []stats.Limit     // of that policy
	before analysis.Effect   // when it was asked for
	start  tally             // when it was acknowledged
	after  []analysis.Effect // soon, and later
	said   string            // the message that acknowledged it
	undoes bool              // it took another change back, and cannot be taken back itself
	undone bool
}

// toAnalysisChange returns the change as the judge of the run wants it; nil: it is not measured yet, or taken back.
func (c *change) toAnalysisChange() *analysis.Change {
	if len(c.after) == 0 || c.undone || c.undoes {
		return nil
	}
	return &analysis.Change{Label: c.label, Before: c.before, After: c.after[len(c.after)-1]}
}

// ledger remembers what the user changed, what came of it, and how to take it back.
type ledger struct {
	d       *dashboard
	tallies []tally // of the last seconds, the oldest first
	changes []*change
	undoing map[string]*change         // by limit, "" for the policy: the change that a pending request takes back; nil: a limit comes back with its policy
	asked   map[string]analysis.Effect // by limit, "" for the policy: the effect before a request, until its answer comes
	base    map[uint32]tally           // what each tag had counted at the latest change; nil: there was none
	restore []stats.Limit              // limits to set once their policy is in force
	policy  string                     // the policy that gets the limits in restore
}

// measureLatestChange measures the effect of the latest change when it is time.
func (l *ledger) measureLatestChange(s *stats.Snapshot) {
	now := tallyOfSnapshot(s)
	if n := len(l.tallies); n == 0 || differenceOrZero(l.tallies[n-1].time, now.time) >= tallyStepNS {
		l.tallies = append(l.tallies, now)
	}
	for len(l.tallies) > 1 && differenceOrZero(l.tallies[1].time, now.time) >= soonNS {
		l.tallies = l.tallies[1:]
	}
	for _, c := range l.changes {
		after := differenceOrZero(c.start.time, s.Time)
		if len(c.after) == 0 && after >= soonNS || len(c.after) == 1 && after >= laterNS {
			c.after = append(c.after, l.effectOfLastSeconds(now, c.start))
		}
	}
	if n := len(l.changes); n > 0 {
		l.reportEffect(l.changes[n-1])
	}
	if l.restore != nil && s.Policy == l.policy {
		l.restoreLimitsOfPolicy(s)
	}
}

// effectOfLastSeconds returns what happened in the last seconds, but not before a time.
func (l *ledger) effectOfLastSeconds(now, begin tally) analysis.Effect {
	if len(l.tallies) > 0 && l.tallies[0].time > begin.time {
		begin = l.tallies[0]
	}
	return effectBetween(begin, now)
}

// reportEffect gives the latest change to the judge, and replaces the message that acknowledged the change by its effect.
func (l *ledger) reportEffect(c *change) {
	d := l.d
	if d.o.Judge != nil {
		d.o.Judge.SetLatestChange(c.toAnalysisChange())
	}
	if c.toAnalysisChange() != nil && d.note.text == c.said {
		d.note = note{}
	}
}

// rememberFiguresBefore remembers the hit rate and other figures at the time of a request, before the change acts.
func (l *ledger) rememberFiguresBefore(limit string, s *stats.Snapshot) {
	if _, waits := l.asked[limit]; !waits {
		now := tallyOfSnapshot(s)
		l.asked[limit] = l.effectOfLastSeconds(now, tally{})
	}
}

// latestUnmeasuredChange returns the latest change while its effect is not known; nil: the effect is known, or the change is taken
// back.
func (l *ledger) latestUnmeasuredChange() *change {
	if n := len(l.changes); n > 0 && len(l.changes[n-1].after) == 0 && !l.changes[n-1].undone && !l.changes[n-1].undoes {
		return l.changes[n-1]
	}
	return nil
}

// limitValueBefore returns the value of a limit before a series of quick changes; the latest of these began at a value.
func (l *ledger) limitValueBefore(limit string, value float64) float64 {
	if c := l.latestUnmeasuredChange(); c != nil && c.limit == limit && l.undoing[limit] == nil {
		return c.value
	}
	return value
}

// restoreLimitsOfPolicy gives a policy that is back the limits that it had.
func (l *ledger) restoreLimitsOfPolicy(s *stats.Snapshot) {
	for i := range l.restore {
		old := &l.restore[i]
		at := l.d.limits.indexOfLimit(old.Name)
		if at >= 0 && s.Limits[at].Value != old.Value && old.Kind != stats.LimitSizes {
			l.undoing[old.Name] = nil
			l.d.limits.requestLimitValue(at, old.Value)
		}
	}
	l.restore = nil
}

// noteChange notes a change that the program has acknowledged, and says so.
func (l *ledger) noteChange(s *stats.Snapshot, c change, said string) {
	c.start, c.said = tallyOfSnapshot(s), said
	_, c.undoes = l.undoing[c.limit]
	delete(l.undoing, c.limit)
	l.rememberFiguresBefore(c.limit, s) // of an answer whose request this dashboard did not make
	c.before = l.asked[c.limit]
	delete(l.asked, c.limit)
	if last := l.latestUnmeasuredChange(); last != nil && !c.undoes {
		c.before = last.before // what was so between two changes in quick succession is no state to compare with
		if last.limit == c.limit && c.limit != "" {
			l.changes = l.changes[:len(l.changes)-1]
		}
	}
	l.d.sayMessage(goodStyle, said)
	l.base = make(map[uint32]tally, len(s.Tags))
	for i := range s.Tags {
		t := &s.Tags[i]
		l.base[t.ID] = tally{hits: t.Hits, misses: t.Misses}
	}
	if len(l.changes) == changesMax {
		l.changes = slices.Delete(l.changes, 0, 1)
	}
	l.changes = append(l.changes, &c)
	l.d.points.restartJudge(s)
}

// addOthersChanges adds changes of limits between two snapshots that another terminal or the session has made.
func (l *ledger) addOthersChanges(was, s *stats.Snapshot) {
	if was.Policy != s.Policy {
		return
	}
	for i := range min(len(was.Limits), len(s.Limits)) {
		if from, to := &was.Limits[i], &s.Limits[i]; from.Name == to.Name && from.Value != to.Value {
			l.rememberFiguresBefore(to.Name, was)
			label := l.d.limits.changeLabel(to, from.Value)
			l.noteChange(s, change{label: label, limit: to.Name, value: from.Value}, "✓ "+label)
		}
	}
}

// hitsSinceChange returns what a tag counted after the latest change, false before there is one, or in a moment before it.
func (l *ledger) hitsSinceChange(t *stats.Tag) (hits, misses uint64, known bool) {
	was := l.base[t.ID] // a tag that came later had nothing
	return differenceOrZero(was.hits, t.Hits), differenceOrZero(was.misses, t.Misses), l.base != nil && t.Hits >= was.hits
}

// noteRequestFailed notes that a request for a limit, or for the policy (""), changed nothing. The change that it should have taken
// back can be taken back again.
func (l *ledger) noteRequestFailed(limit string) {
	if c := l.undoing[limit]; c != nil {
		c.undone = false
	}
	delete(l.undoing, limit)
	delete(l.asked, limit)
	if limit == "" {
		l.restore = nil
	}
}

// forgetLimitRequests gives up requests for limits of a policy that is no longer in force.
func (l *ledger) forgetLimitRequests() {
	maps.DeleteFunc(l.undoing, func(limit string, _ *change) bool { return limit != "" })
	maps.DeleteFunc(l.asked, func(limit string, _ analysis.Effect) bool { return limit != "" })
}

// latestUndoableChange returns the latest change that can be taken back, nil if there is none.
func (l *ledger) latestUndoableChange() *change {
	for i := len(l.changes) - 1; i >= 0; i-- {
		if c := l.changes[i]; !c.undoes && !c.undone {
			return c
		}
	}
	return nil
}

// undoLatestChange takes the latest change back.
func (l *ledger) undoLatestChange() {
	d, c := l.d, l.latestUndoableChange()
	switch {
	case c == nil:
		d.sayMessage(dim, "nothing to undo")
	case d.hasProgramEnded():
		d.sayMessage(warnStyle, "the program has ended: nothing can change any more")
	case c.limit != "":
		at := d.limits.indexOfLimit(c.limit)
		if at < 0 {
			d.sayMessage(warnStyle, "policy "+d.live.Policy+" has no "+c.limit)
			return
		}
		c.undone = true
		l.undoing[c.limit] = c
		d.limits.requestLimitValue(at, c.value)
	case d.policies.requestPolicy(d.o.SetPolicy, c.policy, c.policy):
		c.undone = true
		l.undoing[""] = c
		l.restore, l.policy = c.limits, c.policy
	}
}

// whens name the times at which an effect is measured.
var whens = [...]string{"before", "3 s after", "30 s after"}

// beforeAndAfterText write the figures before a change and after it: served has hit rates, cost memory and driver calls. all: at
// every time that was measured; else before, and at the last one.
func (c *change) beforeAndAfterText(all bool) (served, cost string) {
	var hits, cached, calls []string
	for i, e := range append([]analysis.Effect{c.before}, c.after...) {
		if !all && 0 < i && i < len(c.after) {
			continue
		}
		rate := none
		if e.Requests > 0 {
			rate = formatPercent(e.HitRate()) + " %"
		}
		hits = append(hits, rate+" "+whens[i])
		cached = append(cached, bytesText(e.Cached))
		calls = append(calls, strconv.FormatFloat(e.Calls, 'f', 1, 64))
	}
	if len(c.after) == 0 {
		hits = append(hits, "measuring")
	}
	return "hit " + strings.Join(hits, ", "), "cached " + strings.Join(cached, " → ") + "; driver calls " + strings.Join(calls, " → ") + " /s"
}

// signOfOutcome is a sign for what came of a change: amber where less is served since, dim where too few requests show it.
func (c *change) signOfOutcome() (string, style) {
	switch now := c.toAnalysisChange(); {
	case c.undone:
		return "✓ ", dim
	case now != nil && now.IsWorse():
		return "! ", warnStyle
	case now != nil && !now.IsKnown():
		return "· ", dim
	}
	return "✓ ", plain
}

// latestChangeLine returns the line of the latest change while it is new, unless it is taken back.
func (l *ledger) latestChangeLine(s *stats.Snapshot) (string, style) {
	if len(l.changes) == 0 {
		return "", plain
	}
	c := l.changes[len(l.changes)-1]
	if c.undone || c.undoes || differenceOrZero(c.start.time, s.Time) > changeShown {
		return "", plain
	}
	sign, st := c.signOfOutcome()
	served, cost := c.beforeAndAfterText(false)
	return sign + c.label + ": " + served + " (u undoes); " + cost, st
}

// drawChanges lists the changes, the latest first.
func (l *ledger) drawChanges(r region) {
	if len(l.changes) == 0 || r.h < 2 {
		return
	}
	r.writeText(1, 0, "changes", headStyle)
	for i, y := len(l.changes)-1, 1; i >= 0 && y < r.h; i, y = i-1, y+2 {
		c := l.changes[i]
		sign, st := c.signOfOutcome()
		served, cost := c.beforeAndAfterText(true)
		r.writeTextInColumns(1, y, r.w-2, sign+c.label+": "+served, st)
		if y+1 < r.h {
			r.writeTextInColumns(3, y+1, r.w-4, cost, dim)
		}
	}
}
