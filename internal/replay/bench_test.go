package replay

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
)

// BenchmarkRun plays a loaded recording through every policy. GPUMEMTOP_RECORDING names a recording to play instead of
// the synthetic one.
func BenchmarkRun(b *testing.B) {
	loaded, err := Load(labtest.OpenRecordedOr(b, labtest.NewTapeOfSites(1_000_000, 40, 64)))
	if err != nil {
		b.Fatal(err)
	}
	for _, policy := range allocator.PolicyNames() {
		b.Run(policy, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := loaded.Replay(Options{Policy: policy}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(loaded.EventCount())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

// BenchmarkSimulation takes records as they come.
func BenchmarkSimulation(b *testing.B) {
	src := labtest.NewTapeOfSites(1_000_000, 40, 64)
	for b.Loop() {
		if err := src.Rewind(); err != nil {
			b.Fatal(err)
		}
		if _, err := Replay(src, Options{Policy: "futhark"}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(src.Records))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}
