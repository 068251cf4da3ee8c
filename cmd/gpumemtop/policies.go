package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

func newPolicies() *cobra.Command {
	return command(0, &cobra.Command{
		Use:         "policies [NAME...]",
		Short:       "Tell of the policies and their limits",
		Annotations: map[string]string{usageKey: "gpumemtop policies [NAME...]"},
		Example:     "  gpumemtop policies slab",
		ValidArgs:   append(allocator.Names(), allocator.Auto),
	}, func(cmd *cobra.Command, _ *config, args []string) error {
		if len(args) == 0 {
			args = append(allocator.Names(), allocator.Auto)
		}
		var texts []string
		for _, name := range args {
			description, known := allocator.Describe(name)
			if !known {
				_, err := allocator.New(name, nil)
				return err
			}
			texts = append(texts, policyText(&description, columns(cmd.OutOrStdout())))
		}
		_, err := io.WriteString(cmd.OutOrStdout(), strings.Join(texts, "\n"))
		return err
	})
}

// columns is how wide text may be: as wide as the terminal, within reason, and 80 where there is none.
func columns(w io.Writer) int {
	const narrow, usual, wide = 40, 80, 120
	file, ok := w.(*os.File)
	if !ok {
		return usual
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return usual
	}
	return max(narrow, min(int(size.Col), wide))
}

// policyText tells of one policy: what it does, where it comes from, and its limits with their defaults and what they
// take.
func policyText(d *allocator.Description, width int) string {
	var b strings.Builder
	fmt.Fprintln(&b, d.Name)
	writeWrapped(&b, d.Summary, "  ", width)
	writeWrapped(&b, "Source: "+d.Source+".", "  ", width)
	if len(d.Limits) == 0 {
		return b.String()
	}
	names := 0
	for i := range d.Limits {
		names = max(names, len(d.Limits[i].Name))
	}
	takesAt := 2 + names + 2 + defaultWidth + 2
	fmt.Fprintf(&b, "  %-*s  %-*s  %s\n", names, "LIMIT", defaultWidth, "DEFAULT", "TAKES")
	for i := range d.Limits {
		l := &d.Limits[i]
		row := fmt.Sprintf("  %-*s  %-*s", names, l.Name, defaultWidth, valueText(l))
		if len(row) > takesAt {
			row += "\n" + strings.Repeat(" ", takesAt-2)
		}
		b.WriteString(row + "  ")
		writeFrom(&b, takes(l), takesAt, strings.Repeat(" ", takesAt), width)
		writeWrapped(&b, l.Help, "      ", width)
	}
	return b.String()
}

// defaultWidth is how wide the defaults of limits stand, those that fit.
const defaultWidth = 13

// writeWrapped writes words in lines of a width, each with an indent in front.
func writeWrapped(b *strings.Builder, text, indent string, width int) {
	b.WriteString(indent)
	writeFrom(b, text, len(indent), indent, width)
}

// writeFrom writes words behind what fills the first line so far, up to used; further lines have an indent. A word that
// is longer than a line has one of its own.
func writeFrom(b *strings.Builder, text string, used int, indent string, width int) {
	first := true
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case first:
		case used+1+n > width:
			b.WriteString("\n" + indent)
			used = len(indent)
		default:
			b.WriteString(" ")
			used++
		}
		first = false
		b.WriteString(word)
		used += n
	}
	b.WriteString("\n")
}
