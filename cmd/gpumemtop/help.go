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
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// flagWidth and commandWidth are the columns where explanations start. Lines are as wide as the terminal, from 60 to 100
// columns.
const (
	flagWidth    = 24
	commandWidth = 12
	helpNarrow   = 60
	helpWide     = 100
)

// addHelpAllFlag gives a command --help-all, which is --help with the flags that few people need.
func addHelpAllFlag(cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	cmd.Flags().BoolFunc(helpAllFlag, "", func(string) error { return cmd.Flags().Set("help", "true") })
	cmd.Flags().Lookup(helpAllFlag).Usage = "help with every flag"
}

const helpAllFlag = "help-all"

// row matches the start of a line of a list: a word, and blanks up to its explanation.
var row = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ +\S+ +`) })

// reflowParagraphs breaks the paragraphs of a text into lines of a width. Lines that begin with a blank stay as they are if they fit.
func reflowParagraphs(text string, width int) string {
	var lines []string
	open := false // a paragraph has begun
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
		lines[i] += console.WrapIndented(line[len(lines[i]):], len(lines[i]), width)
	}
	return strings.Join(lines, "\n")
}

// breakExample breaks a line that is longer than a width: it puts the explanation below the command.
func breakExample(line string, width int) string {
	line = strings.TrimSpace(line)
	if len([]rune(line))+2 <= width {
		return "  " + line
	}
	command, does, both := strings.Cut(line, "  ")
	text := "  " + console.WrapIndented(command, 6, width)
	if both {
		text += "\n      " + console.WrapIndented(strings.TrimSpace(does), 6, width)
	}
	return text
}

// showHelp writes the help of a command: its purpose, usage and examples, and its settings in groups.
func showHelp(cmd *cobra.Command) {
	var b strings.Builder
	width := min(max(console.TextWidth(cmd.OutOrStdout()), helpNarrow), helpWide)
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n", reflowParagraphs(strings.TrimSpace(text), width))
	usage := cmd.Annotations[usageKey]
	if usage == "" {
		usage = cmd.UseLine()
	}
	for line := range strings.SplitSeq(usage, "\n") {
		fmt.Fprintf(&b, "  %s\n", console.WrapIndented(line, 6, width))
	}
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n")
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			b.WriteString(breakExample(line, width) + "\n")
		}
	}
	writeCommandsHelp(&b, cmd, width)
	writeFlagsHelp(&b, cmd, width)
	if groupOfCommand(cmd) != "" {
		b.WriteString("\n" + console.WrapIndented("Every setting except "+strings.Join(flagsWithoutVariable(cmd.Flags()), ", ")+" can also come from the environment, "+
			"--stack-depth from GPUMEMTOP_STACK_DEPTH and so on, or from a file, see --config.", 0, width) + "\n")
	}
	_, _ = io.WriteString(cmd.OutOrStdout(), b.String())
}

// flagsWithoutVariable returns the flags that have no variable, because they would be dangerous in an environment, or belong to one
// command.
func flagsWithoutVariable(flags *pflag.FlagSet) []string {
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

func writeCommandsHelp(b *strings.Builder, cmd *cobra.Command, width int) {
	cmd = makeAllCommands(cmd)
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
				writeHelpRow(b, commandWidth, sub.Name(), sub.Short, width)
			}
		}
	}
}

// writeFlagsHelp writes the flags of a command in groups, without those for experts unless --help-all asks for them.
func writeFlagsHelp(b *strings.Builder, cmd *cobra.Command, width int) {
	flags := cmd.Flags()
	all, hidden := flags.Changed(helpAllFlag), uint64(0)
	for _, group := range groups {
		title := "\n" + group + ":\n"
		for _, s := range settingsOf(flags) {
			switch {
			case s.group != group:
			case s.expert && !all:
				hidden++
			default:
				b.WriteString(title)
				title = ""
				writeHelpRow(b, flagWidth, s.flagWithValue(), s.help+flagDefaultText(flags.Lookup(s.name)), width)
			}
		}
	}
	if hidden > 0 {
		fmt.Fprintf(b, "\n%s --help-all shows %s.\n", cmd.CommandPath(), units.Count(hidden, "more flag"))
	}
}

// writeHelpRow writes a line of a list: a name, and after an indent its explanation.
func writeHelpRow(b *strings.Builder, indent int, name, help string, width int) {
	fmt.Fprintf(b, "  %-*s", indent, name)
	if len(name) >= indent {
		fmt.Fprintf(b, "\n  %*s", indent, "")
	}
	b.WriteString(console.WrapIndented(help, indent+2, width) + "\n")
}

// flagWithValue returns the flag with its value: "-o, --output FILE".
func (s *setting) flagWithValue() string {
	text := "--" + s.name
	if s.short != "" {
		text = "-" + s.short + ", " + text
	}
	if s.value != "" {
		text += " " + s.value
	}
	return text
}

// flagDefaultText returns a default for the help, empty if it is obvious.
func flagDefaultText(flag *pflag.Flag) string {
	switch flag.DefValue {
	case "", "false", "0s", "[]":
		return ""
	}
	return " (default " + flag.DefValue + ")"
}
