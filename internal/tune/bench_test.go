package tune

import (
	"context"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
)

// BenchmarkSearch tries as many configurations as gpumemtop tune does, cross-validation included, on a program with 400
// call sites that holds 4,096 buffers at a time. Budget: 60 s on two cores.
func BenchmarkSearch(b *testing.B) {
	tape := load(b, labtest.NewTapeOfSites(1_000_000, 400, 4096))
	points := 0
	for b.Loop() {
		r, err := Search(context.Background(), []*replay.Loaded{tape}, Options{Fit: true})
		if err != nil {
			b.Fatal(err)
		}
		r.CrossValidate(context.Background())
		points = len(r.Points)
	}
	b.ReportMetric(float64(points), "configurations")
	b.ReportMetric(float64(tape.EventCount()*points*b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}
