package collective

import (
	"fmt"
	"sync"
	"testing"
)

// BenchmarkTake measures taking elements off a list: one operation per element under an ordinary mutex, one per group
// under a collective one. operations/element says how many there were.
func BenchmarkTake(b *testing.B) {
	for _, goroutines := range []int{1, 2, 4, 8, 64} {
		b.Run(fmt.Sprintf("collective/goroutines=%d", goroutines), func(b *testing.B) {
			var m Mutex
			head, operations := 0, 0
			share(b, goroutines, func() {
				in := m.Lock(0)
				at := head + in.Rank
				in.Barrier()
				if in.Rank == in.Size-1 {
					head = at + 1
					operations++
				}
				in.Unlock()
			})
			if head != b.N {
				b.Fatalf("%d elements taken, want %d", head, b.N)
			}
			b.ReportMetric(float64(operations)/float64(b.N), "operations/element")
		})
		b.Run(fmt.Sprintf("ordinary/goroutines=%d", goroutines), func(b *testing.B) {
			var m sync.Mutex
			head := 0
			share(b, goroutines, func() {
				m.Lock()
				head++
				m.Unlock()
			})
		})
	}
}

// share has goroutines call something b.N times altogether.
func share(b *testing.B, goroutines int, call func()) {
	b.Helper()
	var all sync.WaitGroup
	for i := range goroutines {
		n := b.N / goroutines
		if i < b.N%goroutines {
			n++
		}
		all.Go(func() {
			for range n {
				call()
			}
		})
	}
	all.Wait()
}
