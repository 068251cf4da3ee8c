package ui

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// When the effect of a change is measured, in ns of snapshot time after it. Each figure is of as long a time as there was before it.
const (
	soonNS      = 3e9
	laterNS     = 30e9
	tallyStepNS = 5e8
	changesMax  = 50
	changeShown = 60e9 // how long the latest change has the message line
)

// tally is what counted up to a time.
type tally struct{ time, hits, misses, calls, cached uint64 }

func tallyOf(s *stats.Snapshot) tally {
	t := &s.Totals
	return tally{s.Time, t.Hits, t.Misses, add(t.DriverCreates, t.DriverReleases), t.Cached}
}

// effectBetween returns what happened between two tallies.
func effectBetween(a, b tally) analysis.Effect {
	hits := since(a.hits, b.hits)
	e := analysis.Effect{Hits: hits, Requests: add(hits, since(a.misses, b.misses)), Cached: b.cached}
	if b.time > a.time {
		e.Calls = float64(since(a.calls, b.calls)) / (float64(b.time-a.time) / 1e9)
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
	undoes bool              // it is not to be undone itself
	undone bool
}

// judged is the change for the judge of the run; nil: it is not measured yet, or taken back.
func (c *change) judged() *analysis.Change {
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
	undoing map[string]*change         // by limit, "" for the policy: what the request on its way takes back; nil: a limit comes back with its policy
	asked   map[string]analysis.Effect // by limit, "" for the policy: what was so before, until the answer comes
	base    map[uint32]tally           // what each tag had counted at the latest change; nil: there was none
	restore []stats.Limit              // limits to set once their policy is in force
	policy  string                     // that one
}

// update measures.
func (l *ledger) update(s *stats.Snapshot) {
	now := tallyOf(s)
	if n := len(l.tallies); n == 0 || since(l.tallies[n-1].time, now.time) >= tallyStepNS {
		l.tallies = append(l.tallies, now)
	}
	for len(l.tallies) > 1 && since(l.tallies[1].time, now.time) >= soonNS {
		l.tallies = l.tallies[1:]
	}
	for _, c := range l.changes {
		after := since(c.start.time, s.Time)
		if len(c.after) == 0 && after >= soonNS || len(c.after) == 1 && after >= laterNS {
			c.after = append(c.after, l.effectLately(now, c.start))
		}
	}
	if n := len(l.changes); n > 0 {
		l.report(l.changes[n-1])
	}
	if l.restore != nil && s.Policy == l.policy {
		l.restoreLimits(s)
	}
}

// effectLately returns what happened in the last seconds, but not before a time.
func (l *ledger) effectLately(now, begin tally) analysis.Effect {
	if len(l.tallies) > 0 && l.tallies[0].time > begin.time {
		begin = l.tallies[0]
	}
	return effectBetween(begin, now)
}

// report gives the judge the latest change, and what came of it the place of the message that acknowledged it.
func (l *ledger) report(c *change) {
	d := l.d
	if d.o.Judge != nil {
		d.o.Judge.Changed(c.judged())
	}
	if c.judged() != nil && d.note.text == c.said {
		d.note = note{}
	}
}

// noteBefore notes what is so before a change that is asked for.
func (l *ledger) noteBefore(limit string, s *stats.Snapshot) {
	if _, waits := l.asked[limit]; !waits {
		now := tallyOf(s)
		l.asked[limit] = l.effectLately(now, tally{})
	}
}

// unmeasured returns the latest change if nothing is known yet of what came of it; nil: it is known, or the change is taken back.
func (l *ledger) unmeasured() *change {
	if n := len(l.changes); n > 0 && len(l.changes[n-1].after) == 0 && !l.changes[n-1].undone && !l.changes[n-1].undoes {
		return l.changes[n-1]
	}
	return nil
}

// began returns what a limit was before a series of quick changes, the latest from a value.
func (l *ledger) began(limit string, value float64) float64 {
	if c := l.unmeasured(); c != nil && c.limit == limit && l.undoing[limit] == nil {
		return c.value
	}
	return value
}

// restoreLimits gives a policy that is back the limits that it had.
func (l *ledger) restoreLimits(s *stats.Snapshot) {
	for i := range l.restore {
		old := &l.restore[i]
		at := l.d.limits.find(old.Name)
		if at >= 0 && s.Limits[at].Value != old.Value && old.Kind != stats.LimitSizes {
			l.undoing[old.Name] = nil
			l.d.limits.request(at, old.Value)
		}
	}
	l.restore = nil
}

// noteChange notes a change that the program has acknowledged, and says so.
func (l *ledger) noteChange(s *stats.Snapshot, c change, said string) {
	c.start, c.said = tallyOf(s), said
	_, c.undoes = l.undoing[c.limit]
	delete(l.undoing, c.limit)
	l.noteBefore(c.limit, s) // of an answer whose request this dashboard did not make
	c.before = l.asked[c.limit]
	delete(l.asked, c.limit)
	if last := l.unmeasured(); last != nil && !c.undoes {
		c.before = last.before // what was so between two changes in quick succession is no state to compare with
		if last.limit == c.limit && c.limit != "" {
			l.changes = l.changes[:len(l.changes)-1]
		}
	}
	l.d.say(goodStyle, said)
	l.base = make(map[uint32]tally, len(s.Tags))
	for i := range s.Tags {
		t := &s.Tags[i]
		l.base[t.ID] = tally{hits: t.Hits, misses: t.Misses}
	}
	if len(l.changes) == changesMax {
		l.changes = slices.Delete(l.changes, 0, 1)
	}
	l.changes = append(l.changes, &c)
	l.d.points.restart(s)
}

// notice adds the changes of limits from one snapshot to the next, of a run that others steered.
func (l *ledger) notice(was, s *stats.Snapshot) {
	if was.Policy != s.Policy {
		return
	}
	for i := range min(len(was.Limits), len(s.Limits)) {
		if from, to := &was.Limits[i], &s.Limits[i]; from.Name == to.Name && from.Value != to.Value {
			l.noteBefore(to.Name, was)
			label := l.d.limits.changeLabel(to, from.Value)
			l.noteChange(s, change{label: label, limit: to.Name, value: from.Value}, "✓ "+label)
		}
	}
}

// hitsSinceChange returns what a tag counted after the latest change, false before there is one, or in a moment before it.
func (l *ledger) hitsSinceChange(t *stats.Tag) (hits, misses uint64, known bool) {
	was := l.base[t.ID] // a tag that came later had nothing
	return since(was.hits, t.Hits), since(was.misses, t.Misses), l.base != nil && t.Hits >= was.hits
}

// failed notes that a limit, or the policy for "", did not change. What was to be taken back by that still is.
func (l *ledger) failed(limit string) {
	if c := l.undoing[limit]; c != nil {
		c.undone = false
	}
	delete(l.undoing, limit)
	delete(l.asked, limit)
	if limit == "" {
		l.restore = nil
	}
}

// forgetLimits gives up the limits that are on their way: their policy is gone.
func (l *ledger) forgetLimits() {
	maps.DeleteFunc(l.undoing, func(limit string, _ *change) bool { return limit != "" })
	maps.DeleteFunc(l.asked, func(limit string, _ analysis.Effect) bool { return limit != "" })
}

// last returns the latest change that can be taken back, nil if there is none.
func (l *ledger) last() *change {
	for i := len(l.changes) - 1; i >= 0; i-- {
		if c := l.changes[i]; !c.undoes && !c.undone {
			return c
		}
	}
	return nil
}

// undo takes the latest change back.
func (l *ledger) undo() {
	d, c := l.d, l.last()
	switch {
	case c == nil:
		d.say(dim, "nothing to undo")
	case d.ended():
		d.say(warnStyle, "the program has ended: nothing can change any more")
	case c.limit != "":
		at := d.limits.find(c.limit)
		if at < 0 {
			d.say(warnStyle, "policy "+d.live.Policy+" has no "+c.limit)
			return
		}
		c.undone = true
		l.undoing[c.limit] = c
		d.limits.request(at, c.value)
	case d.policies.request(d.o.SetPolicy, c.policy, c.policy):
		c.undone = true
		l.undoing[""] = c
		l.restore, l.policy = c.limits, c.policy
	}
}

// whens are the times of the values that a change has.
var whens = [...]string{"before", "3 s after", "30 s after"}

// texts say what was so before a change and, each with its time, what is so since: of requests, and of memory and driver. all: at
// every time that was measured; else before and at the last one.
func (c *change) texts(all bool) (served, cost string) {
	var hits, cached, calls []string
	for i, e := range append([]analysis.Effect{c.before}, c.after...) {
		if !all && 0 < i && i < len(c.after) {
			continue
		}
		rate := none
		if e.Requests > 0 {
			rate = percent(e.HitRate()) + " %"
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

// mark is a sign for what came of a change: amber where less is served since.
func (c *change) mark() (string, style) {
	switch now := c.judged(); {
	case c.undone:
		return "✓ ", dim
	case now != nil && now.Worse():
		return "! ", warnStyle
	}
	return "✓ ", plain
}

// latest returns the line of the latest change while it is new, unless it is taken back.
func (l *ledger) latest(s *stats.Snapshot) (string, style) {
	if len(l.changes) == 0 {
		return "", plain
	}
	c := l.changes[len(l.changes)-1]
	if c.undone || c.undoes || since(c.start.time, s.Time) > changeShown {
		return "", plain
	}
	sign, st := c.mark()
	served, cost := c.texts(false)
	return sign + c.label + ": " + served + " (u undoes); " + cost, st
}

// draw lists the changes, the latest first.
func (l *ledger) draw(r region) {
	if len(l.changes) == 0 || r.h < 2 {
		return
	}
	r.text(1, 0, "changes", headStyle)
	for i, y := len(l.changes)-1, 1; i >= 0 && y < r.h; i, y = i-1, y+2 {
		c := l.changes[i]
		sign, st := c.mark()
		served, cost := c.texts(true)
		r.textIn(1, y, r.w-2, sign+c.label+": "+served, st)
		if y+1 < r.h {
			r.textIn(3, y+1, r.w-4, cost, dim)
		}
	}
}
