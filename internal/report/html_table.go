package report

import (
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/report/plot"
)

// htmlTable is a table that a script can sort.
type htmlTable struct {
	Title   string // what somebody is told who does not see it
	Columns []htmlColumn
	Rows    [][]htmlCell
	Left    string // what was left out, empty: nothing
}

// htmlColumn is a column; those of numbers are aligned to the right.
type htmlColumn struct {
	Name   string
	Number bool
}

// htmlCell is a cell. What of it is empty is not shown.
type htmlCell struct {
	Text   string
	Sort   string   // number to sort by; empty: by Text
	Bar    string   // part of the column's largest, in percent
	Code   []string // words of a command line
	Stack  []string // shown on demand, innermost first
	Number bool
	Class  string
}

// columns makes columns of "name" and "#number".
func columns(names ...string) []htmlColumn {
	list := make([]htmlColumn, len(names))
	for i, column := range names {
		list[i].Name, list[i].Number = strings.CutPrefix(column, "#")
	}
	return list
}

// textCell is for a word or two.
func textCell(text string) htmlCell { return htmlCell{Text: text, Class: "word"} }

func numberCell(text string, value float64) htmlCell {
	return htmlCell{Text: text, Sort: strconv.FormatFloat(value, 'g', 12, 64), Number: true}
}

func bytesCell(n uint64) htmlCell    { return numberCell(bytesText(n), float64(n)) }
func countCell(n uint64) htmlCell    { return numberCell(countText(n), float64(n)) }
func durationCell(n uint64) htmlCell { return numberCell(durationText(n), float64(n)) }

func rateCell(rate float64, of uint64) htmlCell {
	if of == 0 {
		return numberCell("–", -1)
	}
	return numberCell(rateText(rate, of), rate)
}

// barCell draws how much a value is of the largest one.
func barCell(value, largest uint64) htmlCell {
	part := 0.0
	if largest > 0 {
		part = 100 * float64(value) / float64(largest)
	}
	return htmlCell{Bar: strconv.FormatFloat(max(0, min(part, 100)), 'f', 1, 64) + "%", Sort: strconv.FormatUint(value, 10), Class: "bars"}
}

// siteCell names a call site and its stack, as long as there is room for stacks.
func (v *htmlView) siteCell(site string, stack []string) htmlCell {
	cell := htmlCell{Text: name(site), Class: "site"}
	for i, frame := range stack {
		text := shown(frame, htmlFrameWidth)
		if v.stacks -= len(plot.Escape(text)) + len("<li></li>"); v.stacks < 0 || i == 64 {
			cell.Stack = append(cell.Stack, "and "+things(uint64(len(stack)-i), "more frame"))
			return cell
		}
		cell.Stack = append(cell.Stack, text)
	}
	return cell
}

// rows is how many of n rows are shown.
func (v *htmlView) rows(n int) int {
	if v.options.Top > 0 {
		n = min(n, v.options.Top)
	}
	return min(n, htmlRows)
}

// left says how many rows are not shown.
func (v *htmlView) left(n int) string {
	if more := n - v.rows(n); more > 0 {
		return "and " + things(uint64(more), "more row")
	}
	return ""
}

// since returns a time of a snapshot relative to the start.
func (v *htmlView) since(time uint64) uint64 { return time - min(time, v.a.Run.Started) }
