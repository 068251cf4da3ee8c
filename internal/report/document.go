package report

import (
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// section is a part of a report under a heading. A page shows its intro, plots, tables and flames; a text and Markdown
// show its facts, tables, items, chart and notes, and leave it out if there are none of these.
type section struct {
	ID, Title string // Title is empty for the first one of a text
	Intro     string // one line: what the section shows, or why there is nothing
	Plots     []htmlPlot
	Tables    []table
	Flames    []htmlFlame
	Facts     [][2]string
	Items     []string // a list
	Chart     []string // lines whose columns must stay
	Notes     []string // after everything else
	More      string   // after the last section: what is left out; empty: nothing
}

func (s *section) fact(name, text string) { s.Facts = append(s.Facts, [2]string{name, text}) }

// silent reports whether a text leaves the section out.
func (s *section) silent() bool {
	s.Tables = slices.DeleteFunc(s.Tables, func(t table) bool { return len(t.Rows) == 0 })
	return len(s.Facts)+len(s.Tables)+len(s.Items)+len(s.Chart)+len(s.Notes) == 0
}

// view makes the sections of a report of an analysis, for a text or for a page.
type view struct {
	style
	a      *analysis.Analysis
	s      *stats.Snapshot
	run    *figures.Subject
	o      Options
	stacks int // bytes of stacks that the page still has room for
}

func newView(a *analysis.Analysis, o Options, page bool) *view {
	if a.Snapshot == nil {
		empty := *a
		empty.Snapshot = &stats.Snapshot{}
		a = &empty
	}
	return &view{style: style{page}, a: a, s: a.Snapshot, run: figures.Recorded(a), o: o, stacks: htmlStackBytes}
}

// choice is a section of a text, with the name by which Options.Sections choose it.
type choice struct {
	name string
	make func(*view) section
}

// first is what most people look for, rest what they ask for, settings last.
var (
	first = []choice{
		{"failures", (*view).failures}, {"findings", (*view).diagnoses}, {"figures", (*view).keyFigures}, {"failed", (*view).failed},
		{"sites", (*view).tags}, {"limits", (*view).limits},
	}
	rest = []choice{
		{"more", (*view).moreFigures}, {"peak", (*view).peak}, {"misses", (*view).misses}, {"leaks", (*view).leaks}, {"in-flight", (*view).inFlight},
		{"temporaries", (*view).temporaries}, {"phases", (*view).phases}, {"transfers", (*view).transfers}, {"spill", (*view).spill},
		{"costs", (*view).costs}, {"lag", (*view).lag}, {"time", (*view).overTime}, {"sizes", (*view).sizes}, {"classes", (*view).classes},
		{"objects", (*view).objects}, {"processes", (*view).processes}, {"mistakes", (*view).mistakes}, {"happened", (*view).happened},
		{"settings", (*view).settings},
	}
)

// Sections are the names of the sections of a text, in its order.
func Sections() (names []string) {
	for _, p := range slices.Concat(first, rest) {
		names = append(names, p.name)
	}
	return names
}

// chosen makes the sections that were chosen, in the order of a text. A section without content prints "nothing".
func (v *view) chosen() (list []section) {
	for _, p := range slices.Concat(first, rest) {
		if !slices.Contains(v.o.Sections, p.name) {
			continue
		}
		s := p.make(v)
		if s.silent() {
			s = section{Title: p.name, Notes: []string{"nothing"}}
		}
		list = append(list, s)
	}
	return list
}

// sections returns the sections of a text.
func (v *view) sections() []section {
	head, first, rest := v.head(), first, rest
	if len(v.s.Processes) == 0 {
		head.Notes = append(head.Notes, Nothing(v.a.Run.Footer.Asked))
		first, rest = nil, rest[len(rest)-2:]
	} else if len(v.o.Sections) > 0 {
		return v.chosen()
	}
	list := append([]section{head}, v.spoken(first)...)
	more := v.spoken(rest)
	if v.o.All {
		return append(list, more...)
	}
	var left []string
	for i := range more {
		left = append(left, strings.ToLower(more[i].Title))
	}
	last := &list[len(list)-1]
	last.More = "--all adds: " + strings.Join(left, ", ")
	return list
}

// spoken makes the sections that a text has something to say in.
func (v *view) spoken(parts []choice) (list []section) {
	for _, p := range parts {
		if s := p.make(v); !s.silent() {
			list = append(list, s)
		}
	}
	return list
}

// attached reports whether the programs were only watched: there was no pool, and times include those of the probes.
func (v *view) attached() bool { return v.a.Run.Header.Attached }

// rows is how many of n rows are shown.
func (v *view) rows(n int) int {
	if v.o.Top > 0 {
		n = min(n, v.o.Top)
	}
	if v.page {
		n = min(n, htmlRows)
	}
	return n
}

// since returns a time of a snapshot relative to the start.
func (v *view) since(time uint64) uint64 { return time - min(time, v.a.Run.Started) }

// shortRun is a run whose times are in milliseconds, ns.
const shortRun = 100_000_000

// clock writes a time after the start.
func (v *view) clock(ns uint64) string {
	switch {
	case v.page:
		return durationText(ns)
	case v.since(v.s.Time) < shortRun:
		return fmt.Sprintf("%.3f ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.3f s", float64(ns)/1e9)
}

// clockOf writes a CLOCK_MONOTONIC time as one after the start.
func (v *view) clockOf(ns uint64) string { return v.clock(v.since(ns)) }

func (v *view) clockCell(ns uint64) cell { return numberCell(v.clock(ns), float64(ns)) }

// ofRun writes a figure of the run for a sentence.
func (v *view) ofRun(f *figures.Figure) string { return v.figure(f, f.Of(v.run)) }
