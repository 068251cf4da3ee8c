package plot

import (
	"math"
	"strconv"
	"strings"
)

// gap is a narrow space that does not break: between groups of digits, and before units.
const gap = "\u202f"

// BytesText writes a size as short as it is exact, to three decimals: "768 MiB", "1.25 GiB".
func BytesText(v float64) string {
	unit := 0
	for v >= 1024 && unit < 6 {
		v /= 1024
		unit++
	}
	return trim(v, 3) + gap + [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[unit]
}

// CountText writes a count in groups of three digits; up to four digits stay together.
func CountText(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	if len(digits) <= 4 {
		return digits
	}
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteString(gap)
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// DurationText writes ns to three digits: "1.25 ms", "12.5 s"; from 100 s on to a second, from an hour on to a minute.
func DurationText(ns float64) string {
	switch {
	case ns >= 99.95*second:
		return clock(ns)
	case ns >= 0.9995*second:
		return digits(ns/second) + gap + "s"
	case ns >= 0.9995*milli:
		return digits(ns/milli) + gap + "ms"
	case ns >= 0.9995*micro:
		return digits(ns/micro) + gap + "µs"
	}
	return trim(ns, 0) + gap + "ns"
}

// clock writes a long duration as "2m 05s", "3h 10m" or "2d 4h".
func clock(ns float64) string {
	two := func(n int64) string { return strconv.Itoa(int(100 + n))[1:] }
	s := int64(math.Round(ns / second))
	switch {
	case s < 3600:
		return strconv.FormatInt(s/60, 10) + "m" + gap + two(s%60) + "s"
	case s < 48*3600:
		return strconv.FormatInt(s/3600, 10) + "h" + gap + two(s/60%60) + "m"
	}
	return strconv.FormatInt(s/86400, 10) + "d" + gap + strconv.FormatInt(s/3600%24, 10) + "h"
}

// moment writes a round time exactly: what ticks are labelled with.
func moment(ns float64) string {
	switch {
	case ns == 0:
		return "0"
	case ns >= 2*minute && math.Mod(ns, second) == 0:
		return clockExact(int64(ns / second))
	case ns >= second:
		return trim(ns/second, 9) + gap + "s"
	case ns >= milli:
		return trim(ns/milli, 6) + gap + "ms"
	case ns >= micro:
		return trim(ns/micro, 3) + gap + "µs"
	}
	return trim(ns, 0) + gap + "ns"
}

// clockExact leaves out what is zero: "2m", "2m 30s", "1h", "1d 6h".
func clockExact(s int64) string {
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

// digits writes three digits.
func digits(v float64) string {
	switch {
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// trim writes a number to some decimals, without zeros at its end.
func trim(v float64, decimals int) string {
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// DecimalBytes writes a size to three digits: "1.43 GiB".
func DecimalBytes(v float64) string {
	unit := 0
	for v >= 1023.5 && unit < 6 {
		v /= 1024
		unit++
	}
	if unit == 0 {
		return trim(v, 0) + gap + "B"
	}
	return digits(v) + gap + [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[unit]
}
