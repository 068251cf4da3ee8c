package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// shapeOf returns path data for a character that is drawn instead of written, "" for all others.
func shapeOf(text string, x, y float64) string {
	r, size := utf8.DecodeRuneInString(text)
	if size != len(text) {
		return ""
	}
	switch {
	case r >= 0x2800 && r <= 0x28ff:
		return braille(byte(r-0x2800), x, y)
	case r >= 0x2580 && r <= 0x259f:
		return block(r, x, y)
	}
	if l, ok := lines[r]; ok {
		return l.path(x, y)
	}
	return ""
}

func box(x, y, w, h float64) string {
	return fmt.Sprintf("M%.2f %.2fh%.2fv%.2fh%.2fz ", x, y, w, h, -w)
}

// braille draws the dots of a pattern. Bits 0-2 and 6 are the left column from the top, 3-5 and 7 the right one.
func braille(pattern byte, x, y float64) string {
	const dotW, dotH = cellW / 2, cellH / 4
	if pattern == 0 {
		return " " // nothing to draw, and no text either
	}
	var b strings.Builder
	for bit, place := range [8][2]float64{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {0, 3}, {1, 3}} {
		if pattern>>bit&1 == 1 {
			b.WriteString(box(x+place[0]*dotW+0.4, y+place[1]*dotH+0.4, dotW-0.8, dotH-0.8))
		}
	}
	return b.String()
}

// block draws U+2580-259F: eighths from the bottom or the left, shades as dots, quadrants.
func block(r rune, x, y float64) string {
	switch {
	case r == '▀':
		return box(x, y, cellW, cellH/2)
	case r <= '█':
		h := cellH * float64(r-0x2580) / 8
		return box(x, y+cellH-h, cellW, h)
	case r <= '▏':
		return box(x, y, cellW*float64(0x2590-r)/8, cellH)
	case r == '▐':
		return box(x+cellW/2, y, cellW/2, cellH)
	case r <= '▓':
		return shade(int(r-'░')+1, x, y)
	case r == '▔':
		return box(x, y, cellW, cellH/8)
	case r == '▕':
		return box(x+cellW*7/8, y, cellW/8, cellH)
	}
	return quadrants(r, x, y)
}

// shade fills level quarters of a cell with a pattern that joins that of its neighbours.
func shade(level int, x, y float64) string {
	const columns, rows = 4, 8
	var b strings.Builder
	for row := range rows {
		for column := range columns {
			even, half := (row+column)%2 == 0, row%2 == 0
			if level == 1 && even && half || level == 2 && even || level == 3 && (even || half) {
				b.WriteString(box(x+float64(column)*cellW/columns, y+float64(row)*cellH/rows, cellW/columns, cellH/rows))
			}
		}
	}
	return b.String()
}

// quadrantBits are the filled quarters of U+2596-259F: 1 upper left, 2 upper right, 4 lower left, 8 lower right.
var quadrantBits = [...]int{4, 8, 1, 13, 9, 7, 11, 2, 6, 14}

func quadrants(r rune, x, y float64) string {
	var b strings.Builder
	for bit := range 4 {
		if quadrantBits[r-0x2596]>>bit&1 == 1 {
			b.WriteString(box(x+float64(bit%2)*cellW/2, y+float64(bit/2)*cellH/2, cellW/2, cellH/2))
		}
	}
	return b.String()
}

// line says which arms of a box-drawing character there are, and whether its corner is round.
type line struct {
	up, right, down, left bool
	round, heavy          bool
}

var lines = map[rune]line{
	'─': {right: true, left: true}, '│': {up: true, down: true},
	'━': {right: true, left: true, heavy: true}, '┃': {up: true, down: true, heavy: true},
	'┌': {right: true, down: true}, '┐': {left: true, down: true}, '└': {up: true, right: true}, '┘': {up: true, left: true},
	'╭': {right: true, down: true, round: true}, '╮': {left: true, down: true, round: true},
	'╰': {up: true, right: true, round: true}, '╯': {up: true, left: true, round: true},
	'├': {up: true, down: true, right: true}, '┤': {up: true, down: true, left: true},
	'┬': {left: true, right: true, down: true}, '┴': {left: true, right: true, up: true},
	'┼': {up: true, right: true, down: true, left: true},
}

func (l line) path(x, y float64) string {
	thick := 1.1
	if l.heavy {
		thick = 2.4
	}
	const cx, cy = cellW / 2, cellH / 2
	if l.round {
		return l.corner(x, y, thick)
	}
	var b strings.Builder
	if l.left {
		b.WriteString(box(x, y+cy-thick/2, cx+thick/2, thick))
	}
	if l.right {
		b.WriteString(box(x+cx-thick/2, y+cy-thick/2, cx+thick/2, thick))
	}
	if l.up {
		b.WriteString(box(x+cx-thick/2, y, thick, cy+thick/2))
	}
	if l.down {
		b.WriteString(box(x+cx-thick/2, y+cy-thick/2, thick, cy+thick/2))
	}
	return b.String()
}

// corner draws a quarter of a ring between the middles of two edges, with a straight piece up or down to the edge.
func (l line) corner(x, y, thick float64) string {
	const cx, cy = cellW / 2, cellH / 2
	sx, sy := 1.0, 1.0 // towards the arms
	if l.left {
		sx = -1
	}
	if l.up {
		sy = -1
	}
	outer, inner := cx+thick/2, cx-thick/2
	mx, my := x+cx, y+cy
	sweep, back := 1, 0 // clockwise as seen, for arms right and down
	if sx*sy < 0 {
		sweep, back = 0, 1
	}
	return fmt.Sprintf("M%.2f %.2fV%.2fA%.2f %.2f 0 0 %d %.2f %.2fV%.2fA%.2f %.2f 0 0 %d %.2f %.2fV%.2fz ",
		mx-sx*thick/2, my+sy*cy, my+sy*cx,
		outer, outer, sweep, mx+sx*cx, my-sy*thick/2,
		my+sy*thick/2,
		inner, inner, back, mx+sx*thick/2, my+sy*cx,
		my+sy*cy)
}
