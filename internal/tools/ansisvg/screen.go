package main

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// look is how a cell is painted; colours are #rrggbb, empty for the default.
type look struct {
	fore, back            string
	bold, italic, reverse bool
	underline, faint      bool
}

// glyph is one cluster on the screen.
type glyph struct {
	text  string
	x, n  int // column and width
	style look
}

// parse returns the glyphs of each line. Escape sequences other than SGR are ignored.
func parse(s string) [][]glyph {
	s = strings.TrimRight(strings.ReplaceAll(s, "\r", ""), "\n")
	var lines [][]glyph
	var now look
	for _, line := range strings.Split(s, "\n") {
		var row []glyph
		row, now = parseLine(line, now)
		lines = append(lines, row)
	}
	return lines
}

func parseLine(line string, now look) ([]glyph, look) {
	var row []glyph
	x := 0
	var state byte
	p := ansi.NewParser()
	for len(line) > 0 {
		seq, n, size, next := ansi.GraphemeWidth.DecodeSequenceInString(line, state, p)
		if size <= 0 {
			break
		}
		state, line = next, line[size:]
		if n > 0 {
			row = append(row, glyph{seq, x, n, now})
			x += n
			continue
		}
		if body, ok := strings.CutPrefix(seq, "\x1b["); ok && strings.HasSuffix(body, "m") {
			now = now.apply(strings.TrimSuffix(body, "m"))
		}
	}
	return row, now
}

// apply changes a look by the parameters of an SGR sequence (ECMA-48, 8.3.117).
func (l look) apply(params string) look {
	fields := strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' })
	if len(fields) == 0 {
		return look{}
	}
	codes := make([]int, len(fields))
	for i, f := range fields {
		codes[i], _ = strconv.Atoi(f) // what is no number resets, like an empty parameter
	}
	for i := 0; i < len(codes); i++ {
		switch c := codes[i]; {
		case c == 38 || c == 48:
			colour, used := extended(codes[i+1:])
			if c == 38 {
				l.fore = colour
			} else {
				l.back = colour
			}
			i += used
		case c >= 30 && c <= 37:
			l.fore = palette(c - 30)
		case c >= 90 && c <= 97:
			l.fore = palette(c - 90 + 8)
		case c >= 40 && c <= 47:
			l.back = palette(c - 40)
		case c >= 100 && c <= 107:
			l.back = palette(c - 100 + 8)
		default:
			l = l.attribute(c)
		}
	}
	return l
}

func (l look) attribute(c int) look {
	switch c {
	case 0:
		return look{}
	case 1:
		l.bold = true
	case 2:
		l.faint = true
	case 3:
		l.italic = true
	case 4:
		l.underline = true
	case 7:
		l.reverse = true
	case 22:
		l.bold, l.faint = false, false
	case 23:
		l.italic = false
	case 24:
		l.underline = false
	case 27:
		l.reverse = false
	case 39:
		l.fore = ""
	case 49:
		l.back = ""
	}
	return l
}

// extended reads what follows 38 or 48 and returns how many parameters it used.
func extended(codes []int) (string, int) {
	switch {
	case len(codes) >= 2 && codes[0] == 5:
		return palette(codes[1]), 2
	case len(codes) >= 4 && codes[0] == 2:
		return rgb(codes[1], codes[2], codes[3]), 4
	}
	return "", len(codes)
}

func rgb(r, g, b int) string {
	const hex = "0123456789abcdef"
	out := []byte{'#'}
	for _, v := range [...]int{r, g, b} {
		out = append(out, hex[v>>4&15], hex[v&15])
	}
	return string(out)
}

// sixteen are the first colours of the palette: xterm leaves them to the terminal, so these only need to look right.
var sixteen = [16]string{
	"#1e222a", "#e06c75", "#7fc47f", "#d9a94a", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4",
	"#5c6370", "#ff7b86", "#98e098", "#f0c674", "#7cc0ff", "#d898ee", "#76d5e0", "#ffffff",
}

// palette returns a colour of xterm's 256: sixteen, a 6×6×6 cube, and 24 greys.
func palette(i int) string {
	switch {
	case i < 0 || i > 255:
		return ""
	case i < 16:
		return sixteen[i]
	case i >= 232:
		v := 8 + 10*(i-232)
		return rgb(v, v, v)
	}
	level := func(v int) int {
		if v == 0 {
			return 0
		}
		return 55 + 40*v
	}
	i -= 16
	return rgb(level(i/36), level(i/6%6), level(i%6))
}
