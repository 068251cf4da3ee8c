// Package plain writes figures as plain text for people: counts, rates, durations, tables, and the sentences that
// summary and report share. It reads no clock.
package plain

import (
	"bytes"
	"fmt"
	"path"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// Clean makes text of a target safe to print: valid UTF-8 on one line, without characters that control a terminal or
// change the writing direction.
func Clean(text string) string { return model.Clean([]byte(text)) }

// Count writes a number of things, whose plural takes an s.
func Count(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Misses writes a number of misses.
func Misses(n uint64) string {
	if n == 1 {
		return "1 miss"
	}
	return fmt.Sprintf("%d misses", n)
}

// Percent writes a rate; a rate of nothing is no number.
func Percent(rate float64, of uint64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*rate)
}

// Duration rounds ns to three digits or so.
func Duration(ns uint64) string {
	d := time.Duration(min(ns, 1<<62))
	for unit := time.Second; unit >= time.Microsecond; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// Seconds are those between two times in ns, 0 when they are out of order.
func Seconds(from, to uint64) float64 {
	if to < from {
		return 0
	}
	return float64(to-from) / 1e9
}

// Width is how many columns clean text takes in a terminal: some characters take two, or none.
func Width(text string) int { return ansi.StringWidth(text) }

// Cut bounds text to a number of columns, keeping its beginning.
func Cut(text string, most int) string { return ansi.Truncate(Clean(text), most, "…") }

// Split cuts clean text behind its first columns, at least behind its first character.
func Split(text string, columns int) (first, rest string) {
	first = ansi.Truncate(text, columns, "")
	if first == "" {
		_, n := utf8.DecodeRuneInString(text)
		first = text[:n]
	}
	return first, text[len(first):]
}

// ProgramName is the last part of a program's path.
func ProgramName(program string) string {
	if program == "" {
		return "-"
	}
	return Clean(path.Base(program))
}

// Top bounds a list and tells how many it leaves out; a negative bound is none.
func Top[T any](list []T, most int) (kept []T, left int) {
	if most < 0 || len(list) <= most {
		return list, 0
	}
	return list[:most], len(list) - most
}

// Pairs aligns names and their values, which stand left; those without a value are left out.
func Pairs(b *bytes.Buffer, rows [][2]string) {
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(b, "%-12s %s\n", row[0], row[1])
		}
	}
}
