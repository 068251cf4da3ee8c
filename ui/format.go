package ui

import (
	"math"
	"strconv"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

const none = "—" // shown where there is no number

// bytesText formats a size in a few columns.
func bytesText(v uint64) string {
	if v == 0 {
		return "0"
	}
	return size.Format(v)
}

// limitText formats a value of a limit. What the allocator takes as no limit at all has no digits worth reading.
func limitText(l *model.Limit, v float64) string {
	switch {
	case math.IsNaN(v):
		return none
	case l.Words():
		return l.TextOf(v)
	case l.Kind == model.LimitSizes:
		return strconv.FormatFloat(v, 'f', 0, 64) + " sizes"
	case l.Kind == model.LimitBytes && v >= unlimitedBytes, math.IsInf(v, 0) || math.Abs(v) >= 1<<53:
		return "no limit"
	case l.Kind == model.LimitBytes:
		return bytesText(uint64(max(v, 0)))
	case l.Kind == model.LimitSeconds && v == 0 && l.Min == 0:
		return "off"
	case l.Kind == model.LimitSeconds:
		return secondsText(v)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// secondsText formats a span of time that somebody set: "30s", "1h30m".
func secondsText(v float64) string {
	if v < 60 {
		return strconv.FormatFloat(v, 'g', 4, 64) + "s"
	}
	text := time.Duration(min(v, 1e9) * float64(time.Second)).Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// unlimitedBytes is more than any device has; a byte limit from here on is none.
const unlimitedBytes = 1 << 60

// percent formats a rate 0…1 as 0.0…100.0.
func percent(rate float64) string {
	if math.IsNaN(rate) {
		return none
	}
	return strconv.FormatFloat(100*max(0, min(rate, 1)), 'f', 1, 64)
}

// ratio formats part of whole as a percentage, and as none where there is no whole.
func ratio(part, whole uint64) string {
	if whole == 0 {
		return none
	}
	return percent(float64(part) / float64(whole))
}

// count formats a number with its thousands apart, and large ones with a suffix.
func count(v uint64) string {
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
	s := strconv.FormatUint(v, 10)
	if len(s) <= 3 {
		return s
	}
	out := make([]byte, 0, len(s)+len(s)/3)
	for i := range len(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			out = append(out, ' ')
		}
		out = append(out, s[i])
	}
	return string(out)
}

// perSecond formats a count within a window of ns as a rate.
func perSecond(n, ns uint64) string {
	if ns == 0 {
		return none
	}
	return shortCount(float64(n) / (float64(ns) / 1e9))
}

// shortCount formats a rate in at most five columns.
func shortCount(v float64) string {
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

// tableCount formats a number in at most five columns.
func tableCount(v uint64) string {
	switch {
	case v < 1e5:
		return strconv.FormatUint(v, 10)
	case v < 1e6:
		return strconv.FormatUint(v/1e3, 10) + "k"
	case v >= 1e8 && v < 1e9:
		return strconv.FormatUint(v/1e6, 10) + "M"
	}
	return shortCount(float64(v))
}

// duration formats ns with a unit that keeps it short.
func duration(ns uint64) string {
	v := float64(ns)
	switch {
	case ns < 1000:
		return strconv.FormatUint(ns, 10) + " ns"
	case ns < 1e6:
		return decimals(v/1e3) + " µs"
	case ns < 1e9:
		return decimals(v/1e6) + " ms"
	case ns < 120e9:
		return decimals(v/1e9) + " s"
	}
	return clock(ns)
}

func decimals(v float64) string {
	if v < 9.95 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// clock formats ns as mm:ss, h:mm:ss or days.
func clock(ns uint64) string {
	s := ns / uint64(time.Second)
	two := func(v uint64) string { return string([]byte{'0' + byte(v/10), '0' + byte(v%10)}) }
	switch {
	case s < 3600:
		return two(s/60) + ":" + two(s%60)
	case s < 48*3600:
		return strconv.FormatUint(s/3600, 10) + ":" + two(s/60%60) + ":" + two(s%60)
	}
	return strconv.FormatUint(s/86400, 10) + " d " + two(s/3600%24) + " h"
}

// since returns b - a, and 0 where b is earlier.
func since(a, b uint64) uint64 {
	if b < a {
		return 0
	}
	return b - a
}

// add returns the sum, and the largest number where it does not fit.
func add(values ...uint64) uint64 {
	sum := uint64(0)
	for _, v := range values {
		if sum+v < sum {
			return math.MaxUint64
		}
		sum += v
	}
	return sum
}

// signalNames are the signals that programs die of; os.Signal has phrases instead.
var signalNames = map[int]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
	10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 31: "SIGSYS",
}

func signalName(n int) string {
	if s, ok := signalNames[n]; ok {
		return s
	}
	return "SIGNAL " + strconv.Itoa(n)
}
