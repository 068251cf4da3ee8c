// Package units reads and writes sizes as people do, and formats counts, rates, durations, wrapped text and tables. Units
// of memory are powers of 1024 under all their names: K, KB and KiB mean the same.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units in rising order.
const units = "KMGTPE"

// ParseSize reads "512MiB", "1.5g", "64k" or "4096". The result is rounded to whole bytes.
func ParseSize(s string) (uint64, error) {
	digits := strings.TrimRight(s, "KMGTPEIBkmgtpeib ")
	factor, ok := bytesOfUnit(strings.TrimSpace(s[len(digits):]))
	value, err := strconv.ParseFloat(digits, 64)
	plain := strings.Trim(digits, "0123456789.") == ""
	if !ok || err != nil || !plain || value < 0 {
		return 0, fmt.Errorf("bad size %q: want a number with an optional unit K, M, G, T (of 1024), for example 512MiB", s)
	}
	if bytes := value * factor; bytes < math.MaxUint64 {
		return uint64(math.Round(bytes)), nil
	}
	return 0, fmt.Errorf("bad size %q: more than 16 EiB", s)
}

// bytesOfUnit returns the bytes of a unit: "", B, K, KB, KiB and so on, in any case.
func bytesOfUnit(unit string) (float64, bool) {
	unit = strings.ToUpper(unit)
	if unit == "" || unit == "B" {
		return 1, true
	}
	power := strings.IndexByte(units, unit[0])
	if rest := unit[1:]; power < 0 || (rest != "" && rest != "B" && rest != "IB") {
		return 0, false
	}
	return math.Pow(1024, float64(power+1)), true
}

// Format writes a size short, for tables: "12", "64.0K", "1.43G". It keeps three digits or more.
func Format(n uint64) string {
	value, unit := valueAndUnit(n)
	if unit == "" {
		return strconv.FormatUint(n, 10)
	}
	return formatShortDecimals(value) + unit
}

// FormatLong writes a size with its full unit, for sentences: "12 B", "1.43 GiB".
func FormatLong(n uint64) string {
	value, unit := valueAndUnit(n)
	if unit == "" {
		return strconv.FormatUint(n, 10) + " B"
	}
	return formatShortDecimals(value) + " " + unit + "iB"
}

// FormatApart writes two sizes as FormatLong does, and with more decimals where different sizes would look equal.
func FormatApart(a, b uint64) (first, second string) {
	first, second = FormatLong(a), FormatLong(b)
	x, unit := valueAndUnit(a)
	y, _ := valueAndUnit(b)
	for digits := 2; x != y && first == second; digits++ {
		first, second = strconv.FormatFloat(x, 'f', digits, 64)+" "+unit+"iB", strconv.FormatFloat(y, 'f', digits, 64)+" "+unit+"iB"
	}
	return first, second
}

// valueAndUnit returns n in the largest unit that leaves at least 1. What would round up to 1024 takes the next unit.
func valueAndUnit(n uint64) (float64, string) {
	value, power := float64(n), 0
	for value >= 1023.95 && power < len(units) {
		value /= 1024
		power++
	}
	if power == 0 {
		return value, ""
	}
	return value, units[power-1 : power]
}

// formatShortDecimals keeps two decimals below 10 and one from there on.
func formatShortDecimals(v float64) string {
	if v < 9.995 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
