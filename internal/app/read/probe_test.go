package read

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// TestUseProbe: a probe says what hits saved where the run does not, if it is of the run's device.
func TestUseProbe(t *testing.T) {
	probe := replay.Options{Device: cost.Device{Create: cost.Line{A: 100}, Release: cost.Line{A: 50}, Touch: cost.Line{B: 2}}}
	own := stats.SavedCalls{NS: 7, Releases: true}
	for name, c := range map[string]struct {
		device string
		saved  stats.SavedCalls
		calls  stats.SavedCalls
		touch  uint64
	}{
		"nothing known":    {"card", stats.SavedCalls{Pool: 200}, stats.SavedCalls{NS: 1300, Pool: 200, Releases: true, Device: "card"}, 20480},
		"creates only":     {"card", stats.SavedCalls{NS: 7, Pool: 200}, stats.SavedCalls{NS: 1300, Pool: 200, Releases: true, Device: "card"}, 20480},
		"device unknown":   {"", stats.SavedCalls{}, stats.SavedCalls{NS: 1500, Releases: true, Device: "card"}, 20480},
		"the run knows":    {"card", own, own, 20480},
		"the pool is slow": {"card", stats.SavedCalls{Pool: 2000}, stats.SavedCalls{Pool: 2000, Releases: true, Device: "card"}, 20480},
		"another device":   {"other", stats.SavedCalls{Pool: 200}, stats.SavedCalls{Pool: 200}, 0},
	} {
		s := &stats.Snapshot{Device: stats.Device{Name: c.device}, Totals: stats.Totals{Saved: c.saved}, Buckets: []stats.Bucket{{Smallest: 1024, Share: stats.Share{Hits: 10}}}}
		applyProbedCosts(&analysis.Analysis{Snapshot: s}, "card", &probe)
		if got := &s.Totals; got.Saved != c.calls || got.SavedTouches.NS != c.touch {
			t.Errorf("%s: %+v, touches %+v", name, got.Saved, got.SavedTouches)
		}
	}
}
