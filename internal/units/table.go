package units

import (
	"bytes"
	"fmt"
	"strings"
)

// Pairs writes names and their values in two columns. It leaves out those without a value.
func Pairs(b *bytes.Buffer, rows [][2]string) {
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(b, "%-12s %s\n", row[0], row[1])
		}
	}
}

// Table lines up rows of clean text in columns that are two spaces apart. The zero Table has left-aligned columns.
type Table struct {
	// Align has one letter for each column, l (left) or r (right); its last letter counts for all further columns.
	Align string
	// Indent begins each line.
	Indent string
	// Width bounds the lines, in columns of a terminal: CutName cuts the last column, but not below 20. 0: no bound.
	Width int

	rows [][]string
}

// Add appends a row. Rows may have different numbers of cells.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// String returns the table, one line for each row, without spaces at the ends of lines.
func (t *Table) String() string {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		line.WriteString(t.Indent)
		at := Width(t.Indent)
		for i, cell := range row {
			if i == len(widths)-1 && t.Width > 0 {
				cell = CutName(cell, max(t.Width-at, 20))
			}
			line.WriteString(t.pad(i, cell, widths[i]) + "  ")
			at += widths[i] + 2
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

func (t *Table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	return widths
}

func (t *Table) pad(column int, cell string, width int) string {
	space := strings.Repeat(" ", max(width-Width(cell), 0))
	if t.Align != "" && t.Align[min(column, len(t.Align)-1)] == 'r' {
		return space + cell
	}
	return cell + space
}
