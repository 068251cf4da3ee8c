// Package chromelint checks Chrome trace JSON against the rules by which Perfetto's importer reads it
// (src/trace_processor/importers/json), and recomputes the figures of a run from the trace alone. Tests use it on
// everything that gpumemtop exports.
package chromelint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Problem is one rule that a trace breaks.
type Problem struct {
	Line int // from 1; 0: the trace as a whole
	Text string
}

// String returns the problem as a line for people.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Text)
}

// Facts are figures of a run, computed from its trace.
type Facts struct {
	Events      int
	Creates     int // slices of creates that succeeded
	Failed      int // slices of creates that failed
	Hits        int
	Misses      int
	Lifetimes   int    // of objects with memory of their own
	PeakInUse   uint64 // bytes, computed from these
	Leaks       int    // lifetimes marked as leaked, with or without memory of their own
	LeakedBytes uint64
	// Last are the last values of the counters, summed over processes, by "name key": "mem in_use".
	Last map[string]float64
}

// Bounds on what Lint reads and reports.
const (
	lineMax     = 1 << 20
	problemsMax = 100
)

// LintTrace reads a trace in the array form with one event per line. A missing end is no problem, and
// neither are lifetimes that are open there, because a trace that was cut off after an event can be opened.
func LintTrace(r io.Reader) (Facts, []Problem) {
	l := newLinter()
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), lineMax)
	for in.Scan() {
		l.line++
		l.lintLine(in.Bytes())
	}
	if err := in.Err(); err != nil {
		l.addProblem("read: %v", err)
	}
	l.checkWholeTrace()
	return l.facts, l.problems
}

// linter is the state from line to line.
type linter struct {
	line     int
	opened   bool // "[" was seen
	closed   bool // "]" was seen
	comma    bool // the last event ended in a comma
	facts    Facts
	problems []Problem
	more     int // problems beyond problemsMax

	spans     map[thread][]span
	lifetimes map[cookie]*lifetime
	flows     map[uint64]struct{}
	inUse     uint64
	last      map[counter]float64
}

func newLinter() *linter {
	return &linter{
		facts: Facts{Last: map[string]float64{}}, spans: map[thread][]span{}, lifetimes: map[cookie]*lifetime{},
		flows: map[uint64]struct{}{}, last: map[counter]float64{},
	}
}

func (l *linter) addProblem(format string, args ...any) {
	if len(l.problems) == problemsMax {
		l.more++
		return
	}
	l.problems = append(l.problems, Problem{Line: l.line, Text: fmt.Sprintf(format, args...)})
}

// lintLine takes one line.
func (l *linter) lintLine(b []byte) {
	if i := bytes.IndexFunc(b, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
		l.addProblem("control character %#x", b[i])
	}
	switch {
	case l.closed:
		l.addProblem("something behind the closing bracket")
	case !l.opened:
		if l.opened = true; string(b) != "[" {
			l.addProblem("does not begin with [ on a line of its own")
		}
	case string(b) == "]":
		l.closed = true
	default:
		if l.facts.Events > 0 && !l.comma {
			l.addProblem("no comma behind the event before")
		}
		b, l.comma = bytes.CutSuffix(b, []byte(","))
		l.lintEvent(b)
	}
}

// event is one event as written. It has fields that rules forbid, too, so that they are found.
type event struct {
	Phase    string                     `json:"ph"`
	Name     string                     `json:"name"`
	Category string                     `json:"cat"`
	Scope    string                     `json:"s"`
	Time     json.Number                `json:"ts"`
	Duration json.Number                `json:"dur"`
	PID      *uint64                    `json:"pid"`
	TID      *uint64                    `json:"tid"`
	ID       json.RawMessage            `json:"id"`
	ID2      map[string]json.RawMessage `json:"id2"`
	Args     map[string]json.RawMessage `json:"args"`
	BindID   string                     `json:"bind_id"`
	FlowIn   bool                       `json:"flow_in"`
	FlowOut  bool                       `json:"flow_out"`
	Stack    json.RawMessage            `json:"stack"`
	Frame    json.RawMessage            `json:"sf"`
}

// phases are those that gpumemtop writes. The importer ignores or misreads most others.
const phases = "M X b e C i"

func (l *linter) lintEvent(b []byte) {
	l.facts.Events++
	var e event
	if err := json.Unmarshal(b, &e); err != nil || len(b) == 0 || b[0] != '{' {
		l.addProblem("no event: %v", err)
		return
	}
	switch {
	case len(e.Phase) != 1 || !strings.Contains(phases, e.Phase):
		l.addProblem("phase %q: want one of %s", e.Phase, phases)
		return
	case e.PID == nil || e.TID == nil:
		l.addProblem("no pid or no tid")
		return
	case e.Name == "":
		l.addProblem("no name")
	}
	if e.Stack != nil || e.Frame != nil {
		l.addProblem("sf and stack are ignored: put frames into args")
	}
	if e.ID != nil && (e.ID2 != nil || !strings.Contains("be", e.Phase)) {
		l.addProblem("a plain id is for lifetimes alone: it changes a counter's title")
	}
	if e.Phase == "M" {
		l.checkMetadata(&e)
		return
	}
	ns, err := parseMicroseconds(e.Time)
	if err != nil {
		l.addProblem("ts: %v", err)
		return
	}
	l.checkFlow(&e)
	l.lintTimedEvent(&e, ns)
}

func (l *linter) lintTimedEvent(e *event, ns uint64) {
	switch e.Phase {
	case "X":
		l.checkSlice(e, ns)
	case "b":
		l.checkLifetimeBegin(e, ns)
	case "e":
		l.checkLifetimeEnd(e, ns)
	case "C":
		l.checkCounter(e)
	case "i":
		if e.Scope != "g" && e.Scope != "p" && e.Scope != "t" {
			l.addProblem("instant with scope %q: want g, p or t", e.Scope)
		}
	}
}

// checkMetadata checks an M event; the importer knows these and ignores the rest.
func (l *linter) checkMetadata(e *event) {
	if e.Time != "" {
		l.addProblem("metadata with ts")
	}
	switch e.Name {
	case "process_name", "thread_name":
		var name string
		if json.Unmarshal(e.Args["name"], &name) != nil || name == "" {
			l.addProblem("%s without args.name", e.Name)
		}
	case "process_sort_index", "thread_sort_index":
		var index float64
		if json.Unmarshal(e.Args["sort_index"], &index) != nil {
			l.addProblem("%s without args.sort_index", e.Name)
		}
	default:
		l.addProblem("metadata %q is ignored", e.Name)
	}
}

// checkWholeTrace checks the rules that need the whole trace.
func (l *linter) checkWholeTrace() {
	l.line = 0
	if l.facts.Events == 0 {
		l.addProblem("no events: an empty array is not taken for a trace")
	}
	l.checkNesting()
	l.checkOpenLifetimes()
	for c, value := range l.last {
		l.facts.Last[c.name] += value
	}
	if l.more > 0 {
		l.problems = append(l.problems, Problem{Text: fmt.Sprintf("%d more problems", l.more)})
	}
}
