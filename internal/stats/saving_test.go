package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestSaved takes runs with given driver calls, hits and times of the pool.
func TestSaved(t *testing.T) {
	type call struct {
		size uint64
		ns   uint32
	}
	for name, c := range map[string]struct {
		creates, releases, hits []call
		pool                    uint64 // ns of releases into the pool
		want                    uint64
		known                   bool
	}{
		"nothing was timed":               {hits: []call{{1 << 20, 0}}},
		"a time of 0 is none":             {creates: []call{{64, 0}, {64, 0}}, hits: []call{{64, 0}}},
		"only a cold create":              {creates: []call{{64, 8000}}, hits: []call{{64, 10}, {64, 10}}, want: 0},
		"one cold create":                 {creates: []call{{64, 98_000}, {64, 200}, {64, 300}}, hits: []call{{64, 0}}, want: 300, known: true},
		"of two the lower":                {creates: []call{{64, 98_000}, {64, 200}}, hits: []call{{64, 0}}, want: 200, known: true},
		"the pool's own time":             {creates: []call{{64, 200}, {64, 200}}, hits: []call{{64, 50}, {64, 30}}, pool: 20, want: 300, known: true},
		"the pool takes longer":           {creates: []call{{64, 200}, {64, 200}}, hits: []call{{64, 190}}, pool: 20, want: 0, known: true},
		"releases, too":                   {creates: []call{{64, 200}, {64, 200}}, releases: []call{{64, 70}, {64, 90}}, hits: []call{{64, 0}}, want: 270, known: true},
		"a single release may be a cold":  {creates: []call{{64, 200}, {64, 200}}, releases: []call{{64, 9000}}, hits: []call{{64, 0}}, want: 200, known: true},
		"a release counts as a create":    {creates: []call{{64, 200}, {64, 200}}, releases: []call{{64, 9000}, {64, 9000}}, hits: []call{{64, 0}}, want: 400, known: true},
		"the nearest class":               {creates: []call{{1 << 10, 5}, {1 << 10, 5}, {1 << 26, 9}, {1 << 26, 9}}, hits: []call{{1 << 20, 0}}, want: 9, known: true},
		"of two equally near the smaller": {creates: []call{{1 << 14, 5}, {1 << 14, 5}, {1 << 26, 9}, {1 << 26, 9}}, hits: []call{{1 << 20, 0}}, want: 5, known: true},
		"no dearer than larger sizes":     {creates: []call{{64, 900}, {64, 900}, {1 << 26, 9}, {1 << 26, 9}}, hits: []call{{64, 0}}, want: 9, known: true},
	} {
		var costs costs
		for _, x := range c.creates {
			costs.creates.add(x.size, x.ns)
		}
		for _, x := range c.releases {
			costs.releases.add(x.size, x.ns)
		}
		for _, x := range c.hits {
			costs.hit(x.size, x.ns)
		}
		costs.own += c.pool
		if got, known := costs.saved(); got != c.want || known != c.known {
			t.Errorf("%s: %d, %v; want %d, %v", name, got, known, c.want, c.known)
		}
	}
}

// TestSavedIsBounded checks on random runs that no more is saved than hits times the largest timed create and release,
// and that one create and one release that take seconds do not matter.
func TestSavedIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		var c costs
		c.creates.add(1<<r.IntN(32), math.MaxUint32)
		c.releases.add(1<<r.IntN(32), math.MaxUint32)
		classes, hits, largest := 1+r.IntN(30), uint64(0), [2]uint32{}
		for range 2 + r.IntN(40) {
			size := uint64(1) << r.IntN(classes)
			times := [2]uint32{r.Uint32N(1e6), r.Uint32N(1e6)}
			for range 2 { // so that each class has enough
				c.creates.add(size, times[0])
				c.releases.add(size, times[1])
			}
			largest[0], largest[1] = max(largest[0], times[0]), max(largest[1], times[1])
		}
		for range r.IntN(1000) {
			hits++
			c.hit(r.Uint64(), r.Uint32N(100))
		}
		if got, known := c.saved(); got > hits*uint64(largest[0]+min(largest[0], largest[1])) || !known {
			t.Fatalf("%d hits saved %d ns, %v; the slowest usual calls took %v ns", hits, got, known, largest)
		}
	}
}

// TestSavedByARun counts what a stream of records saves: one cold create and release, usual ones, then hits.
func TestSavedByARun(t *testing.T) {
	s := newStream(Options{})
	for i, cost := range []uint32{500_000, 400, 400, 400} {
		id := uint64(i + 1)
		s.feed(wire.Event{
			Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: id, Link: id, Size: 4096, Granted: 4096, Duration: cost, Cost: cost,
		})
		s.feed(wire.Event{Kind: wire.KindRelease, Object: id, Outcome: wire.OutcomeDriver, Link: id, Duration: cost / 2, Cost: cost / 2})
	}
	s.miss(10, 10, 4096, 4096, 0)
	for id := uint64(10); id < 110; id++ {
		s.feed(wire.Event{Kind: wire.KindRelease, Object: id, Outcome: wire.OutcomeCached, Link: 10, Duration: 50})
		s.hit(id+1, 10, 4096, 4096, 0)
	}
	if got := s.Snapshot().Totals; got.SavedNS != 100*(400+200-100-50) || !got.SavedKnown {
		t.Errorf("saved %d ns, %v, by %d hits", got.SavedNS, got.SavedKnown, got.Hits)
	}
}

// TestSavedByThreads counts what hits save where several threads begin at once: what a further thread's first create took is
// not usual, and where there is nothing else, the saving is unknown.
func TestSavedByThreads(t *testing.T) {
	for _, c := range []struct {
		threads uint32
		each    int
		want    uint64
	}{{2, 1, 0}, {40, 1, 0}, {2, 3, 70_000}, {2 * threadsMax, 3, 70_000}} {
		var costs costs
		for i := range c.each {
			for thread := range c.threads {
				cost := uint32(700)
				if i == 0 {
					cost = 195_000
				}
				costs.create(100+thread, 4096, cost)
			}
		}
		for range 100 {
			costs.hit(4096, 0)
		}
		if got, known := costs.saved(); got != c.want || known != (c.want > 0) {
			t.Errorf("%d threads with %d creates each: saved %d ns, %v", c.threads, c.each, got, known)
		}
		if len(costs.threads.others) > threadsMax {
			t.Errorf("%d threads are kept", len(costs.threads.others))
		}
	}
}
