package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Count writes a number of things, whose plural takes an s.
func Count(n uint64, thing string) string { return Plural(n, thing, thing+"s") }

// Plural writes a number of things: "1 miss", "2 misses".
func Plural(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatUint(n, 10) + " " + many
}

// JSONKey writes words as a key in JSON: "too_small".
func JSONKey(words string) string { return keys.Replace(words) }

var keys = strings.NewReplacer(" ", "_", "-", "_")

// FormatGrouped writes a number with its thousands apart: "1 234 567".
func FormatGrouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// FormatCompact writes a number of 0 or more in at most five columns: "1.5", "999", "1.5k", "12.0M".
func FormatCompact(v float64) string {
	switch {
	case v < 10 && v != math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v < 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v < 1e6:
		return strconv.FormatFloat(v/1e3, 'f', 1, 64) + "k"
	case v < 1e9:
		return strconv.FormatFloat(v/1e6, 'f', 1, 64) + "M"
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// FormatRate writes bytes per second, "" for less than 52.
func FormatRate(v float64) string { return formatRateWith(v, math.Round) }

// FormatRateAtLeast is Rate for what is at least so much: it rounds down, "" below 103.
func FormatRateAtLeast(v float64) string { return formatRateWith(v, math.Floor) }

// formatRateWith writes bytes per second with one decimal, rounded by a function.
func formatRateWith(v float64, round func(float64) float64) string {
	unit, name := float64(1<<30), "GiB/s"
	switch {
	case v < 100<<10:
		unit, name = 1<<10, "KiB/s"
	case v < 100<<20:
		unit, name = 1<<20, "MiB/s"
	}
	if v = round(v/unit*10) / 10; v == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %s", v, name)
}

// Percent writes a rate with one decimal, as PercentDigits does: "12.5 %". A rate of nothing is "-".
func Percent(rate float64, of uint64) string {
	if of == 0 {
		return "-"
	}
	return PercentDigits(rate) + " %"
}

// PercentDigits writes a rate in percent with one decimal. Only all is 100.0, and only nothing is 0.0: what would round to
// all has two decimals, rounded down, and hardly anything has two, rounded up.
func PercentDigits(rate float64) string {
	switch percent := 100 * rate; {
	case percent > 0 && percent < 0.1:
		return strconv.FormatFloat(math.Ceil(percent*100)/100, 'f', 2, 64)
	case percent >= 99.95 && percent < 100:
		return strconv.FormatFloat(math.Floor(percent*100)/100, 'f', 2, 64)
	default:
		return strconv.FormatFloat(percent, 'f', 1, 64)
	}
}

// Duration writes ns to about three digits: "999ns", "1.23ms", "12.3s".
func Duration(ns uint64) string {
	d := time.Duration(min(ns, 1<<62))
	for unit := time.Second; unit >= time.Microsecond; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// DurationOfComputed writes computed ns, rounded, as Duration does. They may be below 0.
func DurationOfComputed(ns float64) string {
	if ns < 0 {
		return "-" + Duration(uint64(math.Round(-ns)))
	}
	return Duration(uint64(math.Round(ns)))
}

// DurationLong writes ns to three digits with a space before the unit: "1.25 ms", "12.5 s"; from 100 s on to a second,
// from an hour on to a minute: "2m 05s", "3h 10m", "2d 04h".
func DurationLong(ns float64) string {
	for _, unit := range [...]struct {
		ns   float64
		name string
	}{{1e9, " s"}, {1e6, " ms"}, {1e3, " µs"}} {
		switch {
		case ns >= 99.95e9:
			return formatHours(int64(math.Round(ns / 1e9)))
		case ns >= 0.9995*unit.ns:
			return formatThreeDigits(ns/unit.ns) + unit.name
		}
	}
	return strconv.FormatFloat(ns, 'f', 0, 64) + " ns"
}

// formatHours writes a long duration in its two largest units.
func formatHours(s int64) string {
	switch {
	case s < 3600:
		return fmt.Sprintf("%dm %02ds", s/60, s%60)
	case s < 48*3600:
		return fmt.Sprintf("%dh %02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd %02dh", s/86400, s/3600%24)
}

// formatThreeDigits writes three digits.
func formatThreeDigits(v float64) string {
	switch {
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// FormatClock writes ns as mm:ss, h:mm:ss, or days and hours: "05:07", "1:02:03", "2 d 03 h".
func FormatClock(ns uint64) string {
	s := ns / uint64(time.Second)
	switch {
	case s < 3600:
		return fmt.Sprintf("%02d:%02d", s/60, s%60)
	case s < 48*3600:
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d d %02d h", s/86400, s/3600%24)
}

// FormatSpan writes seconds that a person set: "1.5s", "30s", "1h30m".
func FormatSpan(seconds float64) string {
	if seconds < 60 {
		return strconv.FormatFloat(seconds, 'g', 4, 64) + "s"
	}
	text := time.Duration(min(seconds, 1e9) * float64(time.Second)).Round(time.Second).String()
	if short, cut := strings.CutSuffix(text, "m0s"); cut {
		text = short + "m"
	}
	if short, cut := strings.CutSuffix(text, "h0m"); cut {
		text = short + "h"
	}
	return text
}

// SecondsBetween returns the seconds between two times in ns, 0 when they are out of order.
func SecondsBetween(from, to uint64) float64 { return float64(max(from, to)-from) / 1e9 }
