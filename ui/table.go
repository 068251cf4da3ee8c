package ui

import (
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// tableColumn is a right-aligned column of a table.
type tableColumn[T any] struct {
	title string
	width int  // with the blanks before it
	rank  int  // the last column with the highest rank is left out first
	pool  bool // only makes sense with a pool
	cell  func(T) span
}

// columnHeading is the title of a column with a figure.
func columnHeading(f *figures.Figure) string { return strings.ToUpper(f.ColumnTitle()) }

// headingAt is the title of a column at a moment, nil: at any. What is in use once all processes have ended is what they held at their end.
func headingAt(s *stats.Snapshot, title string) string {
	if s != nil && title == columnHeading(figures.InUse) {
		return strings.ToUpper(nameOfInUse(s))
	}
	return title
}

// columnsThatFit returns the columns that fit w, and their width.
func columnsThatFit[T any](all []tableColumn[T], w int, pool bool) (columns []tableColumn[T], used int) {
	columns = slices.DeleteFunc(slices.Clone(all), func(c tableColumn[T]) bool { return c.pool && !pool })
	for {
		used = 0
		for _, c := range columns {
			used += c.width
		}
		if used <= w || len(columns) == 0 {
			return columns, used
		}
		columns = dropHighestRank(columns, func(c *tableColumn[T]) int { return c.rank })
	}
}

// drawTitles draws the head of a table from column x on.
func drawTitles[T any](r region, x int, columns []tableColumn[T], s *stats.Snapshot) {
	for _, c := range columns {
		x += c.width
		r.writeTextBefore(x, 0, headingAt(s, c.title), headStyle)
	}
}

// drawCells draws a row of a table. st changes the styles; plain: it does not.
func drawCells[T any](r region, x int, columns []tableColumn[T], row T, st style) {
	for _, c := range columns {
		cell := c.cell(row)
		if st != plain {
			cell.style = st
		}
		r.subRegion(x, 0, c.width, 1).writeTextBefore(c.width, 0, cell.text, cell.style)
		x += c.width
	}
}
