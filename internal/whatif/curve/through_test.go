package curve

import (
	"math"
	"testing"
)

// TestAnchored: the curve goes through exact points, and is corrected between and beyond them.
func TestAnchored(t *testing.T) {
	s := &Snapshot{Points: []Point{{}, {Limit: 4, HitRate: 0.2}, {Limit: 16, HitRate: 0.4}, {Limit: 256, HitRate: 0.8}}}
	exact := []Point{{Limit: 16, HitRate: 0.6}, {Limit: 64, HitRate: 0.4}, {Limit: 256, HitRate: 0.7}}
	want := map[uint64]float64{0: 0, 4: 0.3, 16: 0.6, 32: 0.5, 64: 0.4, 256: 0.7, 1024: 0.7}
	through := &Snapshot{Points: s.through(exact)}
	for limit, rate := range want {
		if got := s.correctedRate(limit, exact); math.Abs(got-rate) > 1e-9 {
			t.Errorf("limit %d: %g, want %g", limit, got, rate)
		}
		if got := through.At(limit).HitRate; limit != 32 && math.Abs(got-rate) > 1e-9 {
			t.Errorf("limit %d: the curve has %g, want %g", limit, got, rate)
		}
	}
	if got := s.meanError(exact); math.Abs(got-0.1) > 1e-9 { // 0.2, 0 and 0.1
		t.Errorf("%g off", got)
	}
	// Without the first: 0.4, in the ratio of 0.4/0.4; without the second half of 0.2 and -0.1; without the third 0.8.
	if got := s.leaveOneOutError(exact); math.Abs(got-(0.2+0.05+0.1)/3) > 1e-9 {
		t.Errorf("%g missed", got)
	}
	if s.meanError(nil) != 0 || s.leaveOneOutError(nil) != 0 || len(s.through(nil)) != len(s.Points) {
		t.Error("of no points")
	}
}
