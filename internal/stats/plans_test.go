package stats

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestPlanServesARecordedLoop of a recorded training loop, which got one: what served its requests, and the peaks before and after.
func TestPlanServesARecordedLoop(t *testing.T) {
	file, err := recording.Open("../replay/testdata/train.arena.gmt")
	if err != nil {
		t.Fatal(err)
	}
	m := New(Options{Policy: "arena"})
	for r, err := range recording.Records(file) {
		if err != nil {
			t.Fatal(err)
		}
		m.Apply(r)
	}
	m.PublishSnapshot()
	s := m.PublishedSnapshot()
	p := &s.Totals.Plans
	if p.Installed != 1 || p.Places != 10 || p.Arenas != p.Bound || p.Arenas != 492160 || p.PlannableRequests() != 600 {
		t.Errorf("%+v", p)
	}
	if p.Routes[wire.RoutePlanned]+p.Routes[wire.RouteNoPlanYet] != 600 || p.ShareServedByPlan() < 0.8 {
		t.Errorf("routes %v", p.Routes)
	}
	if p.Reserved > p.Learning || p.Reserved < p.Requested || 100*p.Reserved > 102*p.Requested || p.Learning > s.Totals.PeakReserved {
		t.Errorf("%+v, the peak is %d", p, s.Totals.PeakReserved)
	}
	if own := s.Processes[0].Totals.Plans; own != *p {
		t.Errorf("the process has %+v, all have %+v", own, p)
	}
}
