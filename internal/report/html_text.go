package report

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/report/plot"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Bounds that keep the page small for any recording.
const (
	htmlCommandWidth = 400 // characters
	htmlNameWidth    = 160
	htmlTextWidth    = 400
	htmlFrameWidth   = 200
	htmlRows         = 100       // of each table
	htmlStackBytes   = 160 << 10 // of all stacks
	htmlCards        = 30
)

// cleanText cleans text from a recording and bounds its length, in characters.
func cleanText(text string, most int) string {
	if len(text) > most*utf8.UTFMax {
		text = text[:most*utf8.UTFMax]
	}
	text = units.Clean(text)
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

func cleanName(text string) string {
	if text == "" {
		return "(unknown)"
	}
	return cleanText(text, htmlNameWidth)
}

func bytesText(n uint64) string { return plot.NarrowSpaces(units.FormatLong(n)) }

func countText(n uint64) string { return plot.NarrowSpaces(units.FormatGrouped(n)) }

func durationText(ns uint64) string { return nanosText(float64(ns)) }

func nanosText(ns float64) string { return plot.NarrowSpaces(units.DurationLong(ns)) }

// rateText writes a rate, or a dash if it is of 0.
func rateText(rate float64, of uint64) string {
	if of == 0 {
		return "–"
	}
	return plot.NarrowSpaces(units.Percent(rate, of))
}

// thingsText writes a number of things.
func thingsText(n uint64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return countText(n) + " " + thing
}

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`) })

// quoteForShell quotes a word for a shell if needed.
func quoteForShell(word string) string {
	if plainWord().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (v *view) programName() string {
	program := v.a.Run.Header.Program
	if program == "" {
		program = v.s.Program
	}
	if program == "" {
		return "unknown program"
	}
	return cleanText(path.Base(program), 80)
}

// commandWords returns the words of the command line, nil if several programs were merged.
func (v *view) commandWords() []string {
	h := &v.a.Run.Header
	if slices.ContainsFunc(h.Merged, func(o recording.Origin) bool { return o.Program != h.Program }) {
		return nil
	}
	if h.Program == "" {
		return append([]string{v.s.Program}, v.s.Arguments...)
	}
	return append([]string{h.Program}, h.Arguments...)
}

// commandLine returns the command line, quoted for a shell.
func (v *view) commandLine() []string {
	words := v.commandWords()
	quoted := make([]string, 0, len(words))
	for _, word := range words[:min(len(words), htmlCommandWidth)] {
		quoted = append(quoted, quoteForShell(word))
	}
	return quoted
}

// commandWithLimit returns the command line that runs the program with another limit. If the program's own command line cannot
// be shown verbatim, the reader has to add it.
func (v *view) commandWithLimit(limit, value string) []string {
	words := []string{"gpumemtop"}
	if policy := v.a.Run.Header.Policy; policy != "" {
		words = append(words, "--policy", quoteForShell(cleanText(policy, 40)))
	}
	words = append(words, "--set", quoteForShell(cleanName(limit+"="+value)), "--")
	program := v.commandLine()
	if line := strings.Join(program, " "); strings.Join(v.commandWords(), "") == "" || cleanText(line, htmlCommandWidth) != line {
		program = []string{"…"}
	}
	return append(words, program...)
}
