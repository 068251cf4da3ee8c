package arena

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkChallenging measures the time until the first placement of each of MiniMalloc's challenging instances within
// its capacity of 1 MiB, with one goroutine and with one per core. MiniMalloc's authors report 5.5, 0.85, 3.9, 5.7 and
// 1.4 s for A, C, D, F and J, on their machine.
func BenchmarkChallenging(b *testing.B) {
	const capacity = 1 << 20
	for _, name := range challenging {
		buffers := instance(b, name+".1048576")
		for _, workers := range []string{"1", "all"} {
			for seed := range uint64(3) {
				b.Run(fmt.Sprintf("%s/workers=%s/seed=%d", name, workers, seed), func(b *testing.B) {
					o := Options{Capacity: capacity, Seed: seed}
					if workers == "1" {
						o.Workers = 1
					}
					var s *Solution
					for b.Loop() {
						ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
						var err error
						s, err = PlaceBuffers(ctx, buffers, o)
						cancel()
						if err != nil || s.Height > capacity {
							b.Fatalf("no placement in 30 s: %v", err)
						}
					}
					b.ReportMetric(float64(len(buffers)), "buffers")
					b.ReportMetric(float64(s.Bound)/capacity, "bound/capacity")
				})
			}
		}
	}
}
