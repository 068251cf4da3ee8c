package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/report/plot"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
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
}

func (s *section) fact(name, text string) { s.Facts = append(s.Facts, [2]string{name, text}) }

// silent reports whether a text leaves the section out.
func (s *section) silent() bool {
	s.Tables = slices.DeleteFunc(s.Tables, func(t table) bool { return len(t.Rows) == 0 })
	return len(s.Facts)+len(s.Tables)+len(s.Items)+len(s.Chart)+len(s.Notes) == 0
}

// table is a table. In a text all columns but the last are aligned to the right.
type table struct {
	Title   string // for readers of a page who do not see it
	Columns []column
	Rows    [][]cell
	Left    string // how many rows are left out, empty: none

	heading string // in a text, where a section has several tables
	shown   []bool // which of the columns given to view.table are shown
	front   int    // the one of the shown columns that a page has first
}

// column is a column; a page aligns those of numbers to the right.
type column struct {
	Name   string
	Number bool
}

// cell is a cell. A page shows a bar, words of a command line, and a stack on demand.
type cell struct {
	Text   string
	Sort   string // number to sort by; empty: by Text
	Bar    string // part of the column's largest, in percent
	Code   []string
	Stack  []string // innermost first; a text shows it below the row
	Number bool
	Class  string
}

// table makes a table for n rows, of which view.rows are to be added. Signs before the name of a column: # it has numbers,
// = it has bars (page only), + page only, - text only, ? only if there was a pool, ^ first on a page.
func (v *view) table(title string, n int, columns ...string) table {
	t := table{Title: title}
	for _, spec := range columns {
		name := strings.TrimLeft(spec, "#=+-?^")
		has := func(sign string) bool { return strings.Contains(spec[:len(spec)-len(name)], sign) }
		hidden := (has("=") || has("+")) && !v.page || has("-") && v.page || has("?") && v.attached()
		t.shown = append(t.shown, !hidden)
		if has("^") && v.page {
			t.front = len(t.Columns)
		}
		if !hidden {
			t.Columns = append(t.Columns, column{Name: name, Number: has("#")})
		}
	}
	t.Columns = toFront(t.Columns, t.front)
	if left := n - v.rows(n); left > 0 {
		t.Left = "and " + v.things(uint64(left), "more row")
	}
	return t
}

// add appends a row with a cell for each column given to view.table.
func (t *table) add(cells ...cell) {
	var row []cell
	for i, c := range cells {
		if t.shown[i] {
			row = append(row, c)
		}
	}
	t.Rows = append(t.Rows, toFront(row, t.front))
}

// toFront moves an element to the front.
func toFront[T any](list []T, at int) []T {
	moved := list[at]
	copy(list[1:], list[:at])
	list[0] = moved
	return list
}

// view makes the sections of a report of an analysis, for a text or for a page.
type view struct {
	a      *analysis.Analysis
	s      *stats.Snapshot
	t      *stats.Totals
	o      Options
	page   bool
	stacks int // bytes of stacks that the page still has room for
}

func newView(a *analysis.Analysis, o Options, page bool) *view {
	v := &view{a: a, s: a.Snapshot, o: o, page: page, stacks: htmlStackBytes}
	if v.s == nil {
		v.s = &stats.Snapshot{}
	}
	v.t = &v.s.Totals
	return v
}

// sections returns the sections of a text.
func (v *view) sections() []section {
	list := []section{v.head()}
	parts := []func() section{
		v.failures, v.diagnoses, v.totals, v.peak, v.tags, v.misses, v.limits, v.leaks, v.temporaries, v.phases, v.transfers, v.spill, v.costs, v.lag, v.overTime,
		v.sizes, v.classes, v.objects, v.processes, v.mistakes,
	}
	if len(v.s.Processes) == 0 {
		list[0].Notes = append(list[0].Notes, "no OpenCL call was seen")
		parts = nil
	}
	for _, part := range append(parts, v.happened) {
		if s := part(); !s.silent() {
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

// size writes a size for a sentence, and so on.
func (v *view) size(n uint64) string { return v.spaced(units.FormatLong(n)) }

func (v *view) spaced(figure string) string {
	if v.page {
		return plot.Narrow(figure)
	}
	return figure
}

func (v *view) things(n uint64, thing string) string {
	if v.page {
		return things(n, thing)
	}
	return units.Count(n, thing)
}

func (v *view) duration(ns uint64) string {
	if v.page {
		return durationText(ns)
	}
	return units.Duration(ns)
}

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

func numberCell(text string, value float64) cell {
	return cell{Text: text, Sort: strconv.FormatFloat(value, 'g', 12, 64), Number: true}
}

// wordCell is for a word or two.
func wordCell(text string) cell { return cell{Text: text, Class: "word"} }

func (v *view) bytesCell(n uint64) cell {
	if v.page {
		return numberCell(bytesText(n), float64(n))
	}
	return numberCell(units.Format(n), float64(n))
}

func (v *view) countCell(n uint64) cell {
	if v.page {
		return numberCell(countText(n), float64(n))
	}
	return numberCell(strconv.FormatUint(n, 10), float64(n))
}

func (v *view) durationCell(ns uint64) cell { return numberCell(v.duration(ns), float64(ns)) }

func (v *view) clockCell(ns uint64) cell { return numberCell(v.clock(ns), float64(ns)) }

// noneCell stands for a number that there is not.
func (v *view) noneCell() cell {
	if v.page {
		return numberCell("–", -1)
	}
	return numberCell("-", -1)
}

// rateCell is for part of whole.
func (v *view) rateCell(rate float64, of uint64) cell {
	if of == 0 {
		return v.noneCell()
	}
	return numberCell(v.spaced(units.Percent(rate, of)), rate)
}

// barCell draws how much a value is of the largest one.
func barCell(value, largest float64) cell {
	part := 0.0
	if largest > 0 {
		part = 100 * value / largest
	}
	return cell{
		Bar: strconv.FormatFloat(max(0, min(part, 100)), 'f', 1, 64) + "%", Sort: strconv.FormatFloat(max(0, value), 'f', 0, 64), Class: "bars",
	}
}

// nameCell is for text from the recording.
func (v *view) nameCell(text string, width int) cell {
	if v.page {
		return cell{Text: shown(text, width), Class: "site"}
	}
	return cell{Text: units.Clean(text)}
}

// siteCell names a call site, with its stack as long as the page has room for it. A text shows the stack below unless
// that is only the name again.
func (v *view) siteCell(site string, stack []string) cell {
	if !v.page {
		c := cell{Text: units.Clean(site)}
		for _, frame := range stack {
			if frame == site {
				break
			}
			c.Stack = append(c.Stack, units.Clean(frame))
		}
		return c
	}
	c := cell{Text: name(site), Class: "site"}
	for i, frame := range stack {
		text := shown(frame, htmlFrameWidth)
		if v.stacks -= len(plot.Escape(text)) + len("<li></li>"); v.stacks < 0 || i == 64 {
			c.Stack = append(c.Stack, "and "+things(uint64(len(stack)-i), "more frame"))
			return c
		}
		c.Stack = append(c.Stack, text)
	}
	return c
}
