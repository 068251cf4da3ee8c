package semaphore

import (
	"fmt"
	"runtime"
	"testing"
)

// BenchmarkTake is the upper limit of seed 001 §5.1: each call takes one unit, and whoever finds too few adds a batch of
// 512. Growing is free, or it lets other threads run a few times, as looking for memory elsewhere would.
func BenchmarkTake(b *testing.B) {
	for _, work := range []int{0, 8} {
		for _, threads := range []int{1, 4, 32, 1024} {
			name := fmt.Sprintf("grow=%d/threads=%dxGOMAXPROCS", work, threads)
			b.Run("bulk/"+name, func(b *testing.B) { takeAll(b, bulkAccountant{NewBulk(0)}, work, threads) })
			b.Run("counting/"+name, func(b *testing.B) { takeAll(b, countingAccountant{NewCounting(0)}, work, threads) })
		}
	}
}

func takeAll(b *testing.B, a accountant, work, threads int) {
	b.Helper()
	const batch = 512
	b.SetParallelism(threads)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if a.take(1, batch) == 0 {
				continue
			}
			for range work {
				runtime.Gosched()
			}
			a.grown(1, batch, true)
		}
	})
}
