package ui

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// smallestBytes is the first step of a size above 0.
const smallestBytes = 1 << 20

// limitStep is how a key changes a limit.
type limitStep uint8

const (
	stepLess limitStep = iota
	stepMore
	stepHalve
	stepDouble
)

func (s limitStep) isUpward() bool { return s == stepMore || s == stepDouble }

// nextLimitValue returns the value one step from base.
func nextLimitValue(l *stats.Limit, base float64, s limitStep, device uint64) float64 {
	up := s.isUpward()
	switch {
	case l.Zero == noLimit:
		return nextOrNoLimit(l, base, s)
	case l.Kind == stats.LimitSizes:
		return base
	case l.TakesWords() && up:
		return base + 1
	case l.TakesWords():
		return base - 1
	case l.Kind == stats.LimitBytes && up:
		return doubleBytes(l, base, device)
	case l.Kind == stats.LimitBytes:
		return halveBytes(l, base, device)
	}
	return nextLimitNumber(l, base, s)
}

// nextLimitNumber returns the number one step from base.
func nextLimitNumber(l *stats.Limit, base float64, s limitStep) float64 {
	switch s {
	case stepDouble:
		return base * 2
	case stepHalve:
		return roundToStep(base/2, l)
	case stepMore:
		return roundToStep(base+stepSizeAt(l, base), l)
	}
	return roundToStep(base-stepSizeAt(l, base-stepSizeAt(l, base)/2), l)
}

// largestValueByKeys returns the largest value that keys reach. One step more is 0, which means no limit.
func largestValueByKeys(l *stats.Limit) float64 {
	most := 1024.0
	if l.Kind == stats.LimitSeconds {
		most = 3600
	}
	return min(most, max(l.Max, 1))
}

// nextOrNoLimit returns the value one step from base, for a limit where 0 means no limit: 0 follows its largest value.
func nextOrNoLimit(l *stats.Limit, base float64, s limitStep) float64 {
	up := s.isUpward()
	switch {
	case base == 0 && up:
		return 0
	case base == 0:
		return largestValueByKeys(l)
	}
	next := nextLimitNumber(l, base, s)
	switch {
	case up && base >= largestValueByKeys(l):
		return 0
	case up:
		return min(next, largestValueByKeys(l))
	}
	return max(next, 1)
}

// doubleBytes doubles a size. The step after 0 is a megabyte; a size that already exceeds the device goes to the end of
// the range.
func doubleBytes(l *stats.Limit, base float64, device uint64) float64 {
	switch {
	case base < smallestBytes && l.Min == 0:
		return smallestBytes
	case base >= unlimitedBytes, device > 0 && base >= float64(device) && l.Max > base:
		return max(base, l.Max)
	}
	return base * 2
}

// halveBytes halves a size. The step below no limit is the size of the device, or 16 GiB if that is unknown; the step below
// a megabyte is 0 if the limit may be 0.
func halveBytes(l *stats.Limit, base float64, device uint64) float64 {
	switch {
	case base >= unlimitedBytes && device > 0:
		return float64(device)
	case base >= unlimitedBytes:
		return 1 << 34
	case device > 0 && base > float64(device): // which is shown as all of the device
		return halveBytes(l, float64(device), device)
	case base/2 < smallestBytes && l.Min == 0:
		return 0
	}
	return math.Floor(base / 2)
}

// stepSizeAt returns the step at a value: a round tenth to quarter of it, and a whole number if the limit counts things.
func stepSizeAt(l *stats.Limit, base float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(max(math.Abs(base), 1e-3)/2.5)))
	for _, f := range [...]float64{5, 2} {
		if step*f <= math.Abs(base)/4 {
			step *= f
			break
		}
	}
	if hasFractionalSteps(l) {
		return max(step, 0.01)
	}
	return max(1, math.Round(step))
}

// roundToStep keeps counts whole and rounds fractions to six digits.
func roundToStep(v float64, l *stats.Limit) float64 {
	if hasFractionalSteps(l) {
		return math.Round(v*1e6) / 1e6
	}
	return math.Floor(v)
}

// hasFractionalSteps reports whether the steps of a limit are smaller than one.
func hasFractionalSteps(l *stats.Limit) bool {
	return l.Kind == stats.LimitNumber || l.Value != math.Trunc(l.Value)
}

func clampToLimitRange(l *stats.Limit, v float64) float64 {
	switch {
	case l.TakesWords():
		return max(0, min(v, float64(len(l.Choices)-1)))
	case l.Kind == stats.LimitSizes:
		return v
	}
	if l.Max > l.Min {
		v = min(v, l.Max)
	}
	return max(v, l.Min)
}

// positionInLimitRange returns where v lies in the range of l, from 0 to 1: for sizes on a logarithmic scale, like their steps.
func positionInLimitRange(l *stats.Limit, v float64, device uint64) float64 {
	low, high := l.Min, l.Max
	if l.Zero == noLimit {
		if low, high = 0, largestValueByKeys(l); v == 0 {
			return 1
		}
	}
	if l.TakesWords() {
		low, high = 0, float64(len(l.Choices)-1)
	}
	if l.Kind == stats.LimitBytes {
		if high >= unlimitedBytes || high <= low {
			high = float64(max(device, 1<<34)) * 2
		}
		scale := func(v float64) float64 { return math.Log2(max(v, smallestBytes/2)) }
		low, high, v = scale(low), scale(high), scale(v)
	} else if math.IsInf(high, 0) || high-low > 1e4 {
		low, high, v = math.Log2(1+max(low, 0)), math.Log2(1+min(high, 1e6)), math.Log2(1+max(v, 0))
	}
	if !(high > low) {
		return 0
	}
	p := (v - low) / (high - low)
	if math.IsNaN(p) {
		return 0
	}
	return max(0, min(p, 1))
}
