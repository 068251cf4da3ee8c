package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

// helpWidth is where the explanations of flags start, helpRight where lines end.
const (
	helpWidth = 24
	helpRight = 110
)

// wrapped breaks text between words into lines that begin left of the right end by so many columns; all but the first are
// indented. Wordwrap would break at hyphens, too, and so flags: it does not see them.
func wrapped(text string, indent int) string {
	const unbreakable = "\u2011"
	text = ansi.Wordwrap(strings.ReplaceAll(text, "-", unbreakable), helpRight-indent, "")
	return strings.ReplaceAll(strings.ReplaceAll(text, unbreakable, "-"), "\n", "\n"+strings.Repeat(" ", indent))
}

// row is a line of a list: what it is about, and blanks up to the explanation.
var row = regexp.MustCompile(`^ +\S+ +`)

// flowing breaks the paragraphs of a text anew. Lines that begin with a blank, and their ends, stay.
func flowing(text string) string {
	var lines []string
	open := false // a paragraph
	for line := range strings.SplitSeq(text, "\n") {
		plain := line != "" && line[0] != ' '
		if plain && open {
			lines[len(lines)-1] += " " + line
		} else {
			lines = append(lines, line)
		}
		open = plain
	}
	for i, line := range lines {
		lines[i] = row.FindString(line)
		lines[i] += wrapped(line[len(lines[i]):], len(lines[i]))
	}
	return strings.Join(lines, "\n")
}

// showHelp writes the help of a command: what it does, how it is called, examples, and its settings in groups.
func showHelp(cmd *cobra.Command, where scope) {
	var b strings.Builder
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n", flowing(strings.TrimSpace(text)))
	usage := cmd.Annotations[usageKey]
	if usage == "" {
		usage = cmd.UseLine()
	}
	for line := range strings.SplitSeq(usage, "\n") {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	writeCommands(&b, cmd)
	writeSettings(&b, where)
	if where&onWatch != 0 {
		b.WriteString("\n" + wrapped("Every setting but "+strings.Join(withoutVariable(where), ", ")+" can also come from the environment: "+
			"--stack-depth from GPUMEMTOP_STACK_DEPTH, and so on; or from a file, see --config.", 0) + "\n")
	}
	_, _ = io.WriteString(cmd.OutOrStdout(), b.String())
}

// withoutVariable returns the flags that no variable sets: too dangerous to be left in an environment, or of one
// command alone.
func withoutVariable(where scope) []string {
	var flags []string
	for i := range settings {
		if s := &settings[i]; s.scope&where != 0 && !s.env {
			flags = append(flags, "--"+s.name)
		}
	}
	return flags
}

// usageKey is the annotation that holds a command's usage lines.
const usageKey = "usage"

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	kinds := cmd.Groups()
	if len(kinds) == 0 {
		kinds = []*cobra.Group{{Title: "Commands"}}
	}
	for _, kind := range kinds {
		fmt.Fprintf(b, "\n%s:\n", kind.Title)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && sub.GroupID == kind.ID {
				fmt.Fprintf(b, "  %-*s%s\n", helpWidth, sub.Name(), sub.Short)
			}
		}
	}
}

func writeSettings(b *strings.Builder, where scope) {
	c := defaults()
	for _, group := range groups {
		title := "\n" + group + ":\n"
		for i := range settings {
			s := &settings[i]
			if s.group != group || s.scope&where == 0 {
				continue
			}
			b.WriteString(title)
			title = ""
			left := s.flag()
			fmt.Fprintf(b, "  %-*s", helpWidth, left)
			if len(left) >= helpWidth {
				fmt.Fprintf(b, "\n  %*s", helpWidth, "")
			}
			b.WriteString(wrapped(s.help+s.defaultText(c), helpWidth+2) + "\n")
		}
	}
}

// flag is how a flag is written: "-o, --output FILE".
func (s *setting) flag() string {
	text := "--" + s.name
	if s.short != "" {
		text = "-" + s.short + ", " + text
	}
	if s.value != "" {
		text += " " + s.value
	}
	return text
}

// defaultText names a default that is worth naming.
func (s *setting) defaultText(c *config) string {
	switch field := s.field(c).(type) {
	case *string:
		if *field != "" {
			return " (default " + *field + ")"
		}
	case *int:
		return fmt.Sprintf(" (default %d)", *field)
	case *time.Duration:
		if *field != 0 {
			return fmt.Sprintf(" (default %v)", *field)
		}
	}
	return ""
}
