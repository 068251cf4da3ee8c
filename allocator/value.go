package allocator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// sizesMax bounds a list of sizes.
const sizesMax = 64

// ValuesText says which values a limit takes.
func (l *Limit) ValuesText() string {
	switch {
	case l.Choices != nil:
		return "one of " + strings.Join(l.Choices, ", ")
	case l.Kind == Sizes:
		return fmt.Sprintf("1 to %d ascending sizes of %s to %s, like 4096:65536", sizesMax, formatDecimal(l.Min), formatDecimal(l.Max))
	}
	return formatDecimal(l.Min) + " to " + formatDecimal(l.Max)
}

// parseNumber reads a plain decimal within a limit's range.
func parseNumber(text string, l *Limit) (float64, bool) {
	value, err := strconv.ParseFloat(text, 64)
	return value, err == nil && isUnsignedDecimal(text) && value >= l.Min && value <= l.Max
}

func parseWholeNumber[T uint | uint64](text string, l *Limit) (T, bool) {
	value, err := strconv.ParseUint(text, 10, 64)
	return T(value), err == nil && isDigits(text) && float64(value) >= l.Min && float64(value) <= l.Max
}

func parseChoice(text string, choices []string) (int, bool) {
	index := slices.Index(choices, text)
	return index, index >= 0
}

func parseSizes(text string, l *Limit) (sizes []uint64, ok bool) {
	for field := range strings.SplitSeq(text, ":") {
		size, ok := parseWholeNumber[uint64](field, l)
		if !ok || len(sizes) == sizesMax || len(sizes) > 0 && size <= sizes[len(sizes)-1] {
			return nil, false
		}
		sizes = append(sizes, size)
	}
	return sizes, true
}

func formatSizes(sizes []uint64) string {
	texts := make([]string, len(sizes))
	for i, size := range sizes {
		texts[i] = strconv.FormatUint(size, 10)
	}
	return strings.Join(texts, ":")
}

// isUnsignedDecimal accepts digits with at most one point between them; ParseFloat also takes signs, exponents, hexadecimal,
// underscores, "inf" and "nan".
func isUnsignedDecimal(s string) bool {
	whole, fraction, pointed := strings.Cut(s, ".")
	return isDigits(whole) && (!pointed || isDigits(fraction))
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// textForError returns a value as an error shows it: in quotes, unless it is one plain word.
func textForError(text string) string {
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || r > '~' }) < 0 {
		return text
	}
	return strconv.Quote(text)
}

func namesOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func formatDecimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
