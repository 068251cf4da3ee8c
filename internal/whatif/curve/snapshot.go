package curve

import (
	"slices"
	"sort"

	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// Point is the hit rate at one limit.
type Point = view.CurvePoint

// Snapshot is a curve at one moment. It is immutable.
type Snapshot struct {
	// Points ascend from limit 0; between two points the hit rate is that of the lower one. Where a larger limit has
	// fewer hits, it keeps large blocks, which displace small ones.
	Points []Point
	// Requests is the number of requests, Hits the number of hits without a limit; both are estimates if piles are left
	// out. A request that misses without a limit misses at every limit, because no suitable block was free.
	Requests, Hits float64
}

// Snapshot returns the curve since the start, or since Restart. It costs about 10 µs.
func (c *Curve) Snapshot() *Snapshot { return c.tally.snapshot() }

// combineCurves returns the curve of several processes, each with a cache of the same limit.
func combineCurves(curves ...*Curve) *Snapshot {
	var sum tally
	for _, c := range curves {
		sum.addTally(&c.tally)
	}
	return sum.snapshot()
}

// snapshot makes a point wherever the hit rate changes. Sampled hits are scaled to the number of all hits.
func (t *tally) snapshot() *Snapshot {
	s := &Snapshot{Points: []Point{{}}, Requests: t.requests, Hits: t.hits}
	if t.measuredHits == 0 || t.requests == 0 {
		return s
	}
	hits, scale := 0.0, t.hits/t.measuredHits
	for i, more := range t.changes[:bucketBeyond] {
		if more != 0 {
			hits += more
			s.Points = append(s.Points, Point{Limit: limitOfBucket(i), HitRate: clampToOne(hits * scale / t.requests)})
		}
	}
	return s
}

func clampToOne(rate float64) float64 { return max(0, min(rate, 1)) }

// PointAt returns the point at a limit.
func (s *Snapshot) PointAt(limit uint64) Point {
	i := sort.Search(len(s.Points), func(i int) bool { return s.Points[i].Limit > limit })
	p := s.Points[i-1]
	p.Limit = limit
	return p
}

// BestPoint returns the point with the highest hit rate; of equal points the one with the smallest limit.
func (s *Snapshot) BestPoint() Point { return s.Points[s.firstPointWithShare(1)] }

// firstPointWithShare returns the index of the first point with a share of the highest hit rate.
func (s *Snapshot) firstPointWithShare(share float64) int {
	best := 0.0
	for _, p := range s.Points {
		best = max(best, p.HitRate)
	}
	return slices.IndexFunc(s.Points, func(p Point) bool { return p.HitRate >= share*best })
}

// NearlyBestPoint returns the first point with at least 99 % of the highest hit rate.
func (s *Snapshot) NearlyBestPoint() Point { return s.Points[s.firstPointWithShare(0.99)] }

// kneeShort is how far the knee is below the highest hit rate at most.
const kneeShort = 0.02

// KneePoint returns the first point within two points of hit rate of BestPoint: more memory gains hardly more hits.
func (s *Snapshot) KneePoint() Point {
	least := s.BestPoint().HitRate - kneeShort
	return s.Points[slices.IndexFunc(s.Points, func(p Point) bool { return p.HitRate >= least })]
}
