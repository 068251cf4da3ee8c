package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
)

// helpWidth is where the explanations of flags start, helpRight where lines end.
const (
	helpWidth = 24
	helpRight = 110
)

// row matches the start of a line of a list: a word, and blanks up to its explanation.
var row = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ +\S+ +`) })

// flowing breaks the paragraphs of a text again. Lines that begin with a blank stay as they are.
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
		lines[i] = row().FindString(line)
		lines[i] += console.Wrap(line[len(lines[i]):], len(lines[i]), helpRight)
	}
	return strings.Join(lines, "\n")
}

// showHelp writes the help of a command: what it does, its usage, examples, and its settings in groups.
func showHelp(cmd *cobra.Command) {
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
	writeSettings(&b, cmd.Flags())
	if commandKind(cmd) != "" {
		b.WriteString("\n" + console.Wrap("Every setting except "+strings.Join(withoutVariable(cmd.Flags()), ", ")+" can also come from the environment, "+
			"--stack-depth from GPUMEMTOP_STACK_DEPTH and so on, or from a file, see --config.", 0, helpRight) + "\n")
	}
	_, _ = io.WriteString(cmd.OutOrStdout(), b.String())
}

// withoutVariable returns the flags that no variable sets: those that are too dangerous in an environment, or that belong
// to one command.
func withoutVariable(flags *pflag.FlagSet) []string {
	var names []string
	for _, s := range settingsOf(flags) {
		if !s.env {
			names = append(names, "--"+s.name)
		}
	}
	return names
}

// usageKey is the annotation that holds a command's usage lines.
const usageKey = "usage"

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	cmd = whole(cmd)
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

func writeSettings(b *strings.Builder, flags *pflag.FlagSet) {
	for _, group := range groups {
		title := "\n" + group + ":\n"
		for _, s := range settingsOf(flags) {
			if s.group != group {
				continue
			}
			b.WriteString(title)
			title = ""
			left := s.flag()
			fmt.Fprintf(b, "  %-*s", helpWidth, left)
			if len(left) >= helpWidth {
				fmt.Fprintf(b, "\n  %*s", helpWidth, "")
			}
			b.WriteString(console.Wrap(s.help+defaultText(flags.Lookup(s.name)), helpWidth+2, helpRight) + "\n")
		}
	}
}

// flag returns the flag with its value: "-o, --output FILE".
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
func defaultText(flag *pflag.Flag) string {
	switch flag.DefValue {
	case "", "false", "0s", "[]":
		return ""
	}
	return " (default " + flag.DefValue + ")"
}
