package cost

import (
	"cmp"
	"math/bits"
	"slices"
)

// Usual finds the line through what calls usually take: through the medians of size classes, so that a few slow calls do not
// decide. The zero Usual is ready for use, by one goroutine.
type Usual struct {
	Calls   uint64
	classes [65]*class // by powers of two; nil: no call
}

// class keeps the sizes and times of some calls of a size class: each call at first; whenever there are too many, every other
// one goes.
type class struct {
	calls, every uint64
	sizes, times []float64
}

// classMax is how many calls a class keeps.
const classMax = 64

// AddCall adds a call of some ns.
func (u *Usual) AddCall(size uint64, ns float64) {
	u.Calls++
	c := u.classes[bits.Len64(size)]
	if c == nil {
		c = &class{every: 1}
		u.classes[bits.Len64(size)] = c
	}
	if c.calls++; (c.calls-1)%c.every != 0 {
		return
	}
	if len(c.sizes) == classMax {
		for i := range classMax / 2 {
			c.sizes[i], c.times[i] = c.sizes[2*i], c.times[2*i]
		}
		c.sizes, c.times = c.sizes[:classMax/2], c.times[:classMax/2]
		c.every *= 2
	}
	c.sizes, c.times = append(c.sizes, float64(size)), append(c.times, ns)
}

// MedianLine returns the line through the medians of the classes that is nowhere negative: its slope is the median of the slopes
// between two classes (Theil 1950, Sen 1968), weighted by their calls. A class with one call counts only if there is no other.
// Without calls the line is zero.
func (u *Usual) MedianLine() Line {
	points := u.medianCostsByClass()
	var slopes, starts, times, factors []weighted
	for i, p := range points {
		for _, q := range points[:i] {
			slopes = append(slopes, weighted{(p.ns - q.ns) / (p.size - q.size), p.calls * q.calls})
		}
	}
	b := weightedMedian(slopes)
	for _, p := range points {
		starts = append(starts, weighted{p.ns - b*p.size, p.calls})
		times = append(times, weighted{p.ns, p.calls})
		factors = append(factors, weighted{p.ns / max(p.size, 1), p.calls})
	}
	switch a := weightedMedian(starts); {
	case b < 0:
		return Line{A: weightedMedian(times)}
	case a < 0: // through the origin
		return Line{B: weightedMedian(factors)}
	default:
		return Line{A: a, B: b}
	}
}

// point is the median size and time of a class.
type point struct{ size, ns, calls float64 }

func (u *Usual) medianCostsByClass() (list []point) {
	least := uint64(2)
	if !slices.ContainsFunc(u.classes[:], func(c *class) bool { return c != nil && c.calls >= 2 }) {
		least = 1
	}
	for _, c := range u.classes {
		if c != nil && c.calls >= least {
			list = append(list, point{lowerMedian(c.sizes), lowerMedian(c.times), float64(c.calls)})
		}
	}
	return list
}

func lowerMedian(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2]
}

// weighted is a value that counts as much as its weight.
type weighted struct{ value, weight float64 }

// weightedMedian returns the least value that, with those below it, has half of the weight; 0 without values.
func weightedMedian(list []weighted) float64 {
	slices.SortFunc(list, func(x, y weighted) int { return cmp.Compare(x.value, y.value) })
	var all, below float64
	for _, w := range list {
		all += w.weight
	}
	for _, w := range list {
		if below += w.weight; 2*below >= all {
			return w.value
		}
	}
	return 0
}
