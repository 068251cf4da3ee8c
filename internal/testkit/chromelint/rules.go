package chromelint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

type thread struct{ pid, tid uint64 }

// span is a slice, in ns.
type span struct {
	start, end uint64
	line       int
}

// cookie identifies the lifetime that events belong to.
type cookie struct {
	pid      uint64
	category string
	id       string
}

type lifetime struct {
	name    string
	started uint64
	granted uint64
	line    int
	open    bool
}

type counter struct {
	pid  uint64
	name string
}

// parseMicroseconds reads microseconds with at most three decimals.
func parseMicroseconds(n json.Number) (uint64, error) {
	whole, part, _ := strings.Cut(string(n), ".")
	switch {
	case n == "":
		return 0, errors.New("is missing")
	case strings.HasPrefix(whole, "-"):
		return 0, fmt.Errorf("%s is negative", n)
	case len(part) > 3:
		return 0, fmt.Errorf("%s is finer than a nanosecond", n)
	}
	ns, err := strconv.ParseUint(whole+(part + "000")[:3], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no time in microseconds", n)
	}
	return ns, nil
}

func (l *linter) checkSlice(e *event, ns uint64) {
	length, err := parseMicroseconds(e.Duration)
	if err != nil {
		l.addProblem("dur: %v", err)
		return
	}
	if ns+length < ns {
		l.addProblem("dur: %s ends after all time", e.Duration)
		return
	}
	at := thread{*e.PID, *e.TID}
	l.spans[at] = append(l.spans[at], span{ns, ns + length, l.line})
	if !strings.HasPrefix(e.Name, "create ") {
		return
	}
	var outcome string
	if json.Unmarshal(e.Args["outcome"], &outcome) != nil {
		l.addProblem("create without args.outcome")
	}
	switch outcome {
	case "failed":
		l.facts.Failed++
		return
	case "hit":
		l.facts.Hits++
	case "miss":
		l.facts.Misses++
	}
	l.facts.Creates++
}

// lifetimeOf returns the lifetime of an async event; false if the event does not identify one.
func (l *linter) lifetimeOf(e *event) (cookie, bool) {
	c, id := cookie{pid: *e.PID, category: e.Category}, e.ID2["local"]
	if e.ID2 == nil { // an id of the whole trace
		c.pid, id = 0, e.ID
	}
	if json.Unmarshal(id, &c.id) != nil || len(e.ID2) > 1 || e.Category == "" {
		l.addProblem("async event: want a category, and an id or id2 with a string local alone")
		return cookie{}, false
	}
	if _, err := strconv.ParseUint(strings.TrimPrefix(c.id, "0x"), 16, 64); err != nil || !strings.HasPrefix(c.id, "0x") {
		l.addProblem("id %q: want a number in base 16", c.id)
		return cookie{}, false
	}
	return c, true
}

// checkLifetimeBegin checks b. An id is used once: a track keeps the name of the first event that had its id.
func (l *linter) checkLifetimeBegin(e *event, ns uint64) {
	c, ok := l.lifetimeOf(e)
	if !ok {
		return
	}
	if before := l.lifetimes[c]; before != nil {
		l.addProblem("%s %s was used before, in line %d", c.category, c.id, before.line)
	}
	t := &lifetime{name: e.Name, started: ns, line: l.line, open: true}
	l.lifetimes[c] = t
	if c.category == "cache" || c.category == "device" {
		return
	}
	if json.Unmarshal(e.Args["granted"], &t.granted) != nil {
		l.addProblem("lifetime without args.granted")
	}
	if c.category == "buf" {
		l.facts.Lifetimes++
		l.inUse += t.granted
		l.facts.PeakInUse = max(l.facts.PeakInUse, l.inUse)
	}
}

func (l *linter) checkLifetimeEnd(e *event, ns uint64) {
	c, ok := l.lifetimeOf(e)
	if !ok {
		return
	}
	t := l.lifetimes[c]
	if t == nil || !t.open {
		l.addProblem("%s %s ends, but is not open", c.category, c.id)
		return
	}
	t.open = false
	if t.name != e.Name {
		l.addProblem("%s %s ends as %q, but began as %q in line %d", c.category, c.id, e.Name, t.name, t.line)
	}
	if ns < t.started {
		l.addProblem("%s %s ends before it begins, in line %d", c.category, c.id, t.line)
	}
	owned := uint64(0)
	if c.category == "buf" {
		owned = t.granted
	}
	l.inUse -= owned
	var leaked bool
	if raw, said := e.Args["leaked"]; said && json.Unmarshal(raw, &leaked) != nil {
		l.addProblem("args.leaked is no boolean")
	}
	if leaked {
		l.facts.Leaks++
		l.facts.LeakedBytes += owned
	}
}

func (l *linter) checkCounter(e *event) {
	if len(e.Args) == 0 {
		l.addProblem("counter without a value")
	}
	for key, raw := range e.Args {
		var value *float64
		if json.Unmarshal(raw, &value) != nil || value == nil {
			l.addProblem("counter %s %s: %s is no number", e.Name, key, raw)
			continue
		}
		l.last[counter{*e.PID, e.Name + " " + key}] = *value
	}
}

// checkNesting checks that of two slices of a thread that overlap, one contains the other.
func (l *linter) checkNesting() {
	threads := slices.SortedFunc(maps.Keys(l.spans), func(a, b thread) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.tid, b.tid))
	})
	for _, at := range threads {
		spans := l.spans[at]
		slices.SortStableFunc(spans, func(a, b span) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
		})
		var open []span
		for _, s := range spans {
			for len(open) > 0 && open[len(open)-1].end <= s.start {
				open = open[:len(open)-1]
			}
			if n := len(open); n > 0 && s.end > open[n-1].end {
				l.line = s.line
				l.addProblem("slice overlaps the one in line %d, thread %d", open[n-1].line, at.tid)
			}
			open = append(open, s)
		}
	}
	l.line = 0
}

// checkFlow checks an arrow: it begins before it ends, and only once.
func (l *linter) checkFlow(e *event) {
	if e.BindID == "" {
		if e.FlowIn || e.FlowOut {
			l.addProblem("flow without bind_id")
		}
		return
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(e.BindID, "0x"), 16, 64)
	_, begun := l.flows[id]
	switch {
	case err != nil || !strings.HasPrefix(e.BindID, "0x"):
		l.addProblem("bind_id %q: want a number in base 16", e.BindID)
	case e.Phase != "X" && e.Phase != "b":
		l.addProblem("flow on phase %s: only X and b have a slice to bind to", e.Phase)
	case !e.FlowIn && !e.FlowOut:
		l.addProblem("bind_id without flow_in or flow_out")
	case e.FlowIn && !begun:
		l.addProblem("flow %s ends, but has not begun", e.BindID)
	case !e.FlowIn && begun:
		l.addProblem("flow %s begins again", e.BindID)
	}
	l.flows[id] = struct{}{}
}

// checkOpenLifetimes checks that every lifetime ends, unless the trace was cut off.
func (l *linter) checkOpenLifetimes() {
	if !l.closed {
		return
	}
	var lines []int
	for _, t := range l.lifetimes {
		if t.open {
			lines = append(lines, t.line)
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		l.line = line
		l.addProblem("lifetime without an end")
	}
	l.line = 0
}
