// Package figures is the table of what gpumemtop counts: each figure of a run, a process, a call site or a share of the memory,
// with all its names, its unit, its meaning and how it is read. Summaries, reports, rules, comparisons, metrics, lakes, the
// dashboard and docs/METRICS.md take figures from here, so that a figure is described once. It reads no clock.
package figures

import (
	"cmp"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// Figure is one row of the table. An output whose name is empty does not have the figure.
type Figure struct {
	Name     string // in tables and comparisons, and of what the dashboard shows: "peak reserved"
	Column   string // in tables with little room; empty: Name
	Meaning  string // one sentence, without its first capital and its full stop
	Unit     Unit
	Better   Direction
	Together Together
	Estimate bool   // it is computed from other figures by a model
	Unknown  string // why it is, where no value is known
	Pool     bool   // it has no meaning without a pool
	Whole    bool   // only runs have it, not processes

	Key      string // in JSON
	Scopes   Scopes // whose JSON objects have it
	Rule     string // in rules for gpumemtop check
	Metric   string // in Prometheus, without "gpumemtop_"; counters end in _total
	By       string // label of the metric that splits the figure
	Lake     string // column of a lake's runs
	Diff     Test   // how two runs are compared; NoTest: they are not
	SiteDiff Test   // how call sites of two runs are compared, where it is not Diff

	get   func(*Subject) Value
	parts func(s *Subject, take func(part string, n uint64))
	site  func(*Subject, *stats.Tag) Value // of one call site of a run
	share func(*stats.Share) Value
}

// Unit is what a figure counts.
type Unit uint8

// The units.
const (
	Bytes   Unit = iota
	Count        // a number of things
	Rate         // 0 to 1
	Nanos        // nanoseconds
	Seconds      // nanoseconds that JSON has in seconds
)

// String names the unit.
func (u Unit) String() string { return [...]string{"bytes", "count", "rate", "ns", "ns"}[u] }

// Direction says which values of a figure are better.
type Direction uint8

// The directions.
const (
	Neither Direction = iota
	Less
	More
)

// String describes the direction.
func (d Direction) String() string { return [...]string{"", "less", "more"}[d] }

// Together is how the figures of several processes become that of a run.
type Together uint8

// The ways.
const (
	Sum    Together = iota
	Peak            // the largest sum at one time
	Most            // the largest of the processes' values
	Worked          // computed from the run's other figures
)

// String describes the way.
func (t Together) String() string {
	return [...]string{"sum", "peak of the sum", "largest", "computed"}[t]
}

// Test is how the figures of two runs are compared.
type Test uint8

// The tests. Package diff has their thresholds.
const (
	NoTest      Test = iota
	Amount           // of memory, with one value in each run
	Duration         // that was measured once in each run
	Proportion       // a rate of requests
	Events           // a count: exact where both runs did the same work
	TimedEvents      // a count that also depends on when commands complete
	Median           // of the durations of many calls
)

// String names what is compared.
func (t Test) String() string {
	return [...]string{"", "amount", "duration", "rate", "count", "count", "median"}[t]
}

// Scopes says whose figures a JSON object has.
type Scopes uint8

// The scopes.
const (
	InRun Scopes = 1 << iota
	InProcess
	InSite
	InShare
	InAll = InRun | InProcess | InSite | InShare
)

// Subject is a run or one of its processes, which has figures.
type Subject struct {
	*stats.Totals
	Began, Ended uint64 // ns; Ended is now while it goes on

	*analysis.Evidence // of a run; nil of a process
}

// SubjectOfSnapshot returns a run that is known by a snapshot.
func SubjectOfSnapshot(s *stats.Snapshot) *Subject { return subjectOf(analysis.EvidenceOfSnapshot(s)) }

// SubjectOfRecording returns a run that is known by its recording.
func SubjectOfRecording(a *analysis.Analysis) *Subject { return subjectOf(a.Evidence()) }

func subjectOf(e *analysis.Evidence) *Subject {
	return &Subject{Totals: &e.Run.Totals, Began: e.Run.Started, Ended: e.Run.EndTime(), Evidence: e}
}

// SubjectOfProcess returns a process of a snapshot that was made at a time.
func SubjectOfProcess(p *stats.Process, now uint64) *Subject {
	ended := p.Ended
	if ended == 0 {
		ended = now
	}
	return &Subject{Totals: &p.Totals, Began: p.Started, Ended: ended}
}

// Value is what a figure is for a subject.
type Value struct {
	Number float64          // in the figure's unit
	Exact  uint64           // the same for bytes, counts and times that are no medians
	Of     uint64           // how many a rate or median is of
	Times  *stats.Histogram // those that a median is of
	Why    string           // it is unknown, if there is a reason
}

// IsKnown reports whether there is a value.
func (v Value) IsKnown() bool { return v.Why == "" }

func countValue(n uint64) Value { return Value{Number: float64(n), Exact: n} }

func rateValue(rate float64, of uint64) Value { return Value{Number: rate, Of: of} }

func unknownValue(why string) Value { return Value{Why: why} }

// ColumnTitle returns the name for a table with little room.
func (f *Figure) ColumnTitle() string { return cmp.Or(f.Column, f.Name) }

// MeaningSentence returns the meaning as a sentence, which says where it is an estimate.
func (f *Figure) MeaningSentence() string {
	text := strings.ToUpper(f.Meaning[:1]) + f.Meaning[1:]
	if f.Estimate {
		text += ": an estimate"
	}
	return text + "."
}

// ValueOf returns the figure of a run or process.
func (f *Figure) ValueOf(s *Subject) Value { return f.get(s) }

// VisitParts calls take with each part of the figure of a run or process.
func (f *Figure) VisitParts(s *Subject, take func(part string, n uint64)) { f.parts(s, take) }

// ValueOfSite returns the figure of a call site of a run.
func (f *Figure) ValueOfSite(run *Subject, t *stats.Tag) Value { return f.site(run, t) }

// ValueOfShare returns the figure of a share of the memory.
func (f *Figure) ValueOfShare(s *stats.Share) Value { return f.share(s) }

// IsForSites reports whether call sites have the figure.
func (f *Figure) IsForSites() bool { return f.site != nil }

// AllFigures returns the table. The caller does not change it.
func AllFigures() []*Figure { return table }

// table is filled as the rows are initialised, in their order.
var table []*Figure

func addToTable(f Figure) *Figure {
	table = append(table, &f)
	return &f
}
