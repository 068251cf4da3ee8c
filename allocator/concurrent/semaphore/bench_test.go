package semaphore

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// BenchmarkTake is the upper limit of seed 001 §5.1: each call takes one unit, and a thread that finds too few adds
// 512. Growing is one addition, or a sleep of 0.1 ms, the time of a driver's create; on some systems the sleep takes 1
// ms. Below 512 threads a bulk semaphore never lets two threads grow at once, so the benchmark shows only its cost.
func BenchmarkTake(b *testing.B) {
	for _, name := range []string{"free", "slow"} {
		grow := func() {}
		if name == "slow" {
			grow = func() { time.Sleep(100 * time.Microsecond) }
		}
		for _, threads := range []int{1, 4, 16, 64, 1024, 4096} {
			b.Run(fmt.Sprintf("growth=%s/threads=%d/bulk", name, threads), func(b *testing.B) {
				takeAll(b, bulkAccountant{NewBulk(0)}, grow, threads)
			})
			b.Run(fmt.Sprintf("growth=%s/threads=%d/counting", name, threads), func(b *testing.B) {
				takeAll(b, countingAccountant{newCounting(0)}, grow, threads)
			})
		}
	}
}

func takeAll(b *testing.B, a accountant, grow func(), threads int) {
	b.Helper()
	const batch = 512
	var all sync.WaitGroup
	for id := range threads {
		all.Go(func() {
			for range (b.N + id) / threads {
				if a.take(1, batch) > 0 {
					grow()
					a.grown(1, batch, true)
				}
			}
		})
	}
	all.Wait()
}
