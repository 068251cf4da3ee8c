package curve

import (
	"math"
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
	// Sampled is the share of the hits that was measured, 1: all.
	Sampled float64
	// Error is an estimate of how far sampling puts the hit rate wrong where it is worst: half of the largest distance
	// between the curves of both halves of the sample. 0: nothing was left out. The halves may agree by chance, so that
	// it is several times as far, and they do not show what Grain does.
	Error float64
	// Grain is how many bytes one measured block stands for on average, the most of all processes; 0: nothing was left
	// out. Depths of less than some of these are blurred, so that the curve is too high far below and too low around
	// it.
	Grain uint64
}

// Snapshot returns the curve since the start, or Restart. It costs some 10 µs.
func (c *Curve) Snapshot() *Snapshot { return Together(c) }

// Together returns the curve of several processes, each of which has a cache of the same limit.
func Together(curves ...*Curve) *Snapshot {
	var sum tally
	squares, grain := 0.0, uint64(0)
	for _, c := range curves {
		squares += math.Pow(c.apart(&c.tally)*c.tally.requests, 2)
		grain = max(grain, c.grain(&c.tally))
		sum.add(&c.tally)
	}
	s := sum.snapshot()
	s.Error, s.Grain = math.Sqrt(squares)/max(sum.requests, 1), grain
	return s
}

func (c *Curve) grain(t *tally) uint64 {
	if c.halves == nil || t.weighted == 0 {
		return 0
	}
	return uint64(math.Ldexp(t.weightedBytes/t.weighted, int(c.whole.shift)))
}

// apart returns half of the largest distance between the halves' hit rates, as far as the tally is of what was sampled.
func (c *Curve) apart(t *tally) float64 {
	if c.halves == nil || t.requests == 0 || t.weighted == 0 {
		return 0
	}
	a, b := c.halves[0].rates(t), c.halves[1].rates(t)
	most := 0.0
	for i := range a {
		most = max(most, math.Abs(a[i]-b[i])/2)
	}
	since := c.halves[0].tally.weighted + c.halves[1].tally.weighted
	return most * min(1, since/2/t.weighted)
}

// rates returns the hit rate at each place as a half sees it. Where piles are not left out it knows of no misses: the
// share of the requests that are hits at some limit is exact then, and that of all.
func (h *half) rates(all *tally) []float64 {
	most := all.hits / all.requests
	if h.tally.requests > 0 {
		most = h.tally.hits / h.tally.requests
	}
	rates, hits := make([]float64, beyond), 0.0
	for i := range rates {
		hits += h.tally.changes[i].hits
		rates[i] = most * hits / max(h.tally.weighted, 1)
	}
	return rates
}

// snapshot makes points of where something changes. Of sampled hits there are as many as of all.
func (t *tally) snapshot() *Snapshot {
	s := &Snapshot{Points: []Point{{}}, Requests: t.requests, Hits: t.hits, Sampled: 1}
	if t.weighted == 0 || t.requests == 0 {
		return s
	}
	s.Sampled = min(1, t.sampled/t.hits)
	scale, bytes := t.hits/t.weighted, 0.0
	if t.weightedBytes > 0 {
		bytes = t.hitBytes / t.weightedBytes
	}
	var sum change
	for i := range beyond {
		c := t.changes[i]
		if c == (change{}) {
			continue
		}
		sum.hits += c.hits
		sum.bytes += c.bytes
		s.Points = append(s.Points, Point{
			Limit: limitOf(i), HitRate: bound(sum.hits * scale / t.requests), ByteHitRate: bound(sum.bytes * bytes / t.bytes),
		})
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
