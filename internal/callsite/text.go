package callsite

import (
	"unicode/utf8"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// labelMax is the most bytes of a function's or kernel's name that Label keeps.
const labelMax = 256

// CleanText makes text from a target safe to show on a terminal: valid UTF-8 without control characters and without
// characters that change the writing direction.
func CleanText(text []byte) string { return units.Clean(text) }

// CleanFunctionName cleans the name of a function or kernel. It ends at the first NUL and has at most 256 bytes before cleaning.
func CleanFunctionName(text []byte) string {
	for i, c := range text {
		if c == 0 {
			text = text[:i]
			break
		}
	}
	if len(text) > labelMax {
		end := labelMax
		for end > labelMax-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return CleanText(text)
}
