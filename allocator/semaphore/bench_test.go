package semaphore

import (
	"fmt"
	"testing"
)

// BenchmarkTake is the upper limit of seed 001 §5.1: each call takes one unit, and whoever finds too few adds a batch of
// 512 at no cost. Only the semaphore is measured.
func BenchmarkTake(b *testing.B) {
	const batch = 512
	for _, parallelism := range []int{1, 4, 32, 256} {
		for _, c := range []struct {
			name string
			make func() accountant
		}{
			{"bulk", func() accountant { return bulkAccountant{NewBulk(0)} }},
			{"counting", func() accountant { return countingAccountant{NewCounting(0)} }},
		} {
			b.Run(fmt.Sprintf("%s/threads=%dxGOMAXPROCS", c.name, parallelism), func(b *testing.B) {
				a := c.make()
				b.SetParallelism(parallelism)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if a.take(1, batch) != 0 {
							a.grown(1, batch, true)
						}
					}
				})
			})
		}
	}
}
