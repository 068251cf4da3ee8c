package units

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// WriteTwoColumns writes names and their values in two columns. It leaves out those without a value.
func WriteTwoColumns(b *bytes.Buffer, rows [][2]string) {
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
	// Width bounds the lines, in columns of a terminal: CutName cuts the last column, but not below 8, and different cells that
	// then look the same are numbered. 0: no bound.
	Width int
	// Least has the titles of columns that the table lacks where the last column would have less than 26: the first titles go first.
	Least []string
	// Titles are the columns' where the first row does not have them, which otherwise a line below the table names if they lack.
	Titles []string
	// Sentences says that the last column has sentences, which are cut at their end.
	Sentences bool

	rows [][]string
}

// Add appends a row. Rows may have different numbers of cells.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// String returns the table, one line for each row, without spaces at the ends of lines.
func (t *Table) String() string {
	var b strings.Builder
	lacks, widths := t.dropColumns(t.widthsOfColumns())
	last := t.cutLastColumn(widths)
	for _, row := range t.rows {
		var line strings.Builder
		line.WriteString(t.Indent)
		for i, cell := range row {
			if short, cut := last[cell]; cut && i == len(widths)-1 {
				cell = short
			}
			line.WriteString(t.padCell(i, cell, widths[i]) + "  ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	if len(lacks) > 0 && t.Titles == nil {
		var note bytes.Buffer
		Wrap(&note, t.Width, t.Indent, "(too narrow for "+strings.Join(lacks, ", ")+")")
		b.Write(note.Bytes())
	}
	return b.String()
}

// dropColumns removes columns of least worth until the others have room. It returns their titles, and the widths that are left.
func (t *Table) dropColumns(widths []int) (lacks []string, left []int) {
	if t.Width == 0 || len(t.rows) == 0 {
		return nil, widths
	}
	titles := t.rows[0]
	if t.Titles != nil {
		titles = slices.Clone(t.Titles)
	}
	for _, title := range t.Least {
		if last := len(widths) - 1; t.roomForLastColumn(widths) >= min(widths[last], 26) {
			break
		}
		at := slices.Index(titles, title)
		if at < 0 {
			continue
		}
		lacks, titles, widths = append(lacks, title), slices.Delete(slices.Clone(titles), at, at+1), slices.Delete(widths, at, at+1)
		for i, row := range t.rows {
			if at < len(row) {
				t.rows[i] = slices.Delete(slices.Clone(row), at, at+1)
			}
		}
		if at < len(t.Align)-1 {
			t.Align = t.Align[:at] + t.Align[at+1:]
		}
	}
	return lacks, widths
}

// roomForLastColumn returns how many columns are left for the last column.
func (t *Table) roomForLastColumn(widths []int) int {
	room := t.Width - Width(t.Indent)
	for _, width := range widths[:len(widths)-1] {
		room -= width + 2
	}
	return room
}

// cutLastColumn returns what stands for the cells of the last column where there is too little room for them.
func (t *Table) cutLastColumn(widths []int) map[string]string {
	short := map[string]string{}
	if t.Width == 0 || len(widths) == 0 {
		return short
	}
	room := max(t.roomForLastColumn(widths), 8)
	var cells []string
	for _, row := range t.rows {
		if len(row) < len(widths) {
			continue
		}
		cell := row[len(row)-1]
		if _, known := short[cell]; !known {
			short[cell] = cell
			cells = append(cells, cell)
		}
	}
	for i, cut := range CutNames(cells, room) {
		if t.Sentences {
			cut = Cut(cells[i], room)
		}
		short[cells[i]] = cut
	}
	return short
}

func (t *Table) widthsOfColumns() []int {
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

func (t *Table) padCell(column int, cell string, width int) string {
	space := strings.Repeat(" ", max(width-Width(cell), 0))
	if t.Align != "" && t.Align[min(column, len(t.Align)-1)] == 'r' {
		return space + cell
	}
	return cell + space
}
