package tbuddy

import (
	"fmt"
	"sync"
	"testing"
)

// BenchmarkAllocFree measures one allocation and its free in that many threads that do nothing else, each with up to
// eight blocks of orders 0 to 3 at a time.
func BenchmarkAllocFree(b *testing.B) {
	for _, kind := range kinds {
		for _, threads := range []int{1, 2, 4, 8} {
			if kind.name == "alone" && threads > 1 {
				continue // threads that meet share the tree
			}
			b.Run(fmt.Sprintf("%s/threads=%d", kind.name, threads), func(b *testing.B) {
				subj := kind.make(1 << 12)
				inThreads(b, threads, func(id, n int) { ring(subj, id, n) })
			})
		}
	}
}

// inThreads divides b.N calls among threads.
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
