package curve

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

// list is a plain form of depths: blocks from the oldest on, with their greatest depths.
type list []listed

type listed struct {
	order uint64
	size  uint64
	most  uint64
}

func (l *list) push(order, size uint64) {
	*l = append(*l, listed{order: order, size: size})
	depth := uint64(0)
	for i := len(*l) - 1; i >= 0; i-- {
		b := &(*l)[i]
		depth += b.size
		b.most = max(b.most, depth)
	}
}

func (l *list) pop(i int) listed {
	b := (*l)[i]
	*l = slices.Delete(*l, i, i+1)
	return b
}

// TestDepthsAreThoseOfAList compares depths with a list that grows and shrinks.
func TestDepthsAreThoseOfAList(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var d depths
		var l list
		for step := range uint64(4000) {
			full := 20 + 300*int(step/1000%2) // blocks about which it swings
			if len(l) == 0 || rng.IntN(2*full) > len(l) {
				size := 1 + rng.Uint64N(1<<rng.UintN(20))
				d.pushBlock(step, float64(size), float64(size), 1024)
				l.push(step, size)
				continue
			}
			b := l.pop(rng.IntN(len(l)))
			if got := d.popBlock(b.order, float64(b.size)); got != float64(b.most) {
				t.Fatalf("seed %d, step %d: greatest depth %g, want %d", seed, step, got, b.most)
			}
		}
	}
}

// TestDepthsJoined: with few slots, depths are known to a few percent.
func TestDepthsJoined(t *testing.T) {
	racetest.Slow(t)
	rng := rand.New(rand.NewPCG(1, 1))
	var d depths
	var l list
	var wrong, pops float64
	for step := range uint64(20_000) {
		if len(l) == 0 || rng.IntN(6000) > len(l) {
			size := 1 + rng.Uint64N(1<<rng.UintN(20))
			d.pushBlock(step, float64(size), float64(size), 1024)
			l.push(step, size)
			continue
		}
		b := l.pop(rng.IntN(len(l)))
		off := math.Abs(max(d.popBlock(b.order, float64(b.size)), float64(b.size))/float64(b.most) - 1)
		wrong, pops = wrong+off, pops+1
	}
	if mean := wrong / pops; mean > 0.02 || mean == 0 || d.leafCount() > 1024 {
		t.Errorf("%.4f off on average, %d slots for %d blocks", mean, d.leafCount(), len(l))
	} else {
		t.Logf("%.4f off on average, %d slots for %d blocks", mean, d.leafCount(), len(l))
	}
}

// TestRecomputeDepths leaves out every other block: depths are computed again, greatest depths stay.
func TestRecomputeDepths(t *testing.T) {
	var d depths
	for i := range uint64(6) {
		d.pushBlock(i, 10, 10, 64)
	}
	d.popBlock(5, 10) // the others have been deeper by it
	d.clearBlocks()
	for i := range uint64(3) {
		d.restoreBlock(2*i, 20)
	}
	d.recomputeDepths(2)
	if got := d.popBlock(4, 20); got != 20 { // it once had block 5 above it
		t.Errorf("the newest: %g", got)
	}
	d.pushBlock(6, 10, 20, 64)
	d.pushBlock(7, 10, 20, 64)
	// Above the oldest are now three that stand for two each.
	if got := d.popBlock(0, 20); got != 70 {
		t.Errorf("the oldest: %g", got)
	}
	if got := d.popBlock(2, 20); got != 50 {
		t.Errorf("the one above it: %g", got)
	}
}

func TestPlaces(t *testing.T) {
	last := -1
	for limit := uint64(1); limit < 1<<limitBits; limit += 1 + limit/100 {
		place := bucketOfLimit(float64(limit))
		if at := limitOfBucket(place); at < limit || float64(at) > float64(limit)*(1+1.0/bucketsPerDoubling) || place < last {
			t.Fatalf("limit %d has place %d, whose limit is %d", limit, place, at)
		}
		if back := bucketOfLimit(float64(limitOfBucket(place))); back != place {
			t.Fatalf("place %d of limit %d is place %d", place, limitOfBucket(place), back)
		}
		last = place
	}
	for shift := range limitBits + 1 {
		if limit := uint64(1) << shift; limitOfBucket(bucketOfLimit(float64(limit))) != limit {
			t.Errorf("limit %d is not exact", limit)
		}
	}
	if bucketOfLimit(1<<limitBits+1) != bucketBeyond || bucketOfLimit(1<<limitBits) >= bucketBeyond || bucketOfLimit(0.5) != 1 {
		t.Errorf("the ends: %d, %d, %d", bucketOfLimit(1<<limitBits+1), bucketOfLimit(1<<limitBits), bucketOfLimit(0.5))
	}
}
