package curve

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCurveGoesThroughExactPoints: the curve goes through exact points, and is corrected between and beyond them.
func TestCurveGoesThroughExactPoints(t *testing.T) {
	s := &Snapshot{Points: []Point{{}, {Limit: 4, HitRate: 0.2}, {Limit: 16, HitRate: 0.4}, {Limit: 256, HitRate: 0.8}}}
	exact := []Point{{Limit: 16, HitRate: 0.6}, {Limit: 64, HitRate: 0.4}, {Limit: 256, HitRate: 0.7}}
	want := map[uint64]float64{0: 0, 4: 0.3, 16: 0.6, 32: 0.5, 64: 0.4, 256: 0.7, 1024: 0.7}
	through := &Snapshot{Points: s.correctedPoints(exact)}
	for limit, rate := range want {
		if got := s.correctedRate(limit, exact); math.Abs(got-rate) > 1e-9 {
			t.Errorf("limit %d: %g, want %g", limit, got, rate)
		}
		if got := through.PointAt(limit).HitRate; limit != 32 && math.Abs(got-rate) > 1e-9 {
			t.Errorf("limit %d: the curve has %g, want %g", limit, got, rate)
		}
	}
	if got := s.meanError(exact); math.Abs(got-0.1) > 1e-9 { // 0.2, 0 and 0.1
		t.Errorf("%g off", got)
	}
	// Without the first: 0.4, in the ratio of 0.4/0.4; without the second 0.45, which is raised to its neighbour's 0.6;
	// without the third 0.8.
	if got := s.leaveOneOutError(exact); math.Abs(got-(0.2+0.2+0.1)/3) > 1e-9 {
		t.Errorf("%g missed", got)
	}
	if s.meanError(nil) != 0 || s.leaveOneOutError(nil) != 0 || len(s.correctedPoints(nil)) != len(s.Points) {
		t.Error("of no points")
	}
}

// TestEstimatesAreMonotone: between two exact points of 9 % each there are no 27 %, whatever the curve alone says; from one
// exact point to the next the estimates rise or fall only; and exact points stay, also where a larger limit hits less.
func TestEstimatesAreMonotone(t *testing.T) {
	s := &Snapshot{Points: []Point{{}, {Limit: 4, HitRate: 0.1}, {Limit: 8, HitRate: 0.9}, {Limit: 16, HitRate: 0.5}}}
	flat := []Point{{Limit: 4, HitRate: 0.09}, {Limit: 16, HitRate: 0.09}}
	if got := (&Snapshot{Points: s.correctedPoints(flat)}).PointAt(8).HitRate; got != 0.09 {
		t.Errorf("%g between 0.09 and 0.09", got)
	}
	rng := rand.New(rand.NewPCG(8, 1))
	for range 2000 {
		s := &Snapshot{Points: []Point{{}}}
		for limit := 1 + rng.Uint64N(9); len(s.Points) < 20; limit += 1 + rng.Uint64N(99) {
			s.Points = append(s.Points, Point{Limit: limit, HitRate: rng.Float64()})
		}
		var exact []Point
		for limit := 1 + rng.Uint64N(100); limit < 2000 && len(exact) < anchorsMax; limit += 1 + rng.Uint64N(500) {
			exact = append(exact, Point{Limit: limit, HitRate: rng.Float64()})
		}
		checkMonotone(t, s.correctedPoints(exact), exact)
	}
}

func checkMonotone(t *testing.T, points, exact []Point) {
	t.Helper()
	low, before := Point{}, 0.0 // the exact point below
	for _, p := range points {
		above, there := firstExactPointFrom(p.Limit, exact)
		high := Point{HitRate: 1}
		if above < len(exact) {
			high = exact[above]
		}
		rises := high.HitRate >= low.HitRate
		if p.HitRate < min(low.HitRate, high.HitRate) || p.HitRate > max(low.HitRate, high.HitRate) ||
			rises && p.HitRate < before || !rises && p.HitRate > before || there && p.HitRate != high.HitRate {
			t.Fatalf("%g after %g, between %+v and %+v", p.HitRate, before, low, high)
		}
		if before = p.HitRate; there {
			low = high
		}
	}
}
