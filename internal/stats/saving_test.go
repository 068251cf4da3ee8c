package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestSaved takes runs with given driver calls, hits and releases into the pool.
func TestSaved(t *testing.T) {
	type call struct {
		size uint64
		ns   uint32
	}
	twice := func(size uint64, ns uint32) []call { return []call{{size, ns}, {size, ns}} }
	for name, c := range map[string]struct {
		creates, releases, hits, parked []call
		want                            SavedCalls
	}{
		"nothing was timed":               {hits: []call{{1 << 20, 0}}},
		"a time of 0 is none":             {creates: twice(64, 0), hits: []call{{64, 0}}},
		"only a cold create":              {creates: []call{{64, 8000}}, hits: twice(64, 10), want: SavedCalls{Pool: 20}},
		"one cold create":                 {creates: []call{{64, 98_000}, {64, 200}, {64, 300}}, hits: []call{{64, 0}}, want: SavedCalls{NS: 300}},
		"of two the lower":                {creates: []call{{64, 98_000}, {64, 200}}, hits: []call{{64, 0}}, want: SavedCalls{NS: 200}},
		"the pool's own time":             {creates: twice(64, 200), hits: twice(64, 50), want: SavedCalls{NS: 300, Pool: 100}},
		"one slow hit of five":            {creates: twice(64, 200), hits: []call{{64, 50}, {64, 50}, {64, 9000}, {64, 50}, {64, 50}}, want: SavedCalls{NS: 750, Pool: 250}},
		"the pool takes longer":           {creates: twice(64, 200), hits: twice(64, 210), want: SavedCalls{Pool: 420}},
		"releases into the pool are free": {creates: twice(64, 200), hits: twice(64, 50), parked: twice(64, 900), want: SavedCalls{NS: 300, Pool: 1900}},
		"unless the driver's count":       {creates: twice(64, 200), releases: twice(64, 180), hits: twice(64, 50), parked: twice(64, 90), want: SavedCalls{NS: 480, Pool: 280, Releases: true}},
		"lost in the scatter":             {creates: []call{{64, 90}, {64, 90}, {64, 200}, {64, 200}, {64, 200}}, hits: twice(64, 95), want: SavedCalls{Pool: 190}},
		"releases, too":                   {creates: twice(64, 200), releases: []call{{64, 70}, {64, 90}}, hits: []call{{64, 0}}, want: SavedCalls{NS: 270, Releases: true}},
		"a single release may be a cold":  {creates: twice(64, 200), releases: []call{{64, 9000}}, hits: []call{{64, 0}}, want: SavedCalls{NS: 200}},
		"a release counts as a create":    {creates: twice(64, 200), releases: twice(64, 9000), hits: []call{{64, 0}}, want: SavedCalls{NS: 400, Releases: true}},
		"the nearest class":               {creates: append(twice(1<<10, 5), twice(1<<26, 9)...), hits: []call{{1 << 20, 0}}, want: SavedCalls{NS: 9}},
		"of two equally near the smaller": {creates: append(twice(1<<14, 5), twice(1<<26, 9)...), hits: []call{{1 << 20, 0}}, want: SavedCalls{NS: 5}},
		"no dearer than larger sizes":     {creates: append(twice(64, 900), twice(1<<26, 9)...), hits: []call{{64, 0}}, want: SavedCalls{NS: 9}},
	} {
		var costs costs
		for range enoughTimed / 2 {
			for _, x := range c.creates {
				costs.creates.addCall(x.size, x.ns)
			}
			for _, x := range c.releases {
				costs.releases.addCall(x.size, x.ns)
			}
		}
		for _, x := range c.hits {
			costs.countHit(x.size, x.ns)
		}
		for _, x := range c.parked {
			costs.parked.addCall(x.size, x.ns)
		}
		if got := costs.estimateSaved(); got != c.want {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

// TestSavedIsBounded checks on random runs that no more is saved than hits times the largest timed create and release,
// and that one create and one release that take seconds do not matter.
func TestSavedIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		var c costs
		c.creates.addCall(1<<r.IntN(32), math.MaxUint32)
		c.releases.addCall(1<<r.IntN(32), math.MaxUint32)
		classes, hits, largest := 1+r.IntN(30), uint64(0), [2]uint32{}
		for range 2 + r.IntN(40) {
			size := uint64(1) << r.IntN(classes)
			times := [2]uint32{r.Uint32N(1e6), r.Uint32N(1e6)}
			for range enoughTimed { // so that each class has enough
				c.creates.addCall(size, times[0])
				c.releases.addCall(size, times[1])
			}
			largest[0], largest[1] = max(largest[0], times[0]), max(largest[1], times[1])
		}
		for range r.IntN(1000) {
			hits++
			c.countHit(r.Uint64(), r.Uint32N(100))
		}
		if got := c.estimateSaved(); got.NS > hits*uint64(largest[0]+min(largest[0], largest[1])) {
			t.Fatalf("%d hits saved %+v; the slowest usual calls took %v ns", hits, got, largest)
		}
	}
}

// TestSlowFirstAndLastCalls: neither the first nor the last calls decide, which may be slow for reasons of their own.
func TestSlowFirstAndLastCalls(t *testing.T) {
	for name, slow := range map[string]func(call, calls int) bool{
		"first": func(call, _ int) bool { return call < kept },
		"last":  func(call, calls int) bool { return call >= calls-kept },
	} {
		for _, calls := range []int{6 * kept, 10_000} {
			var c costs
			for call := range calls {
				ns := uint32(400)
				if slow(call, calls) {
					ns = 9000
				}
				c.creates.addCall(64, ns)
				c.releases.addCall(64, ns)
			}
			c.countHit(64, 100)
			c.countHit(64, 100)
			if got := c.estimateSaved(); got.NS != 2*(400+400-100) {
				t.Errorf("the %s of %d calls are slow: %+v", name, calls, got)
			}
		}
	}
}

// TestSavedByARun counts what a stream of records saves: one cold create and release, usual ones, then hits.
func TestSavedByARun(t *testing.T) {
	s := newStream(Options{})
	for i, cost := range []uint32{500_000, 400, 400, 400, 400, 400, 400, 400} {
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
	if got := s.Snapshot().Totals; got.Saved.NS != 100*(400+200-100-50) || !got.Saved.Releases {
		t.Errorf("saved %+v by %d hits", got.Saved, got.Hits)
	}
}

// TestSlabsAreNoMeasure: under a policy that carves slabs, only whole blocks show what hits save.
func TestSlabsAreNoMeasure(t *testing.T) {
	s := newStream(Options{})
	for block := uint64(1); block < 30; block += 10 {
		s.slab(block, 4<<20)
		s.part(wire.OutcomeMiss, block, block+1, 1<<20)
		s.part(wire.OutcomeHit, block+1, block+2, 1<<20)
	}
	if got := s.Snapshot().Totals; got.Hits != 3 || got.Saved.NS != 0 || got.DriverCreates != 3 {
		t.Errorf("saved %+v, %d creates", got.Saved, got.DriverCreates)
	}
	for i := range uint64(enoughTimed) {
		s.feed(wire.Event{
			Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: 100 + i, Link: 100 + i, Size: 1 << 20, Granted: 1 << 20, Cost: 200,
		})
	}
	if got := s.Snapshot().Totals; got.Saved.NS == 0 || got.Saved.NS > 3*200 {
		t.Errorf("saved %+v", got.Saved)
	}
}

// TestSavedByThreads counts what hits save where several threads begin at once: what a further thread's first create took is
// not usual, and where there is nothing else, the saving is unknown.
func TestSavedByThreads(t *testing.T) {
	for _, c := range []struct {
		threads uint32
		each    int
		want    uint64
	}{{2, 1, 0}, {40, 1, 0}, {2, 2, 0}, {2, enoughTimed, 70_000}, {2 * threadsMax, 3, 70_000}} {
		var costs costs
		for i := range c.each {
			for thread := range c.threads {
				cost := uint32(700)
				if i == 0 {
					cost = 195_000
				}
				costs.addCreate(100+thread, 4096, cost)
			}
		}
		for range 100 {
			costs.countHit(4096, 0)
		}
		if got := costs.estimateSaved(); got.NS != c.want {
			t.Errorf("%d threads with %d creates each: saved %+v", c.threads, c.each, got)
		}
		if len(costs.threads.others) > threadsMax {
			t.Errorf("%d threads are kept", len(costs.threads.others))
		}
	}
}
