package ui

import (
	"math"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

const none = "—" // in place of a number

// bytesText formats a size in a few columns.
func bytesText(v uint64) string {
	switch {
	case v == 0:
		return "0"
	case v < 1024:
		return strconv.FormatUint(v, 10) + " B"
	}
	return units.Format(v)
}

// limitValueText formats the value of a limit. A value that no program reaches is "no limit".
func limitValueText(l *stats.Limit, v float64) string {
	switch {
	case math.IsNaN(v):
		return none
	case l.TakesWords():
		return l.TextForTarget(v)
	case v == 0 && l.Zero != "":
		return l.Zero
	case l.Kind == stats.LimitSizes:
		return strconv.FormatFloat(v, 'f', 0, 64) + " sizes"
	case l.Kind == stats.LimitBytes && v >= unlimitedBytes, math.IsInf(v, 0) || math.Abs(v) >= 1<<53:
		return noLimit
	case l.Kind == stats.LimitBytes:
		return bytesText(uint64(max(v, 0)))
	case l.Kind == stats.LimitSeconds:
		return units.FormatSpan(v)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// noLimit is how a limit that does not limit is written.
const noLimit = "no limit"

// unlimitedBytes is more memory than any device has. A larger limit limits nothing.
const unlimitedBytes = 1 << 60

// formatPercent formats a rate 0…1 as 0.0…100.0.
func formatPercent(rate float64) string {
	if math.IsNaN(rate) {
		return none
	}
	return units.PercentDigits(max(0, min(rate, 1)))
}

// formatRatio formats part of whole as a percentage, none if whole is 0.
func formatRatio(part, whole uint64) string {
	if whole == 0 {
		return none
	}
	return formatPercent(float64(part) / float64(whole))
}

// formatCount formats a number with its thousands apart, a large one with a suffix.
func formatCount(v uint64) string {
	switch {
	case v >= 1e15:
		return strconv.FormatFloat(float64(v), 'g', 3, 64)
	case v >= 1e12:
		return strconv.FormatFloat(float64(v)/1e12, 'f', 1, 64) + "T"
	case v >= 1e10:
		return strconv.FormatFloat(float64(v)/1e9, 'f', 1, 64) + "G"
	case v >= 1e8:
		return strconv.FormatFloat(float64(v)/1e6, 'f', 0, 64) + "M"
	}
	return units.FormatGrouped(v)
}

// formatRate formats a count within a window of ns as a rate.
func formatRate(n, ns uint64) string {
	if ns == 0 {
		return none
	}
	return units.FormatCompact(float64(n) / (float64(ns) / 1e9))
}

// formatTableCount formats a number in at most five columns.
func formatTableCount(v uint64) string {
	switch {
	case v < 1e5:
		return strconv.FormatUint(v, 10)
	case v < 1e6:
		return strconv.FormatUint(v/1e3, 10) + "k"
	case v >= 1e8 && v < 1e9:
		return strconv.FormatUint(v/1e6, 10) + "M"
	}
	return units.FormatCompact(float64(v))
}

// formatDuration formats ns with a unit that keeps it short.
func formatDuration(ns uint64) string {
	v := float64(ns)
	switch {
	case ns < 1000:
		return strconv.FormatUint(ns, 10) + " ns"
	case ns < 1e6:
		return formatDecimals(v/1e3) + " µs"
	case ns < 1e9:
		return formatDecimals(v/1e6) + " ms"
	case ns < 120e9:
		return formatDecimals(v/1e9) + " s"
	}
	return units.FormatClock(ns)
}

func formatDecimals(v float64) string {
	if v < 9.95 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// differenceOrZero returns b - a, 0 if b is earlier.
func differenceOrZero(a, b uint64) uint64 {
	if b < a {
		return 0
	}
	return b - a
}

// saturatingSum adds numbers. It returns the largest number on overflow.
func saturatingSum(values ...uint64) uint64 {
	total := uint64(0)
	for _, v := range values {
		if total+v < total {
			return math.MaxUint64
		}
		total += v
	}
	return total
}

// signalName returns the name of a signal; os.Signal has phrases instead.
func signalName(n int) string {
	if name := unix.SignalName(syscall.Signal(n)); name != "" {
		return name
	}
	return "SIGNAL " + strconv.Itoa(n)
}
