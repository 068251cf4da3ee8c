package main

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A cell in user units: a font of this size advances so much in DejaVu Sans Mono and its relatives (0.602 em).
const (
	fontSize = 14.0
	cellW    = 8.43
	cellH    = 17.0
	baseline = 13.0
	margin   = 10.0
)

const (
	paper = "#0f1318"
	ink   = "#d5dae3"
)

// writeSVG draws the lines. A failed write shows when the writer is flushed.
func writeSVG(w *bufio.Writer, lines [][]glyph) {
	columns := 1
	for _, row := range lines {
		if n := len(row); n > 0 {
			columns = max(columns, row[n-1].x+row[n-1].n)
		}
	}
	width, height := float64(columns)*cellW+2*margin, float64(len(lines))*cellH+2*margin
	printf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.2f %.2f" `+
		`font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="%g">`+"\n", width, height, width, height, fontSize)
	printf(w, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", paper)
	for y, row := range lines {
		writeRow(w, row, margin+float64(y)*cellH)
	}
	printf(w, "</svg>\n")
}

// printf leaves errors to the writer's flush.
func printf(w *bufio.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// colours returns ink and paper of a look; the paper is empty where nothing needs painting.
func (l look) colours() (fore, back string) {
	fore, back = l.fore, l.back
	if fore == "" {
		fore = ink
	}
	if l.reverse {
		if back == "" {
			back = paper
		}
		return back, fore
	}
	return fore, back
}

func writeRow(w *bufio.Writer, row []glyph, y float64) {
	for i := 0; i < len(row); {
		end, n := i+1, row[i].n
		for end < len(row) && row[end].style == row[i].style {
			n += row[end].n
			end++
		}
		writeRun(w, row[i:end], n, y)
		i = end
	}
}

// writeRun draws glyphs of one look: their background, then shapes and pieces of text.
func writeRun(w *bufio.Writer, run []glyph, n int, y float64) {
	fore, back := run[0].style.colours()
	left := margin + float64(run[0].x)*cellW
	if back != "" {
		printf(w, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"/>`+"\n", left, y, float64(n)*cellW, cellH, back)
	}
	var shapes strings.Builder
	for i := 0; i < len(run); {
		if shape := shapeOf(run[i].text, margin+float64(run[i].x)*cellW, y); shape != "" {
			shapes.WriteString(shape)
			i++
			continue
		}
		end := i + 1
		for isASCII(run[i].text) && end < len(run) && isASCII(run[end].text) {
			end++
		}
		writeText(w, run[i:end], y, fore)
		i = end
	}
	if d := strings.TrimSpace(shapes.String()); d != "" {
		printf(w, `<path fill="%s" d="%s"/>`+"\n", fore, d)
	}
}

func isASCII(s string) bool { return len(s) == 1 && s[0] < utf8.RuneSelf }

func writeText(w *bufio.Writer, run []glyph, y float64, fore string) {
	for len(run) > 0 && run[0].text == " " {
		run = run[1:]
	}
	for len(run) > 0 && run[len(run)-1].text == " " {
		run = run[:len(run)-1]
	}
	if len(run) == 0 {
		return
	}
	var text strings.Builder
	n := 0
	for _, g := range run {
		text.WriteString(g.text)
		n += g.n
	}
	attributes := ""
	l := run[0].style
	if l.bold {
		attributes += ` font-weight="bold"`
	}
	if l.italic {
		attributes += ` font-style="italic"`
	}
	if l.underline {
		attributes += ` text-decoration="underline"`
	}
	if l.faint {
		attributes += ` opacity="0.6"`
	}
	printf(w, `<text x="%.2f" y="%.2f" textLength="%.2f" fill="%s" xml:space="preserve"%s>`,
		margin+float64(run[0].x)*cellW, y+baseline, float64(n)*cellW, fore, attributes)
	_ = xml.EscapeText(w, []byte(text.String())) // a failed write shows when the writer is flushed
	printf(w, "</text>\n")
}
