package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
)

// textWidth is how many columns a text report has at most.
const textWidth = 100

// Text writes a report for people, at most 100 columns wide. The error is the writer's.
func Text(w io.Writer, a *analysis.Analysis, o Options) error {
	var b bytes.Buffer
	d := newDocument(a, o)
	for i := range d.sections {
		d.sections[i].text(&b)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (s *section) text(b *bytes.Buffer) {
	if s.heading != "" {
		fmt.Fprintf(b, "\n%s\n", strings.ToUpper(s.heading))
	}
	for _, fact := range s.facts {
		wrap(b, fmt.Sprintf("%-12s ", fact[0]), fact[1])
	}
	for i := range s.tables {
		if i > 0 || len(s.facts) > 0 && s.tables[i].title != "" {
			fmt.Fprintln(b)
		}
		s.tables[i].text(b)
	}
	for _, item := range s.items {
		wrap(b, "- ", item)
	}
	for _, line := range s.chart {
		fmt.Fprintln(b, line)
	}
	for _, note := range s.notes {
		if s.heading == "" {
			fmt.Fprintln(b)
		}
		wrap(b, "", note)
	}
}

// text writes the columns two apart. The last one is cut where the line would be too long.
func (t *table) text(b *bytes.Buffer) {
	if t.title != "" {
		fmt.Fprintln(b, t.title)
	}
	widths := make([]int, len(t.columns))
	for i, column := range t.columns {
		widths[i] = plain.Width(column)
		for _, row := range t.rows {
			widths[i] = max(widths[i], plain.Width(row.cells[i]))
		}
	}
	begin := 2
	for _, width := range widths[:len(widths)-1] {
		begin += width + 2
	}
	last := max(textWidth-begin, 20)
	write := func(cells []string) {
		var line strings.Builder
		for i, cell := range cells[:len(cells)-1] {
			line.WriteString("  " + strings.Repeat(" ", widths[i]-plain.Width(cell)) + cell)
		}
		fmt.Fprintln(b, strings.TrimRight(line.String()+"  "+plain.Cut(cells[len(cells)-1], last), " "))
	}
	write(t.columns)
	for _, row := range t.rows {
		write(row.cells)
		for _, line := range row.below {
			fmt.Fprintln(b, strings.Repeat(" ", begin+2)+plain.Cut(line, last-2))
		}
	}
	if more := t.more(); more != "" {
		fmt.Fprintln(b, more)
	}
}

// wrap writes a text behind a label, as wide as a report is.
func wrap(b *bytes.Buffer, label, text string) { plain.Wrap(b, textWidth, label, text) }
