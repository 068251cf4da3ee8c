package report

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
)

// document is a report before it is text or Markdown: sections in their order. Its texts are clean and of any length.
type document struct {
	title    string
	sections []section
}

// section is a heading with what stands below it: facts, then tables, then lines.
type section struct {
	heading string // empty for the first
	facts   [][2]string
	tables  []table
	items   []string // a list
	chart   []string // lines whose columns must stay
	notes   []string // behind all else
}

// table has columns that stand right, but for the last, which stands left.
type table struct {
	title   string // where a section has several
	columns []string
	rows    []row
	left    int    // rows that are not shown
	thing   string // that a row is
}

// row is one row of a table.
type row struct {
	cells []string
	below []string // lines that belong to it, such as a stack
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, row{cells: cells}) }

// drop removes the columns of some titles, as far as they are there.
func (t *table) drop(titles ...string) {
	for i := len(t.columns) - 1; i >= 0; i-- {
		if !slices.Contains(titles, t.columns[i]) {
			continue
		}
		t.columns = slices.Delete(t.columns, i, i+1)
		for k := range t.rows {
			t.rows[k].cells = slices.Delete(t.rows[k].cells, i, i+1)
		}
	}
}

// more says what a table leaves out, "" when that is nothing.
func (t *table) more() string {
	switch {
	case t.left == 0:
		return ""
	case t.thing == "":
		return fmt.Sprintf("and %d more", t.left)
	}
	return "and " + plain.Count(uint64(t.left), "more "+t.thing)
}

// view makes a document of an analysis.
type view struct {
	a *analysis.Analysis
	s *model.Snapshot
	t *model.Totals
	o Options
}

// newDocument says everything that is shown of an analysis.
func newDocument(a *analysis.Analysis, o Options) *document {
	v := &view{a: a, s: a.Snapshot, o: o}
	if v.s == nil {
		v.s = &model.Snapshot{}
	}
	v.t = &v.s.Totals
	d := &document{title: "gpumemtop: " + v.command(), sections: []section{v.head()}}
	list := []func() section{
		v.standsOut, v.totals, v.peak, v.tags, v.misses, v.limits, v.leaks, v.temporaries, v.phases, v.costs, v.lag, v.overTime,
		v.sizes, v.classes, v.processes, v.mistakes,
	}
	if len(v.s.Processes) == 0 {
		d.sections[0].notes = append(d.sections[0].notes, "no OpenCL call was seen")
		list = nil
	}
	for _, make := range append(list, v.happened) {
		if s := make(); !s.empty() {
			d.sections = append(d.sections, s)
		}
	}
	return d
}

func (s *section) empty() bool {
	s.tables = slices.DeleteFunc(s.tables, func(t table) bool { return len(t.rows) == 0 })
	return len(s.facts) == 0 && len(s.tables) == 0 && len(s.items) == 0 && len(s.chart) == 0 && len(s.notes) == 0
}

// top bounds a list as the options say.
func top[T any](v *view, list []T) (kept []T, left int) {
	if v.o.Top == 0 {
		return list, 0
	}
	return plain.Top(list, v.o.Top)
}
