package ui

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// When the effect of a change is measured, in ns of snapshot time after it, and the time before it that it is compared with.
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

// effect is what the pool did in a stretch of time.
type effect struct {
	rate   float64 // of hits; NaN: no request
	cached uint64  // at its end
	calls  float64 // of the driver, per second
}

// between returns what happened between two tallies.
func between(a, b tally) effect {
	e := effect{rate: math.NaN(), cached: b.cached}
	if n := add(since(a.hits, b.hits), since(a.misses, b.misses)); n > 0 {
		e.rate = float64(since(a.hits, b.hits)) / float64(n)
	}
	if b.time > a.time {
		e.calls = float64(since(a.calls, b.calls)) / (float64(b.time-a.time) / 1e9)
	}
	return e
}

// change is a change of a limit or of the policy that the program has acknowledged.
type change struct {
	label   string        // "max_waste_ratio 2 → 2.5"
	limit   string        // empty: the policy changed
	value   float64       // of the limit before
	policy  string        // before
	limits  []stats.Limit // of that policy
	start   tally
	effects []effect // before, soon after, later
	undoes  bool     // it is not to be undone itself
	undone  bool
}

// ledger remembers what the user changed, what came of it, and how to take it back.
type ledger struct {
	d       *dashboard
	tallies []tally // of the last seconds
	changes []*change
	undoing map[string]*change // by limit, "" for the policy: what the request on its way takes back; nil: a limit comes back with its policy
	base    map[uint32]tally   // what each tag had counted at the latest change; nil: there was none
	restore []stats.Limit      // limits to set once their policy is in force
	policy  string             // that one
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
		if len(c.effects) == 1 && after >= soonNS || len(c.effects) == 2 && after >= laterNS {
			c.effects = append(c.effects, between(c.start, now))
			if n := &l.d.note; n.text == "" || n.style == goodStyle || n.style == dim { // a warning stays
				l.d.say(goodStyle, c.text()+l.undoHint())
			}
		}
	}
	if l.restore != nil && s.Policy == l.policy {
		l.restoreLimits(s)
	}
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

// add notes a change.
func (l *ledger) add(s *stats.Snapshot, c change) {
	c.start = tallyOf(s)
	_, c.undoes = l.undoing[c.limit]
	delete(l.undoing, c.limit)
	before := c.start
	if len(l.tallies) > 0 {
		before = l.tallies[0]
	}
	c.effects = []effect{between(before, c.start)}
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

// since returns what a tag counted after the latest change, false before there is one, or in a moment before it.
func (l *ledger) since(t *stats.Tag) (hits, misses uint64, known bool) {
	was := l.base[t.ID] // a tag that came later had nothing
	return since(was.hits, t.Hits), since(was.misses, t.Misses), l.base != nil && t.Hits >= was.hits
}

// failed notes that a limit, or the policy for "", did not change. What was to be taken back by that still is.
func (l *ledger) failed(limit string) {
	if c := l.undoing[limit]; c != nil {
		c.undone = false
	}
	delete(l.undoing, limit)
	if limit == "" {
		l.restore = nil
	}
}

// forgetLimits gives up the limits that are on their way: their policy is gone.
func (l *ledger) forgetLimits() {
	maps.DeleteFunc(l.undoing, func(limit string, _ *change) bool { return limit != "" })
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

func (l *ledger) undoHint() string {
	if l.last() == nil {
		return ""
	}
	return "   u undoes"
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

// text is the line of a change: before → 3 s after → 30 s after.
func (c *change) text() string {
	series := func(write func(effect) string) string {
		var parts []string
		for _, e := range c.effects {
			parts = append(parts, write(e))
		}
		return strings.Join(parts, " → ")
	}
	text := "✓ " + c.label + ": "
	if len(c.effects) == 1 {
		text += "measuring; before: "
	}
	return text + "hit " + series(func(e effect) string { return percent(e.rate) }) + " %, cached " +
		series(func(e effect) string { return bytesText(e.cached) }) + ", driver calls " +
		series(func(e effect) string { return strconv.FormatFloat(e.calls, 'f', 1, 64) }) + " /s"
}

// latest returns the line of the latest change while it is new, else "".
func (l *ledger) latest(s *stats.Snapshot) string {
	n := len(l.changes)
	if n == 0 || since(l.changes[n-1].start.time, s.Time) > changeShown {
		return ""
	}
	return l.changes[n-1].text() + l.undoHint()
}

// draw lists the changes, the latest first.
func (l *ledger) draw(r region) {
	if len(l.changes) == 0 || r.h < 2 {
		return
	}
	r.text(1, 0, "changes: before → 3 s after → 30 s after", headStyle)
	for y := range min(r.h-1, len(l.changes)) {
		c := l.changes[len(l.changes)-1-y]
		st := plain
		if c.undone {
			st = dim
		}
		r.textIn(1, y+1, r.w-2, c.text(), st)
	}
}
