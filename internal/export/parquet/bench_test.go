package parquet

import (
	"fmt"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
)

// BenchmarkWrite writes all tables of a million records, of one process and of many.
func BenchmarkWrite(b *testing.B) {
	for _, processes := range []int{1, 4, 1000} {
		b.Run(fmt.Sprint(processes), func(b *testing.B) {
			records := randomrun.MakeRunWithoutSlabs(1, processes, 1_000_000)
			dir := b.TempDir()
			b.ReportAllocs()
			for b.Loop() {
				if err := WriteTables(dir, true, &randomrun.Tape{Records: records}, options("a")); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(records))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
