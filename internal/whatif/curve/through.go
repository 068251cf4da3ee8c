package curve

import (
	"cmp"
	"math"
	"slices"
)

// correctedPoints returns the curve corrected so that it goes through exact points, which ascend by limit. Between two exact
// points the correction is interpolated over the logarithm of the limit. Above the last it is constant; below the first
// the hit rate is scaled by the first point's ratio. Only exact points show that a larger limit hits less: an estimate
// is never outside its exact neighbours, and goes from one to the other without turning back.
func (s *Snapshot) correctedPoints(exact []Point) []Point {
	points := slices.Clone(s.Points)
	for _, e := range exact {
		points = append(points, s.PointAt(e.Limit))
	}
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.Limit, b.Limit) })
	points = slices.CompactFunc(points, func(a, b Point) bool { return a.Limit == b.Limit })
	before := 0.0
	for i := range points {
		rate := s.correctedRate(points[i].Limit, exact)
		if hitRateFallsAround(points[i].Limit, exact) {
			rate = min(rate, before)
		} else {
			rate = max(rate, before)
		}
		points[i].HitRate, before = rate, rate
	}
	return points
}

// firstExactPointFrom returns the index of the first exact point at or above a limit.
func firstExactPointFrom(limit uint64, exact []Point) (index int, there bool) {
	return slices.BinarySearchFunc(exact, limit, func(e Point, limit uint64) int { return cmp.Compare(e.Limit, limit) })
}

// hitRateFallsAround reports whether the hit rate falls between the exact points around a limit.
func hitRateFallsAround(limit uint64, exact []Point) bool {
	above, _ := firstExactPointFrom(limit, exact)
	return above > 0 && above < len(exact) && exact[above].HitRate < exact[above-1].HitRate
}

// correctedRate returns the hit rate at a limit of the curve through exact points.
func (s *Snapshot) correctedRate(limit uint64, exact []Point) float64 {
	rate := s.PointAt(limit).HitRate
	above, there := firstExactPointFrom(limit, exact)
	off := func(i int) float64 { return exact[i].HitRate - s.PointAt(exact[i].Limit).HitRate }
	switch {
	case len(exact) == 0:
		return rate
	case there:
		return exact[above].HitRate
	case above == len(exact):
		return clampRate(rate+off(above-1), exact[above-1].HitRate, 1)
	case above == 0:
		if first := s.PointAt(exact[0].Limit).HitRate; first > 0 {
			rate *= exact[0].HitRate / first
		}
		return clampRate(rate, 0, exact[0].HitRate)
	}
	low, high := &exact[above-1], &exact[above]
	share := math.Log2(float64(limit)/float64(low.Limit)) / math.Log2(float64(high.Limit)/float64(low.Limit))
	return clampRate(rate+(1-share)*off(above-1)+share*off(above), low.HitRate, high.HitRate)
}

// clampRate returns the nearest rate that is not outside two others.
func clampRate(rate, a, b float64) float64 { return max(min(a, b), min(rate, max(a, b))) }

// leaveOneOutError returns how far on average, 0…1, each exact point is from the curve through the other points. That
// is the error to expect between the points. A single point is compared with the uncorrected curve.
func (s *Snapshot) leaveOneOutError(exact []Point) float64 {
	sum := 0.0
	for i, e := range exact {
		others := append(slices.Clone(exact[:i]), exact[i+1:]...)
		sum += math.Abs(s.correctedRate(e.Limit, others) - e.HitRate)
	}
	return sum / float64(max(len(exact), 1))
}

// meanError returns how far on average, 0…1, the uncorrected curve is from exact points.
func (s *Snapshot) meanError(exact []Point) float64 {
	sum := 0.0
	for _, e := range exact {
		sum += math.Abs(s.PointAt(e.Limit).HitRate - e.HitRate)
	}
	return sum / float64(max(len(exact), 1))
}
