package measure

import (
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab/cost"
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
	// A break is said to be there when one line misses a point by more than breakError of its cost, and two miss the
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

// fitted finds the line through points, ascending by size, or the two where the cost changes its nature.
func fitted(points []measured) Fit {
	f := Fit{Line: lineThrough(points)}
	if f.worst(points) > breakError {
		if broken := broken(points); broken != nil && broken.loss(points)*breakGain < f.loss(points) {
			f = *broken
		}
	}
	f.R2, f.Error = f.r2(points), f.worst(points)
	return f
}

// broken returns the best two lines, nil where there are too few points.
func broken(points []measured) *Fit {
	var best *Fit
	least := math.Inf(1)
	for i := segmentMin; i <= len(points)-segmentMin; i++ {
		f, below := &Fit{Line: lineThrough(points[i:])}, lineThrough(points[:i])
		f.Below = cost.Below{Bytes: points[i].size, A: below.A, B: below.B}
		if loss := f.loss(points); loss < least {
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
	line := weighted(points, weights)
	for range fitRounds {
		for i, p := range points {
			off := math.Abs(line.NS(p.size)-p.ns) / p.scale
			weights[i] = 1 / (p.scale * p.scale * max(off, exact))
		}
		line = weighted(points, weights)
	}
	return line
}

// weighted is the least squares line with both figures at least 0.
func weighted(points []measured, weights []float64) cost.Line {
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

// loss is the sum of relative errors.
func (f *Fit) loss(points []measured) float64 {
	sum := 0.0
	for _, p := range points {
		sum += max(exact, math.Abs(f.NS(p.size)-p.ns)/p.scale)
	}
	return sum
}

// worst is the largest relative error.
func (f *Fit) worst(points []measured) float64 {
	most := 0.0
	for _, p := range points {
		most = max(most, math.Abs(f.NS(p.size)-p.ns)/p.scale)
	}
	return most
}

// r2 is the part of the costs' variance that the lines explain, 0 to 1; 1 where there is none.
func (f *Fit) r2(points []measured) float64 {
	mean := 0.0
	for _, p := range points {
		mean += p.ns / float64(len(points))
	}
	var off, all float64
	for _, p := range points {
		off += (f.NS(p.size) - p.ns) * (f.NS(p.size) - p.ns)
		all += (p.ns - mean) * (p.ns - mean)
	}
	if all == 0 {
		return 1
	}
	return max(0, 1-off/all)
}
