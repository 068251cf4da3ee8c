package allocator

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is what a limit's value is.
type Kind uint8

// The kinds of limits, and how their values are written.
const (
	Number  Kind = iota // a decimal number
	Count               // a whole number
	Bytes               // whole, in bytes
	Seconds             // a decimal number
	Switch              // "off", "on"
	Choice              // one of Choices
	Sizes               // ascending sizes in bytes, "1024:4096"
)

// Limit is one setting that a policy obeys.
type Limit struct {
	Name     string
	Kind     Kind
	Text     string   // the value as SetLimit takes it
	Value    float64  // the same as a number: the place among Choices, how many Sizes
	Min, Max float64  // inclusive; of each size for Sizes
	Choices  []string // for Switch and Choice
	Help     string   // one line
}

// Setting is a limit that somebody wants.
type Setting struct {
	Name, Value string
}

// limits are the values in force.
type limits struct {
	maxCachedBytes uint64
	maxWasteRatio  float64
	minBlock       uint64
}

// limitTable defines every limit once. Value is the default for a policy that does not say otherwise.
var limitTable = [...]struct {
	Limit
	get func(*limits) float64
	set func(*limits, float64)
}{
	{
		Limit: Limit{Name: "max_cached_bytes", Value: 4 << 30, Max: 1 << 50, Kind: Bytes, Help: "most bytes that wait in the pool; beyond it the blocks freed longest ago go back to the driver"},
		get:   func(l *limits) float64 { return float64(l.maxCachedBytes) },
		set:   func(l *limits, v float64) { l.maxCachedBytes = uint64(v) },
	},
	{
		Limit: Limit{Name: "max_waste_ratio", Value: 2, Min: 1, Max: 1024, Help: "a block of another tag serves a request only if it is less than this many times as large"},
		get:   func(l *limits) float64 { return l.maxWasteRatio },
		set:   func(l *limits, v float64) { l.maxWasteRatio = v },
	},
	{
		Limit: Limit{Name: "min_block", Value: 4096, Min: 1, Max: 1 << 30, Kind: Bytes, Help: "blocks below this size are never too wasteful (futhark); requests are rounded up to at least this (pow2)"},
		get:   func(l *limits) float64 { return float64(l.minBlock) },
		set:   func(l *limits, v float64) { l.minBlock = uint64(v) },
	},
}

// ParseSettings reads "name=value,name=value"; an empty text has no settings. It does not know which names exist, nor
// what their values may be.
func ParseSettings(text string) ([]Setting, error) {
	if text == "" {
		return nil, nil
	}
	var settings []Setting
	for field := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(field, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("bad limit %q: want NAME=VALUE", field)
		}
		settings = append(settings, Setting{name, value})
	}
	return settings, nil
}

// isDecimal accepts digits with at most one point between them; ParseFloat also takes signs, exponents, hexadecimal,
// underscores, "inf" and "nan".
func isDecimal(s string) bool {
	whole, fraction, pointed := strings.Cut(s, ".")
	return isDigits(whole) && (!pointed || isDigits(fraction))
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// check returns the position of a limit in the table, if a policy that obeys names may set it to value.
func check(policy string, names []string, name, text string) (int, float64, error) {
	for i := range limitTable {
		l := &limitTable[i]
		if l.Name != name {
			continue
		}
		if !contains(names, name) {
			return 0, 0, fmt.Errorf("policy %s has no limit %s: it has %s", policy, name, list(names))
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || !isDecimal(text) || value < l.Min || value > l.Max {
			return 0, 0, fmt.Errorf("limit %s: %s is out of range: policy %s wants %s to %s", name, text, policy, number(l.Min), number(l.Max))
		}
		return i, value, nil
	}
	return 0, 0, fmt.Errorf("unknown limit %q: policy %s has %s", name, policy, list(names))
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
