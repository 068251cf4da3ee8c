package units

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Clean makes text from a target safe to show: valid UTF-8 on one line, without characters that control a terminal or
// change the writing direction.
func Clean[T ~string | ~[]byte](text T) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(text), "�"))
}

// Width returns how many columns clean text takes in a terminal: some characters take two, or none.
func Width(text string) int { return ansi.StringWidth(text) }

// Cut cleans text and keeps at most the first columns of it.
func Cut(text string, most int) string { return ansi.Truncate(Clean(text), most, "…") }

// CutName cleans the name of a call site, and takes out of the middle what exceeds a number of columns: names often differ at
// the end. A short place stays whole: "file.c:88 " at the beginning, or "+0x1234" at the end.
func CutName(name string, most int) string {
	name = Clean(name)
	if Width(name) <= most || most < 8 {
		return Cut(name, most)
	}
	room := most - 1 // beside the "…"
	head := ansi.Truncate(name, room*2/5, "")
	indent := len(name) - len(strings.TrimLeft(name, " "))
	if at := strings.IndexByte(name[indent:], ' '); at > 0 && Width(name[:indent+at+1]) <= room*2/3 {
		head = name[:indent+at+1]
	} else if at := strings.LastIndex(name, "+0x"); at > 0 && Width(name[at:]) <= room/2 {
		head = ansi.Truncate(name, room-Width(name[at:]), "")
	}
	tail := name[len(ansi.Truncate(name, Width(name)-(room-Width(head)), "")):]
	if Width(tail) > room-Width(head) { // a character of two columns
		_, tail = SplitAtColumn(tail, 1)
	}
	return head + "…" + tail
}

// CutNames cuts names as CutName does. Of names that then look the same it keeps what follows their common beginning, and numbers
// those that look the same still.
func CutNames(names []string, most int) []string {
	cut := make([]string, len(names))
	for i, name := range names {
		cut[i] = CutName(name, most)
	}
	for _, alike := range placesOfRepeated(cut) {
		common := Clean(names[alike[0]])
		for _, i := range alike[1:] {
			common = commonPrefix(common, Clean(names[i]))
		}
		for _, i := range alike {
			start := CutName(common, most*2/5)
			cut[i] = start + Cut(strings.TrimPrefix(Clean(names[i]), common), most-Width(start))
		}
	}
	for _, alike := range placesOfRepeated(cut) {
		for number, i := range alike {
			suffix := fmt.Sprintf(" #%d", number+1)
			cut[i] = CutName(cut[i], most-len(suffix)) + suffix
		}
	}
	return cut
}

// placesOfRepeated returns the places of texts that are several times there.
func placesOfRepeated(texts []string) map[string][]int {
	places := map[string][]int{}
	for i, text := range texts {
		places[text] = append(places[text], i)
	}
	maps.DeleteFunc(places, func(_ string, at []int) bool { return len(at) == 1 })
	return places
}

// commonPrefix returns what two texts begin with, in whole characters.
func commonPrefix(a, b string) string {
	n := 0
	for i, r := range a {
		if !strings.HasPrefix(b[i:], string(r)) {
			break
		}
		n = i + utf8.RuneLen(r)
	}
	return a[:n]
}

// SplitAtColumn cuts clean text after a number of columns, at least after its first character.
func SplitAtColumn(text string, columns int) (first, rest string) {
	first = ansi.Truncate(text, columns, "")
	if first == "" {
		_, n := utf8.DecodeRuneInString(text)
		first = text[:n]
	}
	return first, text[len(first):]
}

// ProgramName returns the last part of a program's path, "-" if the path is empty.
func ProgramName(program string) string {
	if program == "" {
		return "-"
	}
	return Clean(path.Base(program))
}

// KeepFirst bounds a list and returns how many elements it leaves out. A negative bound is none.
func KeepFirst[T any](list []T, most int) (kept []T, left int) {
	if most < 0 || len(list) <= most {
		return list, 0
	}
	return list[:most], len(list) - most
}

// glued stands for a space at which no line may end. Clean text has no such character.
const glued = "\x00"

// Wrap writes a label and text in lines of at most columns columns; further lines are indented by the width of the label.
// It breaks words that are longer than a line, and keeps a number and its percent sign together.
func Wrap(b *bytes.Buffer, columns int, label, text string) {
	indent := strings.Repeat(" ", Width(label))
	room := columns - len(indent)
	line := ""
	width := func(text string) int { return Width(strings.ReplaceAll(text, glued, " ")) }
	flush := func() {
		fmt.Fprintln(b, strings.ReplaceAll(strings.TrimRight(label+line, " "), glued, " "))
		label, line = indent, ""
	}
	for _, word := range strings.Fields(strings.ReplaceAll(text, " %", glued+"%")) {
		if line != "" && width(line)+1+width(word) > room {
			flush()
		}
		for width(word) > room {
			line, word = SplitAtColumn(word, room)
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	flush()
}
