package curve

import (
	"cmp"
	"math"
	"slices"
)

// anchored returns a curve that goes through exact points, ascending by limit: between two of them it is off by what it
// was off there, in proportion to the logarithm of the limit; above all by as much as at the last, below all in the
// same ratio as at the first.
func (s *Snapshot) anchored(exact []Point) []Point {
	points := slices.Clone(s.Points)
	for _, e := range exact {
		points = append(points, s.At(e.Limit))
	}
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.Limit, b.Limit) })
	points = slices.CompactFunc(points, func(a, b Point) bool { return a.Limit == b.Limit })
	for i := range points {
		points[i].HitRate = s.corrected(points[i].Limit, exact)
	}
	return points
}

// corrected returns the hit rate at a limit of the curve through exact points.
func (s *Snapshot) corrected(limit uint64, exact []Point) float64 {
	rate := s.At(limit).HitRate
	above, there := slices.BinarySearchFunc(exact, limit, func(e Point, limit uint64) int { return cmp.Compare(e.Limit, limit) })
	off := func(i int) float64 { return exact[i].HitRate - s.At(exact[i].Limit).HitRate }
	switch {
	case len(exact) == 0:
		return rate
	case there:
		return exact[above].HitRate
	case above == len(exact):
		return bound(rate + off(above-1))
	case above == 0:
		first := s.At(exact[0].Limit).HitRate
		if first == 0 {
			return rate
		}
		return bound(rate * exact[0].HitRate / first)
	}
	low, high := exact[above-1].Limit, exact[above].Limit
	share := math.Log2(float64(limit)/float64(low)) / math.Log2(float64(high)/float64(low))
	return bound(rate + (1-share)*off(above-1) + share*off(above))
}

// missed returns how far the curve through all other exact points is from each, on average, 0…1: as far as it may be
// off between them. One point alone is compared with the curve as it is.
func (s *Snapshot) missed(exact []Point) float64 {
	sum := 0.0
	for i, e := range exact {
		others := append(slices.Clone(exact[:i]), exact[i+1:]...)
		sum += math.Abs(s.corrected(e.Limit, others) - e.HitRate)
	}
	return sum / float64(max(len(exact), 1))
}

// off returns how far the curve itself is from exact points, on average, 0…1.
func (s *Snapshot) off(exact []Point) float64 {
	sum := 0.0
	for _, e := range exact {
		sum += math.Abs(s.At(e.Limit).HitRate - e.HitRate)
	}
	return sum / float64(max(len(exact), 1))
}
