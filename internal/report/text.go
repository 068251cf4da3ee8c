package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// textWidth is the most columns of a text where the options do not say.
const textWidth = 100

// leastWorth are the titles of columns that a narrow text lacks, in the order in which they go.
var leastWorth = []string{
	"profiled", "cold", "pinned", "blocking", "call", "waste", "cached", "blocks", "idle", "live", "hits", "driver time", "speed",
	"asked for", "moves back", "moves", "took", "misses", "creates", "created", "lifetime p50", "median period", "peak", "p25", "p50",
	"started",
}

// lineWidth returns the width of a text.
func (o *Options) lineWidth() int { return cmp.Or(o.Width, textWidth) }

// WriteText writes a report for people. The error is the writer's.
func WriteText(w io.Writer, a *analysis.Analysis, o Options) error {
	var b bytes.Buffer
	width := o.lineWidth()
	for _, s := range newView(a, o, false).allSections() {
		s.writeText(&b, width)
	}
	if _, err := w.Write(bytes.TrimLeft(b.Bytes(), "\n")); err != nil { // a chosen section may be the first
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (s *section) writeText(b *bytes.Buffer, width int) {
	if s.Title != "" {
		fmt.Fprintf(b, "\n%s\n", strings.ToUpper(s.Title))
	}
	for _, fact := range s.Facts {
		units.Wrap(b, width, fmt.Sprintf("%-12s ", fact[0]), fact[1])
	}
	for i := range s.Tables {
		if i > 0 || len(s.Facts) > 0 && s.Tables[i].heading != "" {
			fmt.Fprintln(b)
		}
		s.Tables[i].writeText(b, width)
	}
	for _, item := range s.Items {
		units.Wrap(b, width, "- ", item)
	}
	for _, line := range s.Chart {
		fmt.Fprintln(b, line)
	}
	for _, note := range s.Notes {
		if s.Title == "" {
			fmt.Fprintln(b)
		}
		units.Wrap(b, width, "", note)
	}
	if s.More != "" {
		fmt.Fprintln(b)
		units.Wrap(b, width, "", s.More)
	}
}

// writeText writes the table: where lines would be too long, it lacks columns, and the last is cut.
func (t *table) writeText(b *bytes.Buffer, width int) {
	if t.heading != "" {
		fmt.Fprintln(b, t.heading)
	}
	last := len(t.Columns) - 1
	lines := units.Table{Align: strings.Repeat("r", last) + "l", Indent: "  ", Width: width, Least: leastWorth, Sentences: t.Columns[last].Sentence}
	head := make([]string, last+1)
	for i, c := range t.Columns {
		head[i] = c.Title
	}
	lines.Add(head...)
	for _, row := range t.Rows {
		cells := make([]string, last+1)
		for i, c := range row {
			cells[i] = c.Text
		}
		lines.Add(cells...)
		for _, line := range row[last].Stack {
			below := make([]string, last+1)
			below[last] = "  " + line
			lines.Add(below...)
		}
	}
	b.WriteString(lines.String())
	if t.Left != "" {
		fmt.Fprintln(b, t.Left)
	}
}
