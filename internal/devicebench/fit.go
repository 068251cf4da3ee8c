package devicebench

import (
	"cmp"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
)

// measured is a cost that a line shall meet.
type measured struct {
	size  uint64
	ns    float64
	scale float64 // ns, what an error is compared with: the cost, or its noise where that is more
}

// How lines are fitted.
const (
	fitRounds  = 30
	exact      = 0.01 // errors of less than this part count as none: it is what medians scatter by
	segmentMin = 3    // points that a line on one side of a break has
	// There is a break when one line misses a point by more than breakError of its cost, and two miss the
	// points by breakGain times less, in sum.
	breakError = 0.5
	breakGain  = 1.5
)

// median sorts the values and returns the middle one, 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// fitLines finds the line through points, ascending by size, or the two where the cost changes its nature.
func fitLines(points []measured) Fit {
	f := Fit{Line: lineThrough(points)}
	if f.largestRelativeError(points) > breakError {
		if broken := fitTwoLines(points); broken != nil && broken.sumOfRelativeErrors(points)*breakGain < f.sumOfRelativeErrors(points) {
			f = *broken
		}
	}
	f.R2, f.Error = f.explainedVariance(points), f.largestRelativeError(points)
	return f
}

// fitTwoLines returns the best two lines, nil where there are too few points.
func fitTwoLines(points []measured) *Fit {
	var best *Fit
	least := math.Inf(1)
	for i := segmentMin; i <= len(points)-segmentMin; i++ {
		f, below := &Fit{Line: lineThrough(points[i:])}, lineThrough(points[:i])
		f.Below = cost.Below{Bytes: points[i].size, A: below.A, B: below.B}
		if loss := f.sumOfRelativeErrors(points); loss < least {
			best, least = f, loss
		}
	}
	return best
}

// lineThrough returns the line with the least sum of relative errors, as far as both of its figures can be 0 or more: a
// cost is never less. Medians that went wrong hardly move it. (Iteratively reweighted least squares for least absolute
// deviations: Schlossmacher 1973.)
func lineThrough(points []measured) cost.Line {
	weights := make([]float64, len(points))
	for i, p := range points {
		weights[i] = 1 / (p.scale * p.scale)
	}
	line := fitWeighted(points, weights)
	for range fitRounds {
		for i, p := range points {
			off := math.Abs(line.CallNS(p.size)-p.ns) / p.scale
			weights[i] = 1 / (p.scale * p.scale * max(off, exact))
		}
		line = fitWeighted(points, weights)
	}
	return line
}

// fitWeighted is the least squares line with both figures at least 0.
func fitWeighted(points []measured, weights []float64) cost.Line {
	var w, x, y, xx, xy float64
	for i, p := range points {
		size := float64(p.size)
		w += weights[i]
		x += weights[i] * size
		y += weights[i] * p.ns
		xx += weights[i] * size * size
		xy += weights[i] * size * p.ns
	}
	if w == 0 {
		return cost.Line{}
	}
	under := w*xx - x*x
	if under <= 1e-12*w*xx { // one size only
		return cost.Line{A: y / w}
	}
	line := cost.Line{A: (xx*y - x*xy) / under, B: (w*xy - x*y) / under}
	switch {
	case line.B < 0:
		return cost.Line{A: y / w}
	case line.A < 0:
		return cost.Line{B: xy / xx}
	}
	return line
}

// sumOfRelativeErrors is the sum of relative errors.
func (f *Fit) sumOfRelativeErrors(points []measured) float64 {
	sum := 0.0
	for _, p := range points {
		sum += max(exact, math.Abs(f.CallNS(p.size)-p.ns)/p.scale)
	}
	return sum
}

// largestRelativeError is the largest relative error.
func (f *Fit) largestRelativeError(points []measured) float64 {
	most := 0.0
	for _, p := range points {
		most = max(most, math.Abs(f.CallNS(p.size)-p.ns)/p.scale)
	}
	return most
}

// explainedVariance is the part of the costs' variance that the lines explain, 0 to 1; 1 where there is none.
func (f *Fit) explainedVariance(points []measured) float64 {
	mean := 0.0
	for _, p := range points {
		mean += p.ns / float64(len(points))
	}
	var off, all float64
	for _, p := range points {
		off += (f.CallNS(p.size) - p.ns) * (f.CallNS(p.size) - p.ns)
		all += (p.ns - mean) * (p.ns - mean)
	}
	if all == 0 {
		return 1
	}
	return max(0, 1-off/all)
}

// Residency says when a buffer's memory comes into being.
type Residency string

// The three ways that there are.
const (
	// AtCreate: it is there when the create returns.
	AtCreate Residency = "create"
	// AtFirstUse: the first command that uses the buffer makes all of it.
	AtFirstUse Residency = "first use"
	// ByPage: each page is made when it is written for the first time.
	ByPage Residency = "page"
)

// Verdict is what follows from the costs.
type Verdict struct {
	Lazy      bool      `json:"lazy"`                // creates return before there is memory
	Residency Residency `json:"residency,omitempty"` // "" when only sizes were measured that do not tell
	// DriverCaches says that the driver, or the C library below it, keeps released memory for the next create: that is
	// much cheaper after a release of the same size than with new memory. CachesUpTo is the largest size seen so.
	DriverCaches bool   `json:"driver_caches"`
	CachesUpTo   uint64 `json:"caches_up_to_bytes,omitempty"`
}

// From when on a difference counts.
const (
	dear       = 0.2    // a first touch that takes this part of writing the memory is no noise
	cheaper    = 5.0    // how many times less a create costs that is served from what was kept
	worthwhile = 1000.0 // ns that it saves at least
	cachedMin  = 2      // sizes that are served so, or it may be chance
	// judgedMin is the smallest size, bytes, that shows when memory comes: smaller ones may come from existing memory.
	judgedMin = 256 << 10
)

// residencyOfLargeSizes looks for the way that most of the larger sizes behave: there the differences are largest. New memory tells it,
// and where there is none, the steady state, in which a cache may hide it.
func residencyOfLargeSizes(points []Point) Verdict {
	var v Verdict
	v.judgeDriverCaching(points)
	from, _ := slices.BinarySearchFunc(points, judgedMin, func(p Point, size uint64) int { return cmp.Compare(p.Size, size) })
	large := points[from:]
	if fresh := pointsMeasuredFresh(large); len(fresh) > 0 {
		large = fresh
	}
	large = large[len(large)/2:]
	var lazy, atUse int
	for i := range large {
		p := &large[i]
		create, touch, use, after := p.Create, p.Touch, p.FirstUse, p.AfterUse
		if p.Fresh != nil {
			create, touch, use, after = p.Fresh.Create, p.Fresh.Touch, p.Fresh.FirstUse, p.Fresh.AfterUse
		}
		if touch > create && touch > dear*p.Reuse {
			lazy++
			if use > after {
				atUse++
			}
		}
	}
	switch {
	case len(large) == 0:
		return v
	case 2*lazy <= len(large):
		v.Residency = AtCreate
	case 2*atUse > lazy:
		v.Lazy, v.Residency = true, AtFirstUse
	default:
		v.Lazy, v.Residency = true, ByPage
	}
	return v
}

func pointsMeasuredFresh(points []Point) []Point {
	var list []Point
	for _, p := range points {
		if p.Fresh != nil {
			list = append(list, p)
		}
	}
	return list
}

func (v *Verdict) judgeDriverCaching(points []Point) {
	cached := 0
	for _, p := range pointsMeasuredFresh(points) {
		again, fresh := p.Create+p.Touch, p.Fresh.Create+p.Fresh.Touch
		if fresh > cheaper*again && fresh-again > worthwhile {
			cached++
			v.CachesUpTo = p.Size
		}
	}
	if v.DriverCaches = cached >= cachedMin; !v.DriverCaches {
		v.CachesUpTo = 0
	}
}
