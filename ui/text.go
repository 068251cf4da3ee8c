package ui

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// lineMax is the length at which a line of output is cut, in bytes.
const lineMax = 4096

// textWidth returns the columns that region.writeText uses for s.
func textWidth(s string) int {
	n := 0
	for len(s) > 0 {
		_, w, rest := nextCluster(s)
		n, s = n+w, rest
	}
	return n
}

// nextCluster cuts the first grapheme cluster off s. Its width is 0 if it must not be shown.
func nextCluster(s string) (cluster string, n int, rest string) {
	if b := s[0]; b < 0x80 && (len(s) == 1 || s[1] < 0x80) { // the usual case, cheaply
		if b >= 0x20 && b != 0x7f {
			n = 1
		}
		return s[:1], n, s[1:]
	}
	cluster, n = ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	rest = s[len(cluster):]
	if n < 0 || n > 2 || isControl(cluster) {
		n = 0
	}
	return cluster, n, rest
}

// isControl reports whether a cluster moves the cursor, changes the writing direction, or is not text.
func isControl(cluster string) bool {
	for _, r := range cluster {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return true
		}
	}
	return false
}

// cleanOutputLine makes a line of a program's output harmless: it removes escape sequences, control characters and what a
// carriage return overwrites, and expands tabs.
func cleanOutputLine(s string) string {
	if len(s) > lineMax {
		s = s[:lineMax]
	}
	s = strings.TrimRight(s, "\r\n")
	if i := strings.LastIndexByte(s, '\r'); i >= 0 {
		s = s[i+1:]
	}
	if isPlainASCII(s) {
		return s
	}
	s = ansi.Strip(strings.ToValidUTF8(s, "?"))
	var b strings.Builder
	b.Grow(len(s))
	column := 0
	for _, r := range s {
		switch {
		case r == '\t':
			n := 8 - column%8
			b.WriteString("        "[:n])
			column += n
			continue
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			continue
		}
		b.WriteRune(r)
		column++
	}
	return b.String()
}

func isPlainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// asciiFor replaces the characters that the dashboard draws with.
var asciiFor = map[string]string{
	"─": "-", "│": "|", "┊": ":", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "┬": "+", "┴": "+", "├": "+", "┤": "+", "┼": "+",
	"━": "-", "╌": "-", "█": "#", "▓": "#", "▒": "=", "░": "~", "▇": "#", "▆": "#", "▅": "*", "▄": "*", "▃": "+", "▂": "-",
	"▁": ".", "▏": "|", "▎": "|", "▍": "|", "▌": "|", "▋": "#", "▊": "#", "▉": "#",
	"·": ".", "▪": "#", "•": "*", "●": "*", "■": "#", "◆": "o", "±": "~", "○": "o", "▲": "^", "Δ": "d", "★": "M", "▼": "v", "▸": ">", "◂": "<", "…": ".", "✓": "+", "✗": "x",
	"−": "-", "×": "x", "÷": "/", "≈": "~", "≤": "<", "≥": ">", "—": "-", "–": "-", "µ": "u", "∞": "-", "↑": "^", "↓": "v", "⏎": ">", "→": ">", "←": "<", "¶": "!",
	"¹": "1", "²": "2", "³": "3", "⁴": "4", "⁵": "5", "⁶": "6", "⁷": "7",
}

// consoleSigns are those that the kernel's font for the Linux console has, and consoleFor replaces others by one of these. The
// rest is replaced as in ASCII.
const consoleSigns = "─│┬┴├┤┼█▓▒░▄▌·•■◆±○▲▼÷≈≤≥µ∞↑↓→←¶"

var consoleFor = map[string]string{
	"╭": "┌", "╮": "┐", "╰": "└", "╯": "┘", "┊": "│", "▁": "_", "▂": "_", "▃": "▄", "▅": "▄", "▆": "█", "▇": "█", "▏": "│", "●": "•",
	"▪": "■", "▸": "►", "◂": "◄", "✓": "√",
}

// shownCluster returns what a cell shows with the characters that there are.
func (c Charts) shownCluster(cluster string) string {
	if c == ASCII {
		return asciiCluster(cluster)
	}
	if c == HalfBlocks && !strings.Contains(consoleSigns, cluster) {
		if replaced, ours := asciiFor[cluster]; ours {
			return cmp.Or(consoleFor[cluster], replaced)
		}
	}
	return cluster
}

// keysInTheme writes keys: those that ASCII has no sign for by their names.
func (t *theme) keysInTheme(keys string) string {
	if t.charts == ASCII {
		return keyNames.Replace(keys)
	}
	return keys
}

// asciiCluster returns a cell of the same width without any byte above 0x7e.
func asciiCluster(cluster string) string {
	if cluster == "" || cluster[0] < 0x80 && len(cluster) == 1 {
		return cluster
	}
	if s, ok := asciiFor[cluster]; ok {
		return s
	}
	return strings.Repeat("?", ansi.StringWidth(cluster))
}
