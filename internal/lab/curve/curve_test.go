package curve

import (
	"math"
	"math/rand/v2"
	"testing"
)

// cache is a pool with a limit, as slow as it is plain: what was freed latest of the right kind serves, what was freed
// longest ago goes first, and what is larger than the limit is never kept.
type cache struct {
	limit          uint64
	kept           []pile // from the oldest on
	bytes          uint64
	hits, hitBytes uint64
}

func (c *cache) request(p pile) bool {
	for i := len(c.kept) - 1; i >= 0; i-- {
		if c.kept[i] == p {
			c.kept = append(c.kept[:i], c.kept[i+1:]...)
			c.bytes -= p.size
			c.hits++
			c.hitBytes += p.size
			return true
		}
	}
	return false
}

func (c *cache) free(p pile) {
	if p.size > c.limit {
		return
	}
	c.kept = append(c.kept, p)
	c.bytes += p.size
	for c.bytes > c.limit {
		c.bytes -= c.kept[0].size
		c.kept = c.kept[1:]
	}
}

// play feeds a stream of requests and releases to a curve and to caches.
func play(rng *rand.Rand, events int, sizeOf func() pile, c *Curve, caches []*cache) (requests, bytes uint64) {
	var live []pile
	for step := range events {
		full := 1 + 100*(step/500%3)
		if len(live) > 0 && rng.IntN(2*full) < len(live) {
			i := rng.IntN(len(live))
			p := live[i]
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			c.Free(p.class, p.size, int64(step))
			for _, k := range caches {
				k.free(p)
			}
			continue
		}
		p := sizeOf()
		live = append(live, p)
		requests++
		bytes += p.size
		c.Request(p.class, p.size, 0)
		for _, k := range caches {
			k.request(p)
		}
	}
	return requests, bytes
}

// TestAgainstCaches compares the curve with caches of each limit: blocks that are powers of two, at all limits that the
// curve tells apart.
func TestAgainstCaches(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var caches []*cache
		for limit := uint64(1); limit < 1<<20; limit = limitOf(placeOf(float64(limit + 1 + limit/7))) {
			caches = append(caches, &cache{limit: limit})
		}
		c := New(Options{})
		requests, bytes := play(rng, 6000, func() pile { return pile{rng.Uint32N(2), 1 << (4 + rng.UintN(10))} }, c, caches)
		s := c.Snapshot()
		for _, k := range caches {
			p := s.At(k.limit)
			rate, byteRate := float64(k.hits)/float64(requests), float64(k.hitBytes)/float64(bytes)
			if math.Abs(p.HitRate-rate) > 1e-9 || math.Abs(p.ByteHitRate-byteRate) > 1e-9 {
				t.Errorf("seed %d, limit %d: %.6f, %.6f, want %.6f, %.6f", seed, k.limit, p.HitRate, p.ByteHitRate, rate, byteRate)
			}
		}
		if s.Requests != float64(requests) || s.Sampled != 1 || s.Error != 0 || s.Hits == 0 {
			t.Errorf("%d requests: %+v", requests, s)
		}
	}
}

// TestAnySize: with more sizes than levels the curve is a little low where blocks are larger than the limit.
func TestAnySize(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var caches []*cache
	for limit := uint64(64); limit < 1<<20; limit = limitOf(placeOf(float64(limit + 1 + limit/7))) {
		caches = append(caches, &cache{limit: limit})
	}
	kinds := make([]pile, 30)
	for i := range kinds {
		kinds[i] = pile{1, 1 + rng.Uint64N(1<<(5+rng.UintN(10)))}
	}
	c := New(Options{})
	requests, _ := play(rng, 20000, func() pile { return kinds[rng.IntN(len(kinds))] }, c, caches)
	worst := 0.0
	for _, k := range caches {
		off := float64(k.hits)/float64(requests) - c.Snapshot().At(k.limit).HitRate
		worst = max(worst, math.Abs(off))
		if k.limit >= 1<<15 && off > 1e-9 {
			t.Errorf("limit %d, above all blocks: %g too low", k.limit, off)
		}
		if off < -1e-9 {
			t.Errorf("limit %d: the curve is %g too high", k.limit, -off)
		}
	}
	if worst > 0.05 {
		t.Errorf("%.4f off", worst)
	}
	t.Logf("at most %.4f off", worst)
}
