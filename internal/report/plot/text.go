package plot

import (
	"math"
	"strconv"
	"strings"
)

// gap is a narrow space that does not break: between groups of digits, and before units.
const gap = "\u202f"

// NarrowSpaces replaces the spaces of a figure by narrow ones, at which no line breaks.
func NarrowSpaces(figure string) string { return strings.ReplaceAll(figure, " ", gap) }

// exactBytesText writes a size with at most three decimals, without zeros at its end: "768 MiB", "1.25 GiB".
func exactBytesText(v float64) string {
	unit := 0
	for v >= 1024 && unit < 6 {
		v /= 1024
		unit++
	}
	return decimalText(v, 3) + gap + [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[unit]
}

// exactTimeText writes a round time exactly, for ticks.
func exactTimeText(ns float64) string {
	switch {
	case ns == 0:
		return "0"
	case ns >= 2*minute && math.Mod(ns, second) == 0:
		return exactClockText(int64(ns / second))
	case ns >= second:
		return decimalText(ns/second, 9) + gap + "s"
	case ns >= milli:
		return decimalText(ns/milli, 6) + gap + "ms"
	case ns >= micro:
		return decimalText(ns/micro, 3) + gap + "µs"
	}
	return decimalText(ns, 0) + gap + "ns"
}

// exactClockText writes a time without units that are zero: "2m", "2m 30s", "1h", "1d 6h".
func exactClockText(s int64) string {
	var words []string
	for _, unit := range [...]struct {
		seconds int64
		name    string
	}{{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}} {
		if n := s / unit.seconds; n > 0 {
			words = append(words, strconv.FormatInt(n, 10)+unit.name)
		}
		s %= unit.seconds
	}
	return strings.Join(words, gap)
}

// decimalText writes a number with at most some decimals, without zeros at its end.
func decimalText(v float64, decimals int) string {
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
