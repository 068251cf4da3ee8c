package report

import (
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/report/plot"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// table is a table. A text aligns all columns but the last to the right.
type table struct {
	Title   string // for readers who do not see the page
	Columns []column
	Rows    [][]cell
	Left    string // says how many rows are left out; empty: none

	heading string // for a text, if the section has several tables
	given   []column
	shown   []bool // by given column: it is shown
	first   int    // index of the shown column that a page has first
}

// column is a column. Without a mark it shows everywhere.
type column struct {
	Title    string
	Number   bool // a page aligns it to the right
	First    bool // it is the first column of a page
	PageOnly bool
	TextOnly bool
	PoolOnly bool // left out if there was no pool
	Sentence bool // a text cuts it at the end
	Figure   *figures.Figure
}

func figureColumn(f *figures.Figure) column {
	return column{Title: f.ColumnTitle(), Number: true, PoolOnly: f.Pool, Figure: f}
}

// atEndColumn has what is in use at the end: of a process, of the run, or of the part.
var atEndColumn = column{Title: "at end", Number: true, Figure: figures.InUse}

func numberColumn(title string) column { return column{Title: title, Number: true} }

func wordsColumn(title string) column { return column{Title: title} }

// barColumn has bars that compare the figures of the previous column.
var barColumn = column{PageOnly: true}

func (c column) withSentence() column {
	c.Sentence = true
	return c
}

func (c column) withFirstPlace() column {
	c.First = true
	return c
}

func (c column) withPageOnly() column {
	c.PageOnly = true
	return c
}

func (c column) withTextOnly() column {
	c.TextOnly = true
	return c
}

func (c column) withPoolOnly() column {
	c.PoolOnly = true
	return c
}

// cell is a cell. Only a page shows its bar and the words of a command line, and the stack on demand.
type cell struct {
	Text   string
	Sort   string // number to sort by; empty: by Text
	Bar    string // length in percent of the column's largest
	Code   []string
	Stack  []string // innermost first; a text shows it below the row
	Number bool
	Class  string
}

// newTable makes a table for n rows; the caller adds view.rows of them.
func (v *view) newTable(title string, n int, columns ...column) table {
	t := table{Title: title, given: columns}
	for _, c := range columns {
		hidden := c.PageOnly && !v.page || c.TextOnly && v.page || c.PoolOnly && v.isAttached()
		t.shown = append(t.shown, !hidden)
		if c.First && v.page {
			t.first = len(t.Columns)
		}
		if !hidden {
			t.Columns = append(t.Columns, c)
		}
	}
	t.Columns = withElementFirst(t.Columns, t.first)
	if left := n - v.countRowsToShow(n); left > 0 {
		t.Left = "and " + v.countText(uint64(left), "more row")
	}
	return t
}

// addRow appends a row with a cell for each column given to view.newTable.
func (t *table) addRow(cells ...cell) {
	var row []cell
	for i, c := range cells {
		if t.shown[i] {
			row = append(row, c)
		}
	}
	t.Rows = append(t.Rows, withElementFirst(row, t.first))
}

// addFigureRow appends a row: of returns the values of figures, and cells fill the other columns. It ignores superfluous cells.
func (v *view) addFigureRow(t *table, of func(*figures.Figure) figures.Value, cells ...cell) {
	row := make([]cell, 0, len(t.given))
	for _, c := range t.given {
		if c.Figure != nil {
			row = append(row, v.cellOfFigure(c.Figure, of(c.Figure)))
			continue
		}
		row, cells = append(row, cells[0]), cells[1:]
	}
	t.addRow(row...)
}

// withElementFirst moves an element to the front.
func withElementFirst[T any](list []T, at int) []T {
	moved := list[at]
	copy(list[1:], list[:at])
	list[0] = moved
	return list
}

// wordCell shows one or two words.
func wordCell(text string) cell { return cell{Text: text, Class: "word"} }

// barCell draws a value as a part of the largest one.
func barCell(value, largest float64) cell {
	part := 0.0
	if largest > 0 {
		part = 100 * value / largest
	}
	return cell{
		Bar: strconv.FormatFloat(max(0, min(part, 100)), 'f', 1, 64) + "%", Sort: strconv.FormatFloat(max(0, value), 'f', 0, 64), Class: "bars",
	}
}

// nameCell shows text from the recording.
func (v *view) nameCell(text string, width int) cell {
	if v.page {
		return cell{Text: cleanText(text, width), Class: "site"}
	}
	return cell{Text: units.Clean(text)}
}

// siteCell names a call site, with its stack if the page has room left. A text shows the stack below the row, unless it only
// repeats the name.
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
	c := cell{Text: cleanName(site), Class: "site"}
	for i, frame := range stack {
		text := cleanText(frame, htmlFrameWidth)
		if v.stacks -= len(plot.EscapeHTML(text)) + len("<li></li>"); v.stacks < 0 || i == 64 {
			c.Stack = append(c.Stack, "and "+thingsText(uint64(len(stack)-i), "more frame"))
			return c
		}
		c.Stack = append(c.Stack, text)
	}
	return c
}
