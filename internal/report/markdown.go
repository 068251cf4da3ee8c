package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
)

// Markdown writes a report with tables as GitHub renders them (GitHub Flavored Markdown §4.10). The error is the
// writer's.
func Markdown(w io.Writer, a *analysis.Analysis, o Options) error {
	var b bytes.Buffer
	d := newDocument(a, o)
	fmt.Fprintf(&b, "# %s\n", escape(d.title))
	for i := range d.sections {
		d.sections[i].markdown(&b)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// markup are the characters that would change how text from a recording is shown; a pipe would end a cell, < and & would
// begin HTML.
var markup = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "#", `\#`,
	"~", `\~`, "://", `:\/\/`, "@", `\@`,
)

func escape(text string) string { return markup.Replace(text) }

func (s *section) markdown(b *bytes.Buffer) {
	if s.heading != "" {
		fmt.Fprintf(b, "\n## %s\n", escape(strings.ToUpper(s.heading[:1])+s.heading[1:]))
	}
	if len(s.facts) > 0 {
		facts := table{columns: []string{"", ""}}
		for _, fact := range s.facts {
			facts.add(fact[0], fact[1])
		}
		facts.markdown(b, ":--")
	}
	for i := range s.tables {
		s.tables[i].markdown(b, "--:")
	}
	if len(s.items) > 0 {
		fmt.Fprintln(b)
	}
	for _, item := range s.items {
		fmt.Fprintf(b, "- %s\n", escape(item))
	}
	if len(s.chart) > 0 {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", strings.ReplaceAll(strings.Join(s.chart, "\n"), "`", "'"))
	}
	for _, note := range s.notes {
		fmt.Fprintf(b, "\n%s\n", escape(note))
	}
}

func (t *table) markdown(b *bytes.Buffer, align string) {
	if t.title != "" {
		fmt.Fprintf(b, "\n%s\n", escape(t.title))
	}
	fmt.Fprintln(b)
	line := func(cells []string, below []string) {
		for i, cell := range cells {
			fmt.Fprintf(b, "| %s", escape(cell))
			for _, more := range below {
				if i == len(cells)-1 {
					fmt.Fprintf(b, "<br>%s", escape(more))
				}
			}
			fmt.Fprint(b, " ")
		}
		fmt.Fprintln(b, "|")
	}
	line(t.columns, nil)
	fmt.Fprintln(b, strings.Repeat("| "+align+" ", len(t.columns)-1)+"| :-- |")
	for _, row := range t.rows {
		line(row.cells, row.below)
	}
	if more := t.more(); more != "" {
		fmt.Fprintf(b, "\n%s\n", more)
	}
}
