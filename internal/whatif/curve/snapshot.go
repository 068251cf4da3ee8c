package curve

import (
	"slices"
	"sort"

	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// Point is the outcome at one limit.
type Point = view.CurvePoint

// Snapshot is a curve at a moment. It is immutable.
type Snapshot struct {
	// Points are ascending, from limit 0; between two of them the lower one holds. Where a larger limit hits less, it
	// is because large blocks, which it keeps, push small ones out.
	Points []Point
	// Requests and Hits, with no limit at all, are numbers of requests; estimates where piles are left out. What is no
	// hit then is one at no limit: nothing of its kind was free.
	Requests, Hits float64
}

// Snapshot returns the curve since the start, or Restart. It costs some 10 µs.
func (c *Curve) Snapshot() *Snapshot { return c.tally.snapshot() }

// together returns the curve of several processes, each of which has a cache of the same limit.
func together(curves ...*Curve) *Snapshot {
	var sum tally
	for _, c := range curves {
		sum.add(&c.tally)
	}
	return sum.snapshot()
}

// snapshot makes points of where something changes. Of sampled hits there are as many as of all.
func (t *tally) snapshot() *Snapshot {
	s := &Snapshot{Points: []Point{{}}, Requests: t.requests, Hits: t.hits}
	if t.weighted == 0 || t.requests == 0 {
		return s
	}
	hits, scale := 0.0, t.hits/t.weighted
	for i, more := range t.changes[:beyond] {
		if more != 0 {
			hits += more
			s.Points = append(s.Points, Point{Limit: limitOf(i), HitRate: bound(hits * scale / t.requests)})
		}
	}
	return s
}

func bound(rate float64) float64 { return max(0, min(rate, 1)) }

// At returns what a limit gives.
func (s *Snapshot) At(limit uint64) Point {
	i := sort.Search(len(s.Points), func(i int) bool { return s.Points[i].Limit > limit })
	p := s.Points[i-1]
	p.Limit = limit
	return p
}

// Best returns the point with the highest hit rate, of equal ones the smallest limit.
func (s *Snapshot) Best() Point { return s.Points[s.first(1)] }

// first returns the first point that has a share of the highest hit rate.
func (s *Snapshot) first(share float64) int {
	best := 0.0
	for _, p := range s.Points {
		best = max(best, p.HitRate)
	}
	return slices.IndexFunc(s.Points, func(p Point) bool { return p.HitRate >= share*best })
}

// Enough returns the first point with at least 99 % of the highest hit rate.
func (s *Snapshot) Enough() Point { return s.Points[s.first(0.99)] }

// Knee returns the point that lies farthest above the straight line from nothing to Best (Satopää et al. 2011, with
// linear axes). Up to there memory gains more hits per byte than the curve does on average, beyond it less. Logarithmic
// axes would make it depend on where they begin.
func (s *Snapshot) Knee() Point {
	best := s.Best()
	knee, most := s.Points[0], 0.0
	for _, p := range s.Points {
		if p.Limit > best.Limit || best.Limit == 0 {
			break
		}
		if above := p.HitRate/best.HitRate - float64(p.Limit)/float64(best.Limit); above > most {
			knee, most = p, above
		}
	}
	if most == 0 { // one step
		return best
	}
	return knee
}
