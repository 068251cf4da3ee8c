package report

import (
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// section is a part of a report under a heading. A page shows its intro, plots, tables and flames. Text and Markdown show its
// facts, tables, items, chart and notes, and omit a section that has none of these.
type section struct {
	ID, Title string // Title is empty for the first section of a text
	Intro     string // one line: what the section shows, or why there is nothing
	Plots     []htmlPlot
	Tables    []table
	Flames    []htmlFlame
	Facts     [][2]string
	Items     []string // a list
	Chart     []string // lines whose columns must stay
	Notes     []string // after everything else
	More      string   // after the last section: names of sections that were left out; empty: none
}

func (s *section) addFact(name, text string) { s.Facts = append(s.Facts, [2]string{name, text}) }

// isEmpty reports whether the section has nothing to show in a text.
func (s *section) isEmpty() bool {
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
	stacks int // bytes of stacks for which the page still has room
}

func newView(a *analysis.Analysis, o Options, page bool) *view {
	if a.Snapshot == nil {
		empty := *a
		empty.Snapshot = &stats.Snapshot{}
		a = &empty
	}
	return &view{style: style{page}, a: a, s: a.Snapshot, run: figures.SubjectOfRecording(a), o: o, stacks: htmlStackBytes}
}

// choice is a section of a text, with its name in Options.Sections.
type choice struct {
	name string
	make func(*view) section
}

// The sections of a text, in order: those that most people look for come first, then the others.
var (
	first = []choice{
		{"failures", (*view).failuresSection}, {"findings", (*view).diagnosesSection}, {"figures", (*view).keyFiguresSection},
		{"failed", (*view).failedSection},
		{"sites", (*view).tagsSection}, {"limits", (*view).limitsSection},
	}
	rest = []choice{
		{"more", (*view).moreFiguresSection}, {"peak", (*view).peakSection}, {"misses", (*view).missesSection}, {"leaks", (*view).leaksSection}, {"in-flight", (*view).releasedInFlightSection},
		{"temporaries", (*view).temporariesSection}, {"phases", (*view).phasesSection}, {"transfers", (*view).transfersSection},
		{"spill", (*view).spillSection},
		{"costs", (*view).costsSection}, {"lag", (*view).lagSection}, {"time", (*view).overTimeSection}, {"sizes", (*view).sizesSection},
		{"classes", (*view).memorySharesSection},
		{"objects", (*view).objectsSection}, {"processes", (*view).processesSection}, {"mistakes", (*view).mistakesSection},
		{"happened", (*view).marksSection},
		{"settings", (*view).settingsSection},
	}
	alone = []choice{{"brief", (*view).briefFindingsSection}} // only where it is chosen
)

// SectionNames are the names of the sections of a text, in its order.
func SectionNames() (names []string) {
	for _, p := range slices.Concat(first, alone, rest) {
		names = append(names, p.name)
	}
	return names
}

// chosenSections makes the sections that Options.Sections choose, in the order of a text. An empty section says "nothing".
func (v *view) chosenSections() (list []section) {
	for _, p := range slices.Concat(first, alone, rest) {
		if !slices.Contains(v.o.Sections, p.name) {
			continue
		}
		s := p.make(v)
		if s.isEmpty() {
			s = section{Title: p.name, Notes: []string{"nothing"}}
		}
		list = append(list, s)
	}
	return list
}

// allSections returns the sections of a text.
func (v *view) allSections() []section {
	head, first, rest := v.headSection(), first, rest
	if len(v.s.Processes) == 0 {
		head.Notes = append(head.Notes, NoContextText(v.a.Run.Footer.Asked))
		first, rest = nil, rest[len(rest)-2:]
	} else if len(v.o.Sections) > 0 {
		return v.chosenSections()
	}
	list := append([]section{head}, v.nonEmptySections(first)...)
	more := v.nonEmptySections(rest)
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

// nonEmptySections makes those of the sections that are not empty.
func (v *view) nonEmptySections(parts []choice) (list []section) {
	for _, p := range parts {
		if s := p.make(v); !s.isEmpty() {
			list = append(list, s)
		}
	}
	return list
}

// isAttached reports whether the programs were only watched: there was no pool, and times include those of probes.
func (v *view) isAttached() bool { return v.a.Run.Header.Attached }

// countRowsToShow returns how many of n rows a table shows.
func (v *view) countRowsToShow(n int) int {
	if v.o.Top > 0 {
		n = min(n, v.o.Top)
	}
	if v.page {
		n = min(n, htmlRows)
	}
	return n
}

// sinceStart returns the time from the start of the run to a time of a snapshot, ns.
func (v *view) sinceStart(time uint64) uint64 { return time - min(time, v.a.Run.Started) }

// shortRun is the duration of a run in ns below which its times are given in milliseconds.
const shortRun = 100_000_000

// clockText writes a time since the start.
func (v *view) clockText(ns uint64) string {
	switch {
	case v.page:
		return durationText(ns)
	case v.sinceStart(v.s.Time) < shortRun:
		return fmt.Sprintf("%.3f ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.3f s", float64(ns)/1e9)
}

// clockTextOfTime writes a CLOCK_MONOTONIC time as a time since the start.
func (v *view) clockTextOfTime(ns uint64) string { return v.clockText(v.sinceStart(ns)) }

func (v *view) clockCell(ns uint64) cell { return numberCell(v.clockText(ns), float64(ns)) }

// runFigureText writes a figure of the run for a sentence.
func (v *view) runFigureText(f *figures.Figure) string { return v.formatFigure(f, f.ValueOf(v.run)) }
