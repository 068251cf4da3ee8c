package ualloc

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator/tbuddy"
)

// BenchmarkExhaust is the benchmark of seed 001 §5.3: calls that take one block each until the pool is exhausted, and
// then free all. failed/call says which share of as many calls as the pool has bytes for failed.
func BenchmarkExhaust(b *testing.B) {
	const chunks = 16
	g := Geometry{Unit: 8, Pages: chunks * chunkBins}
	for _, size := range []uint64{8, 64, 1024, 2048, 4096} {
		for _, goroutines := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("size=%d/goroutines=%d", size, goroutines), func(b *testing.B) {
				al, err := New(tbuddy.New(g.Pages), g, goroutines)
				if err != nil {
					b.Fatal(err)
				}
				calls := int(chunks * g.Chunk() / size)
				offsets := make([]uint64, calls)
				var failed atomic.Int64
				for b.Loop() {
					split(goroutines, calls, func(id, i int) {
						offset, _, ok := al.Alloc(id, size)
						if offsets[i] = offset; !ok {
							offsets[i] = ^uint64(0)
							failed.Add(1)
						}
					})
					split(goroutines, calls, func(_, i int) {
						if offsets[i] != ^uint64(0) {
							al.Free(offsets[i])
						}
					})
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*calls), "ns/call")
				b.ReportMetric(float64(failed.Load())/float64(b.N*calls), "failed/call")
			})
		}
	}
}

// split has goroutines share n calls.
func split(goroutines, n int, call func(id, i int)) {
	var all sync.WaitGroup
	for id := range goroutines {
		all.Go(func() {
			for i := id; i < n; i += goroutines {
				call(id, i)
			}
		})
	}
	all.Wait()
}

// BenchmarkPair takes a block and frees it at once, beside enough others that bins and chunks stay.
func BenchmarkPair(b *testing.B) {
	g := Geometry{Unit: 8, Pages: 64 * chunkBins}
	for _, arenas := range []string{"own", "shared"} {
		for _, goroutines := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("arenas=%s/goroutines=%d", arenas, goroutines), func(b *testing.B) {
				n := 1
				if arenas == "own" {
					n = goroutines
				}
				al, err := New(tbuddy.New(g.Pages), g, n)
				if err != nil {
					b.Fatal(err)
				}
				for id := range goroutines {
					al.Alloc(id, 64)
				}
				b.ReportAllocs()
				b.ResetTimer()
				split(goroutines, b.N, func(id, _ int) {
					offset, _, ok := al.Alloc(id, 64)
					if !ok {
						b.Error("refused")
					}
					al.Free(offset)
				})
			})
		}
	}
}

// BenchmarkPairAlone is BenchmarkPair in an empty pool: each pair makes a chunk and a bin and gives both back.
func BenchmarkPairAlone(b *testing.B) {
	g := Geometry{Unit: 8, Pages: 64 * chunkBins}
	al, err := New(tbuddy.New(g.Pages), g, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		offset, _, ok := al.Alloc(0, 64)
		if !ok {
			b.Fatal("refused")
		}
		al.Free(offset)
	}
}
