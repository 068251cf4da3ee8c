package curve

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

// stream is an endless stream of requests and releases: kinds follow a Zipf distribution, and buffers live for a random
// time.
type stream struct {
	rng   *rand.Rand
	zipf  *rand.Zipf
	kinds []pileKey
	live  []pileKey
	full  int
	time  int64
}

func newStream(seed uint64, kinds, full int) *stream {
	s := &stream{rng: rand.New(rand.NewPCG(seed, 4)), kinds: make([]pileKey, kinds), full: full}
	s.zipf = rand.NewZipf(s.rng, 1.2, 4, uint64(kinds-1))
	for i := range s.kinds {
		s.kinds[i] = pileKey{uint32(1 + i%3), uint64(math.Exp2(8+10*s.rng.Float64())) + 8*uint64(i)}
	}
	return s
}

// play feeds n events to curves. How many buffers live swings slowly.
func (s *stream) play(events int, curves ...*Curve) {
	for range events {
		s.time += 1000
		swing := 1 + 0.7*math.Sin(float64(s.time)/4e7)
		if len(s.live) > 0 && 2*float64(s.full)*swing*s.rng.Float64() < float64(len(s.live)) {
			i := s.rng.IntN(len(s.live))
			p := s.live[i]
			s.live[i] = s.live[len(s.live)-1]
			s.live = s.live[:len(s.live)-1]
			for _, c := range curves {
				c.NoteBlockFreed(p.class, p.size, s.time)
			}
			continue
		}
		p := s.kinds[s.zipf.Uint64()]
		s.live = append(s.live, p)
		for _, c := range curves {
			c.NoteRequest(p.class, p.size, 0)
		}
	}
}

// farthest returns the largest distance between two curves.
func farthest(a, b *Snapshot) float64 {
	most := 0.0
	for _, s := range []*Snapshot{a, b} {
		for _, p := range s.Points {
			most = max(most, math.Abs(a.PointAt(p.Limit).HitRate-b.PointAt(p.Limit).HitRate))
		}
	}
	return most
}

// TestSampledCurveIsNearTheComplete compares sampled curves with a complete one: for few kinds, where heights are left out
// because too many blocks come per second, and for very many kinds, where piles are left out because they take too much memory.
func TestSampledCurveIsNearTheComplete(t *testing.T) {
	racetest.Slow(t)
	for _, of := range []struct {
		kinds   int
		options Options
		most    float64
	}{
		{200, Options{Rate: 10_000}, 0.05},
		{40_000, Options{Memory: MemoryMin}, 0.06},
	} {
		for seed := range uint64(1) {
			all, some := New(Options{Memory: 32 << 20}), New(of.options)
			newStream(seed, of.kinds, 10_000).play(120_000, all, some)
			a, s := all.Snapshot(), some.Snapshot()
			off := farthest(a, s)
			if all.heightShift+all.pileShift > 0 || some.heightShift+some.pileShift == 0 || off > of.most {
				t.Errorf("%d kinds, seed %d: %.4f off", of.kinds, seed, off)
			}
			t.Logf("%d kinds, seed %d: %.4f off; one in 2^%d places and 2^%d piles", of.kinds, seed, off, some.heightShift, some.pileShift)
		}
	}
}

// TestCurveKeepsToItsMemory: a curve never takes more memory than allowed.
func TestCurveKeepsToItsMemory(t *testing.T) {
	racetest.Slow(t)
	for name, next := range map[string]func(i uint64) pileKey{
		"a new size each time": func(i uint64) pileKey { return pileKey{1, 1 + i} },
		"one size":             func(uint64) pileKey { return pileKey{1, 4096} },
		"each octave":          func(i uint64) pileKey { return pileKey{1, 1 << (i % 40)} },
		"ever larger":          func(i uint64) pileKey { return pileKey{1, 1 << (i / 6000)} },
		"enormous":             func(i uint64) pileKey { return pileKey{uint32(i), math.MaxUint64 - i} },
	} {
		c := New(Options{Memory: MemoryMin})
		memory := heapBytes()
		for i := range uint64(200_000) {
			p := next(i)
			c.NoteBlockFreed(p.class, p.size, 0)
		}
		for i := range uint64(1000) {
			p := next(i)
			c.NoteRequest(p.class, p.size, 0)
		}
		if took := heapBytes() - memory; took > MemoryMin {
			t.Errorf("%s: %d bytes of memory", name, took)
		}
		s := c.Snapshot()
		for _, p := range s.Points {
			if math.IsNaN(p.HitRate) {
				t.Errorf("%s: %+v", name, p)
			}
		}
		t.Logf("%s: %d blocks, one in 2^%d places and 2^%d piles", name, c.measured, c.heightShift, c.pileShift)
	}
}

// heapBytes returns how much memory is reachable.
func heapBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestEachRequestIsHitOrMiss: every request is a hit or a miss, and the curve ends at the hit rate.
func TestEachRequestIsHitOrMiss(t *testing.T) {
	racetest.Slow(t)
	for _, memory := range []int{MemoryMin, 0} {
		c := New(Options{Memory: memory})
		s := newStream(5, 3000, 8000)
		hits, requests := 0, 0
		for range 100 {
			before := c.Snapshot()
			s.play(1000, c)
			after := c.Snapshot()
			if after.Requests < before.Requests || after.Hits < before.Hits || after.Hits > after.Requests {
				t.Fatalf("%+v, then %+v", before, after)
			}
		}
		for range 500 {
			c.NoteBlockFreed(1, 1000, s.time)
		}
		for range 1000 {
			if c.NoteRequest(1, 1000, 0) > 0 {
				hits++
			}
			requests++
		}
		end := c.Snapshot()
		if last := end.Points[len(end.Points)-1].HitRate; math.Abs(last-end.Hits/end.Requests) > 1e-9 {
			t.Errorf("memory %d: the curve ends at %g, hits are %g of %g", memory, last, end.Hits, end.Requests)
		}
		if hits == 0 || hits == requests {
			t.Errorf("%d of %d were served", hits, requests)
		}
	}
}

// TestKneeOfSimpleCurves finds the knee of simple curves.
func TestKneeOfSimpleCurves(t *testing.T) {
	s := &Snapshot{Points: []Point{
		{}, {Limit: 10, HitRate: 0.5}, {Limit: 20, HitRate: 0.6}, {Limit: 50, HitRate: 0.62}, {Limit: 90, HitRate: 0.8}, {Limit: 95, HitRate: 0.795}, {Limit: 100, HitRate: 0.8},
	}}
	if p := s.KneePoint(); p.Limit != 90 {
		t.Errorf("knee %+v", p)
	}
	if p := s.BestPoint(); p.Limit != 90 {
		t.Errorf("best %+v", p)
	}
	if p := s.NearlyBestPoint(); p.Limit != 90 {
		t.Errorf("enough %+v", p)
	}
	near := &Snapshot{Points: []Point{{}, {Limit: 10, HitRate: 0.5}, {Limit: 20, HitRate: 0.779}, {Limit: 50, HitRate: 0.781}, {Limit: 90, HitRate: 0.8}}}
	if p := near.KneePoint(); p.Limit != 50 {
		t.Errorf("within two points: %+v", p)
	}
	step := &Snapshot{Points: []Point{{}, {Limit: 64, HitRate: 1}}}
	if p := step.KneePoint(); p.Limit != 64 {
		t.Errorf("one step: %+v", p)
	}
	empty := New(Options{}).Snapshot()
	if empty.KneePoint() != (Point{}) || empty.BestPoint() != (Point{}) || empty.NearlyBestPoint() != (Point{}) || empty.PointAt(5) != (Point{Limit: 5}) {
		t.Errorf("of nothing: %+v", empty)
	}
}

func BenchmarkEvents(b *testing.B) {
	for _, of := range []struct {
		name        string
		kinds, full int
	}{{"20kinds", 20, 1000}, {"1000kinds", 1000, 10_000}, {"100000kinds", 100_000, 100_000}} {
		b.Run(of.name, func(b *testing.B) {
			s := newStream(1, of.kinds, of.full)
			c := New(Options{})
			s.play(100_000, c)
			b.ResetTimer()
			s.play(b.N, c)
			b.ReportMetric(float64(c.heightShift+c.pileShift), "halvings")
			b.ReportMetric(float64(c.mostMemoryBytes())/(1<<20), "MiB")
		})
		b.Run(of.name+"/rate", func(b *testing.B) {
			s := newStream(1, of.kinds, of.full)
			c := New(Options{Rate: 100_000})
			s.play(2_000_000, c)
			b.ResetTimer()
			s.play(b.N, c)
			b.ReportMetric(float64(c.heightShift+c.pileShift), "halvings")
		})
		b.Run(of.name+"/nothing", func(b *testing.B) {
			s := newStream(1, of.kinds, of.full)
			s.play(100_000)
			b.ResetTimer()
			s.play(b.N)
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	s := newStream(1, 1000, 10_000)
	c := New(Options{})
	s.play(300_000, c)
	for b.Loop() {
		c.Snapshot()
	}
}
