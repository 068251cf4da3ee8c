// Package plot draws charts as SVG that fits any width: shapes are placed in percent, and text keeps its size. It needs
// no script. Names in a chart may be any text, since they are escaped.
package plot

import (
	"math"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Axis maps values to places between 0, the left or lower end, and 1.
type Axis struct {
	Low, High float64
	Log       bool
	Ticks     []Tick // ascending, within the axis
}

// Tick is a value that is written at an axis.
type Tick struct {
	Value float64
	Label string
}

// FractionOf returns the place of a value, from 0 to 1.
func (a *Axis) FractionOf(v float64) float64 {
	low, high := a.Low, a.High
	if a.Log {
		low, high, v = math.Log2(low), math.Log2(high), math.Log2(max(v, a.Low))
	}
	if high <= low || math.IsNaN(v) {
		return 0
	}
	return max(0, min((v-low)/(high-low), 1))
}

// ticksMost bounds the steps of an axis: with more, labels would touch on small screens.
const ticksMost = 5

// headroom is the end of an axis as a multiple of its largest value, so that the top of a curve can be seen.
const headroom = 1.04

// BytesAxis is an axis from 0 with ticks that are round in binary units.
func BytesAxis(most uint64) Axis {
	step := 1.0
	for float64(most)/step > ticksMost {
		step *= 2
	}
	return axisUpTo(float64(max(most, 1)), step, exactBytesText)
}

// CountsAxis is an axis from 0 with whole decimal ticks.
func CountsAxis(most uint64) Axis {
	step := 1.0
	for i := 0; float64(most)/step > ticksMost; i++ {
		step *= [...]float64{2, 2.5, 2}[i%3]
	}
	return axisUpTo(float64(max(most, 1)), step, func(v float64) string { return NarrowSpaces(units.FormatGrouped(uint64(v))) })
}

// PercentAxis is an axis for rates from 0 to 1.
func PercentAxis() Axis {
	return axisUpTo(1, 0.25, func(v float64) string { return strconv.Itoa(int(math.Round(v*100))) + " %" })
}

func axisUpTo(most, step float64, label func(float64) string) Axis {
	a := Axis{High: most * headroom}
	for i := 0; float64(i)*step <= a.High; i++ {
		a.Ticks = append(a.Ticks, Tick{float64(i) * step, label(float64(i) * step)})
	}
	return a
}

// Lengths of time, ns.
const (
	micro  = 1e3
	milli  = 1e6
	second = 1e9
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// longSteps are the usual steps of time beyond seconds.
var longSteps = []float64{
	15 * second, 30 * second, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute,
	hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day,
}

// usualTimeStep returns the smallest usual step of time with which a length has at most ticksMost ticks.
func usualTimeStep(length float64) float64 {
	step := 1.0
	for i := 0; length/step > ticksMost+2; i++ {
		step *= [...]float64{2, 2.5, 2}[i%3]
		if step > 10*second {
			break
		}
	}
	if step <= 10*second {
		return step
	}
	at := slices.IndexFunc(longSteps, func(s float64) bool { return length/s <= ticksMost+2 })
	if at >= 0 {
		return longSteps[at]
	}
	weeks := math.Ceil(length / (ticksMost + 2) / (7 * day))
	return weeks * 7 * day
}

// TimesAxis is an axis from one time to another, ns.
func TimesAxis(from, to uint64) Axis {
	a := Axis{Low: float64(from), High: max(float64(to), float64(from)+1)}
	step := usualTimeStep(a.High - a.Low)
	first := math.Ceil(a.Low / step)
	for i := range ticksMost + 4 { // beyond 2^53 ns a float64 may not grow by a step
		if value := (first + float64(i)) * step; value <= a.High {
			a.Ticks = append(a.Ticks, Tick{value, exactTimeText(value)})
		}
	}
	return a
}

// LogBytesAxis is a logarithmic axis for sizes whose ends are powers of two.
func LogBytesAxis(least, most uint64) Axis { return logAxis(least, most, 2, exactBytesText) }

// LogTimesAxis is a logarithmic axis for durations whose ends are powers of ten.
func LogTimesAxis(least, most uint64) Axis {
	return logAxis(least, most, 10, exactTimeText)
}

func logAxis(least, most uint64, base float64, label func(float64) string) Axis {
	exponent := func(v uint64) float64 { return math.Log2(float64(max(v, 1))) / math.Log2(base) }
	first := math.Floor(exponent(least) + 1e-9)
	last := max(math.Ceil(exponent(max(least, most))-1e-9), first+1)
	a := Axis{Low: math.Pow(base, first), High: math.Pow(base, last), Log: true}
	step := math.Ceil((last - first) / (ticksMost + 2))
	for e := first; e <= last; e += step {
		value := math.Pow(base, e)
		a.Ticks = append(a.Ticks, Tick{value, label(value)})
	}
	return a
}
