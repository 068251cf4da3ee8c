package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
)

// WriteMarkdown writes a report with tables as GitHub renders them (GitHub Flavored Markdown §4.10). The error is the
// writer's.
func WriteMarkdown(w io.Writer, a *analysis.Analysis, o Options) error {
	var b bytes.Buffer
	v := newView(a, o, false)
	fmt.Fprintf(&b, "# gpumemtop: %s\n", escapeMarkdown(v.commandLineText()))
	for _, s := range v.allSections() {
		s.writeMarkdown(&b)
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

func escapeMarkdown(text string) string { return markup.Replace(text) }

func (s *section) writeMarkdown(b *bytes.Buffer) {
	if s.Title != "" {
		fmt.Fprintf(b, "\n## %s\n", escapeMarkdown(s.Title))
	}
	if len(s.Facts) > 0 {
		facts := table{Columns: make([]column, 2)}
		for _, fact := range s.Facts {
			facts.Rows = append(facts.Rows, []cell{{Text: fact[0]}, {Text: fact[1]}})
		}
		facts.writeMarkdown(b, ":--")
	}
	for i := range s.Tables {
		s.Tables[i].writeMarkdown(b, "--:")
	}
	if len(s.Items) > 0 {
		fmt.Fprintln(b)
	}
	for _, item := range s.Items {
		fmt.Fprintf(b, "- %s\n", escapeMarkdown(item))
	}
	if len(s.Chart) > 0 {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", strings.ReplaceAll(strings.Join(s.Chart, "\n"), "`", "'"))
	}
	for _, note := range s.Notes {
		fmt.Fprintf(b, "\n%s\n", escapeMarkdown(note))
	}
	if s.More != "" {
		fmt.Fprintf(b, "\n%s\n", escapeMarkdown(s.More))
	}
}

func (t *table) writeMarkdown(b *bytes.Buffer, align string) {
	if t.heading != "" {
		fmt.Fprintf(b, "\n%s\n", escapeMarkdown(t.heading))
	}
	b.WriteString("\n")
	for _, c := range t.Columns {
		fmt.Fprintf(b, "| %s ", escapeMarkdown(c.Title))
	}
	fmt.Fprintln(b, "|\n"+strings.Repeat("| "+align+" ", len(t.Columns)-1)+"| :-- |")
	for _, row := range t.Rows {
		for _, c := range row {
			fmt.Fprintf(b, "| %s", escapeMarkdown(c.Text))
			for _, frame := range c.Stack {
				fmt.Fprintf(b, "<br>%s", escapeMarkdown(frame))
			}
			b.WriteString(" ")
		}
		b.WriteString("|\n")
	}
	if t.Left != "" {
		fmt.Fprintf(b, "\n%s\n", t.Left)
	}
}
