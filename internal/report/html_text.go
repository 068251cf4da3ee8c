package report

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/report/plot"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// Bounds of what is shown, so that the page stays small whatever the recording says.
const (
	htmlCommandWidth = 400 // characters
	htmlNameWidth    = 160
	htmlTextWidth    = 400
	htmlFrameWidth   = 200
	htmlRows         = 100       // of each table
	htmlStackBytes   = 160 << 10 // of all stacks
	htmlCards        = 30
)

// shown makes text from a recording fit to be shown: on one line, of bounded length.
func shown(text string, most int) string {
	if len(text) > most*utf8.UTFMax {
		text = text[:most*utf8.UTFMax]
	}
	text = model.Clean([]byte(text))
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

func name(text string) string {
	if text == "" {
		return "(unknown)"
	}
	return shown(text, htmlNameWidth)
}

func bytesText(n uint64) string { return strings.Replace(size.FormatLong(n), " ", "\u202f", 1) }

func countText(n uint64) string { return plot.CountText(n) }

func durationText(ns uint64) string { return plot.DurationText(float64(ns)) }

// rateText writes a rate; a rate of nothing is no number.
func rateText(rate float64, of uint64) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f\u202f%%", 100*rate)
}

// things writes how many there are.
func things(n uint64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return countText(n) + " " + thing
}

// byteSecondsText writes memory × time.
func byteSecondsText(v float64) string { return plot.DecimalBytes(v) + "·s" }

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoteWord writes a word so that a shell takes it as it is.
func quoteWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (v *htmlView) program() string {
	program := v.a.Run.Header.Program
	if program == "" {
		program = v.s.Program
	}
	if program == "" {
		return "unknown program"
	}
	return shown(path.Base(program), 80)
}

// commandWords are the command line, none when there are several: what the header calls them is no program.
func (v *htmlView) commandWords() []string {
	h := &v.a.Run.Header
	if slices.ContainsFunc(h.Merged, func(o trace.Origin) bool { return o.Program != h.Program }) {
		return nil
	}
	if h.Program == "" {
		return append([]string{v.s.Program}, v.s.Arguments...)
	}
	return append([]string{h.Program}, h.Arguments...)
}

// commandLine writes the words as a shell takes them.
func (v *htmlView) commandLine() []string {
	words := v.commandWords()
	quoted := make([]string, 0, len(words))
	for _, word := range words[:min(len(words), htmlCommandWidth)] {
		quoted = append(quoted, quoteWord(word))
	}
	return quoted
}

// tryCommand is the command line that runs the program with another limit. A program whose command line cannot be
// shown as it is, is left for the reader to add.
func (v *htmlView) tryCommand(limit, value string) []string {
	words := []string{"gpumemtop"}
	if policy := v.a.Run.Header.Policy; policy != "" {
		words = append(words, "--policy", quoteWord(shown(policy, 40)))
	}
	words = append(words, "--set", quoteWord(name(limit+"="+value)), "--")
	program := v.commandLine()
	if line := strings.Join(program, " "); strings.Join(v.commandWords(), "") == "" || shown(line, htmlCommandWidth) != line {
		program = []string{"…"}
	}
	return append(words, program...)
}
