package tune

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// pageBytes is the multiple that amounts of memory are rounded to.
const pageBytes = 4096

// axis is one limit of a policy with the values that are tried first, ascending.
type axis struct {
	limit  allocator.Limit
	values []string
}

// isMemoryAmount reports whether a limit is an amount of memory, whose good values depend on how much memory the program has.
func isMemoryAmount(l *allocator.Limit) bool { return l.Kind == allocator.Bytes && l.Max > 1<<40 }

// axesToVary returns the limits of a policy that can be varied. peak is how many bytes the program has at one time.
func axesToVary(policy string, peak uint64) []axis {
	d, _ := allocator.DescribePolicy(policy)
	var list []axis
	for i := range d.Limits {
		l := d.Limits[i]
		if values := valuesToTry(&l, peak); len(values) > 0 {
			list = append(list, axis{l, values})
		}
	}
	return list
}

// valuesToTry returns values of a limit that are so far apart that they make a difference: sizes by a factor of 2 or 4,
// other numbers from the smallest on.
func valuesToTry(l *allocator.Limit, peak uint64) (values []string) {
	numbers := func(list ...float64) {
		for _, v := range list {
			if v >= l.Min && v <= l.Max {
				values = append(values, strconv.FormatFloat(v, 'f', -1, 64))
			}
		}
	}
	if l.Zero == "no limit" {
		numbers(0)
	}
	switch {
	case isMemoryAmount(l):
		for _, part := range []float64{1. / 8, 1. / 4, 1. / 2, 1, 2, 4} {
			numbers(roundUpToPages(part * float64(peak)))
		}
	case l.Kind == allocator.Bytes:
		for v := 256.; v <= min(l.Max, float64(max(peak, pageBytes))); v *= 4 {
			numbers(v)
		}
	case l.Kind == allocator.Count:
		numbers(0, 1, 2, 3, 4, 6, 8, 16, 32, 128)
	case l.Kind == allocator.Number && l.Max > 1: // limits up to 1 are shares of the device's memory, which amounts cover
		for _, factor := range []float64{1, 1.25, 1.5, 2, 3, 4, 8, 16} {
			numbers(factor * max(l.Min, 1))
		}
	case l.Kind == allocator.Seconds:
		numbers(0.01, 0.1, 1, 10)
	case l.Kind == allocator.Sizes:
		for _, factor := range []uint64{2, 4, 16} {
			values = append(values, sizesByFactor(factor))
		}
	default:
		return l.Choices
	}
	return slices.Compact(values) // counts begin with 0 anyway
}

// roundUpToPages rounds an amount of memory up to pages.
func roundUpToPages(bytes float64) float64 { return max(1, math.Ceil(bytes/pageBytes)) * pageBytes }

// sizesByFactor returns sizes from 1 KiB to 256 MiB.
func sizesByFactor(factor uint64) string {
	var sizes []string
	for v := uint64(1 << 10); v <= 1<<28; v *= factor {
		sizes = append(sizes, strconv.FormatUint(v, 10))
	}
	return strings.Join(sizes, ":")
}

// withLimit returns a configuration with a limit at a value, false if that is invalid.
func withLimit(c replay.Configuration, name, value string) (replay.Configuration, bool) {
	next := c.WithLimit(name, value)
	if _, err := allocator.New(next.Policy, next.Settings); err != nil {
		return replay.Configuration{}, false
	}
	return normalize(next), true
}

// normalize returns a configuration in its normal form: limits in the order of the policy, without those at their
// defaults.
func normalize(c replay.Configuration) replay.Configuration {
	d, _ := allocator.DescribePolicy(c.Policy)
	next := replay.Configuration{Policy: c.Policy}
	for i := range d.Limits {
		l := &d.Limits[i]
		for _, s := range c.Settings {
			if s.Name == l.Name && s.Value != l.Text {
				next.Settings = append(next.Settings, s)
			}
		}
	}
	return next
}

// neighbours returns the configurations that differ in one limit: it has another value of its axis, its default, or, if
// it is an amount of memory, a value close to the present one.
func neighbours(c replay.Configuration, peak uint64) []replay.Configuration {
	var list []replay.Configuration
	for _, a := range axesToVary(c.Policy, peak) {
		values := append([]string{a.limit.Text}, a.values...)
		if isMemoryAmount(&a.limit) {
			values = append(values, nearbyAmounts(c, a.limit.Name)...)
		}
		for _, value := range values {
			if next, ok := withLimit(c, a.limit.Name, value); ok && next.String() != c.String() {
				list = append(list, next)
			}
		}
	}
	return list
}

// nearbyAmounts returns amounts about 20 % and 40 % below and above the amount that a configuration sets, or nil if the
// configuration does not set the limit.
func nearbyAmounts(c replay.Configuration, name string) (values []string) {
	for _, s := range c.Settings {
		bytes, err := strconv.ParseFloat(s.Value, 64)
		if s.Name != name || err != nil || bytes == 0 {
			continue
		}
		for _, power := range []float64{-0.5, -0.25, 0.25, 0.5} {
			values = append(values, strconv.FormatFloat(roundUpToPages(bytes*math.Exp2(power)), 'f', -1, 64))
		}
	}
	return values
}
