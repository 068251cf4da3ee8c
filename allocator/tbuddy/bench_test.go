package tbuddy

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkAllocFree is what one allocation and its free cost when so many threads do nothing else, each with up to
// eight blocks at a time of orders 0 to 3.
func BenchmarkAllocFree(b *testing.B) {
	for _, kind := range kinds {
		for _, threads := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("%s/threads=%d", kind.name, threads), func(b *testing.B) {
				subj := kind.make(1 << 12)
				inThreads(b, threads, func(id, n int) { ring(subj, id, n) })
			})
		}
	}
}

// inThreads shares b.N calls out.
func inThreads(b *testing.B, threads int, run func(id, n int)) {
	b.Helper()
	var wg sync.WaitGroup
	b.ResetTimer()
	for id := range threads {
		wg.Go(func() { run(id, (b.N+threads-1)/threads) })
	}
	wg.Wait()
}

// ring allocates n blocks and frees each when eight more have been allocated.
func ring(subj buddy, id, n int) {
	var kept [8]block
	scatter := uint64(id) * 0x9e3779b97f4a7c15
	for i := range n + len(kept) {
		slot := &kept[i%len(kept)]
		if i >= len(kept) && slot.page >= 0 {
			subj.Free(slot.page, slot.order)
		}
		if i < n {
			page, ok := subj.Alloc(i%4, scatter)
			if *slot = (block{page, i % 4}); !ok {
				slot.page = -1
			}
		} else {
			slot.page = -1
		}
	}
}

// BenchmarkExhaust is seed 001 §5.3: so many threads share out all of a pool as blocks of one order. The time is that of
// one block; failures are requests for which there was room and that got nothing.
func BenchmarkExhaust(b *testing.B) {
	const pages = 1 << 12
	for _, kind := range kinds {
		for _, order := range []int{0, 4} {
			b.Run(fmt.Sprintf("%s/order=%d", kind.name, order), func(b *testing.B) {
				var failures atomic.Int64
				for done := 0; done < b.N; done += pages >> order {
					b.StopTimer()
					subj := kind.make(pages)
					b.StartTimer()
					exhaust(subj, order, min(pages>>order, b.N-done), &failures)
				}
				b.ReportMetric(float64(failures.Load()), "failures")
			})
		}
	}
}

func exhaust(subj buddy, order, blocks int, failures *atomic.Int64) {
	const threads = 8
	var next atomic.Int64
	var wg sync.WaitGroup
	for id := range uint64(threads) {
		wg.Go(func() {
			for next.Add(1) <= int64(blocks) {
				if _, ok := subj.Alloc(order, id*0x9e3779b97f4a7c15); !ok {
					failures.Add(1)
				}
			}
		})
	}
	wg.Wait()
}
