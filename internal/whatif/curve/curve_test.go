package curve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

// cache is a pool with a limit, slow and plain: the block of the right kind that was freed last serves, the block that
// was freed first is evicted first, and a block larger than the limit is never cached.
type cache struct {
	limit uint64
	kept  []pileKey // from the oldest on
	bytes uint64
	hits  uint64
}

func (c *cache) request(p pileKey) bool {
	for i := len(c.kept) - 1; i >= 0; i-- {
		if c.kept[i] == p {
			c.kept = append(c.kept[:i], c.kept[i+1:]...)
			c.bytes -= p.size
			c.hits++
			return true
		}
	}
	return false
}

func (c *cache) free(p pileKey) {
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

// play feeds n events to curves. The number of live buffers changes slowly up and down.
func play(rng *rand.Rand, events int, sizeOf func() pileKey, c *Curve, caches []*cache) (requests uint64) {
	var live []pileKey
	for step := range events {
		full := 1 + 100*(step/500%3)
		if len(live) > 0 && rng.IntN(2*full) < len(live) {
			i := rng.IntN(len(live))
			p := live[i]
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			c.NoteBlockFreed(p.class, p.size, int64(step))
			for _, k := range caches {
				k.free(p)
			}
			continue
		}
		p := sizeOf()
		live = append(live, p)
		requests++
		c.NoteRequest(p.class, p.size, 0)
		for _, k := range caches {
			k.request(p)
		}
	}
	return requests
}

// TestAgainstCaches compares the curve with caches of each limit that the curve distinguishes; blocks are powers of
// two.
func TestAgainstCaches(t *testing.T) {
	racetest.Slow(t)
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var caches []*cache
		for limit := uint64(1); limit < 1<<20; limit = limitOfBucket(bucketOfLimit(float64(limit + 1 + limit/7))) {
			caches = append(caches, &cache{limit: limit})
		}
		c := New(Options{})
		requests := play(rng, 6000, func() pileKey { return pileKey{rng.Uint32N(2), 1 << (4 + rng.UintN(10))} }, c, caches)
		s := c.Snapshot()
		for _, k := range caches {
			p := s.PointAt(k.limit)
			if rate := float64(k.hits) / float64(requests); math.Abs(p.HitRate-rate) > 1e-9 {
				t.Errorf("seed %d, limit %d: %.6f, want %.6f", seed, k.limit, p.HitRate, rate)
			}
		}
		if s.Requests != float64(requests) || s.Hits == 0 {
			t.Errorf("%d requests: %+v", requests, s)
		}
	}
}

// TestAnySize: with more sizes than levels the curve is a little low where blocks are larger than the limit.
func TestAnySize(t *testing.T) {
	racetest.Slow(t)
	rng := rand.New(rand.NewPCG(3, 3))
	var caches []*cache
	for limit := uint64(64); limit < 1<<20; limit = limitOfBucket(bucketOfLimit(float64(limit + 1 + limit/7))) {
		caches = append(caches, &cache{limit: limit})
	}
	kinds := make([]pileKey, 30)
	for i := range kinds {
		kinds[i] = pileKey{1, 1 + rng.Uint64N(1<<(5+rng.UintN(10)))}
	}
	c := New(Options{})
	requests := play(rng, 20000, func() pileKey { return kinds[rng.IntN(len(kinds))] }, c, caches)
	worst := 0.0
	for _, k := range caches {
		off := float64(k.hits)/float64(requests) - c.Snapshot().PointAt(k.limit).HitRate
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

// TestMetricsExample: the example in docs/METRICS.md is correct.
func TestMetricsExample(t *testing.T) {
	text, err := os.ReadFile("../../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{})
	c.NoteRequest(1, 1000, 0)
	c.NoteBlockFreed(1, 1000, 1)
	c.NoteRequest(1, 2000, 0)
	c.NoteBlockFreed(1, 2000, 3)
	c.NoteRequest(1, 1000, 0)
	s := c.Snapshot()
	want := fmt.Sprintf("> Curve: a buffer of 1000 bytes is created and released, then one of 2000, then one of 1000 is created → %.0f hit of %.0f from %d bytes on\n",
		s.Hits, s.Requests, s.Points[len(s.Points)-1].Limit)
	if s.PointAt(2999).HitRate != 0 || s.PointAt(3072).HitRate*3 != 1 || !strings.Contains(string(text), want) {
		t.Errorf("%+v\nnot written: %s", s.Points, want)
	}
}

// TestLatestServes: of the blocks that are large enough and not too large, the one that was freed last serves.
func TestLatestServes(t *testing.T) {
	c := New(Options{})
	for _, size := range []uint64{1000, 1900, 1500, 2500} {
		c.NoteBlockFreed(1, size, 0)
	}
	c.NoteBlockFreed(2, 1200, 0)
	for _, want := range []uint64{1500, 1900, 1000, 0} {
		if got := c.NoteRequest(1, 1000, 2000); got != want {
			t.Errorf("%d serves, want %d", got, want)
		}
	}
	c.DropClass(2)
	if got := c.NoteRequest(2, 1200, 2400); got != 0 {
		t.Errorf("%d serves of a class that is gone", got)
	}
	if got := c.NoteRequest(1, 1000, 0); got != 0 {
		t.Errorf("%d serves where only the size itself may", got)
	}
}
