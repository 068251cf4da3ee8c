package plain

import (
	"bytes"
	"fmt"
	"strings"
)

// glued stands for a space at which no line ends. No text has it: it is a control character.
const glued = "\x00"

// Wrap writes a text behind a label, in lines of at most so many columns; what does not fit goes on below, as far in as the
// label reaches. A word that is longer than a line is broken; a number stays with its percent sign.
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
			line, word = Split(word, room)
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	flush()
}
