package units

import (
	"fmt"
	"strings"
)

// nestingMax bounds the brackets that are open at a time, and the dots of one key. Reading TOML takes memory by the
// square of both.
const nestingMax = 16

// NestingError says where a text is nested too deeply.
type NestingError struct{ Line int }

// Error implements error.
func (e *NestingError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text()) }

// Text returns the error without the line.
func (e *NestingError) Text() string {
	return fmt.Sprintf("nested too deeply: want at most %d brackets or dots", nestingMax)
}

// CheckNesting refuses a TOML text whose lists, tables or dotted keys are nested deeper than any that we read: it returns a
// *NestingError.
func CheckNesting(text string) error {
	brackets, dots := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			brackets++
		case ']', '}':
			brackets = max(0, brackets-1)
		case '.':
			dots++
		case '=', ',', '\n':
			dots = 0
		case '#':
			i += len(line(text[i:])) - 1
		case '"', '\'':
			i += quoted(text[i:]) - 1
		}
		if brackets > nestingMax || dots > nestingMax {
			return &NestingError{1 + strings.Count(text[:i], "\n")}
		}
	}
	return nil
}

// line returns a text up to its line's end.
func line(text string) string {
	before, _, _ := strings.Cut(text, "\n")
	return before
}

// quoted returns the length of the string that a text starts with. A string in one quote ends with its line.
func quoted(text string) int {
	quote := text[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text, triple) {
		quote = triple
	} else {
		text = line(text)
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		case quote[0] == '"' && text[i] == '\\':
			i++
		}
	}
	return len(text)
}
