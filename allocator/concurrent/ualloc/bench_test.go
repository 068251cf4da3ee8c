package ualloc

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/tbuddy"
)

// exhaustion returns a function that makes one request of size bytes, from a pool that has the bytes of a number of
// requests. The tree buddy alone has pages of that size, up to 4 KiB, so that no request fails.
func exhaustion(tb testing.TB, kind string, size, requests int) (ask func(worker int) bool) {
	tb.Helper()
	const page = 4096
	if kind == "ualloc" {
		pages := requests * size / page
		al, err := New(tbuddy.New(pages), Geometry{Unit: 8, Pages: pages}, 4) // as few arenas as serve the largest pool
		if err != nil {
			tb.Fatal(err)
		}
		return func(worker int) bool {
			_, _, ok := al.Alloc(worker, uint64(size))
			return ok
		}
	}
	unit := min(size, page)
	pages, order := requests*size/unit, bits.TrailingZeros(uint(size/unit))
	from := tbuddy.New(pages)
	return func(worker int) bool {
		_, ok := from.Alloc(order, uint64(worker)*0x9e3779b97f4a7c15)
		return ok
	}
}

// exhaust makes requests with eight goroutines per core, which never free, and returns how many failed.
func exhaust(ask func(worker int) bool, requests int) int64 {
	var failed atomic.Int64
	split(min(8*runtime.GOMAXPROCS(0), requests), requests, func(worker, _ int) {
		if !ask(worker) {
			failed.Add(1)
		}
	})
	return failed.Load()
}

// BenchmarkExhaust is the benchmark of seed 001 §5.3: requests of one size until they add up to the pool, 8 MiB at 8 bytes
// and 512 MiB from 512 bytes on. The paper has a thread for each request.
func BenchmarkExhaust(b *testing.B) {
	for size := 8; size <= 512<<10; size *= 2 {
		for _, kind := range []string{"ualloc", "tbuddy"} {
			b.Run(fmt.Sprintf("size=%d/%s", size, kind), func(b *testing.B) {
				requests, failed := min(1<<20, 512<<20/size), int64(0)
				for b.Loop() {
					b.StopTimer()
					ask := exhaustion(b, kind, size, requests)
					b.StartTimer()
					failed += exhaust(ask, requests)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*requests), "ns/request")
				b.ReportMetric(100*float64(failed)/float64(b.N*requests), "%failed")
			})
		}
	}
}

// TestExhaustionFailsAsInThePaper checks the shares of failures that docs/BENCHMARKS.md quotes: below 1 KiB for headers; 1
// in 4 at 1 KiB, because three fit into 4 KiB with a header; half at 2 KiB, which take 4 KiB.
func TestExhaustionFailsAsInThePaper(t *testing.T) {
	for _, test := range []struct {
		size        int
		least, most float64
	}{{8, 0.02, 0.05}, {128, 0.02, 0.05}, {512, 0.125, 0.15}, {1024, 0.25, 0.27}, {2048, 0.5, 0.5}, {4096, 0, 0}, {65536, 0, 0}} {
		requests := 4 << 20 / test.size
		failed := exhaust(exhaustion(t, "ualloc", test.size, requests), requests)
		if rate := float64(failed) / float64(requests); rate < test.least || rate > test.most {
			t.Errorf("%d bytes: %v of the requests failed, want %v to %v", test.size, rate, test.least, test.most)
		}
	}
	if failed := exhaust(exhaustion(t, "tbuddy", 65536, 256), 256); failed != 0 {
		t.Errorf("%d of 256 requests for all of a buddy allocator failed", failed)
	}
}

// BenchmarkRing has threads with eight blocks each, of 64 to 1024 bytes, that release the oldest and allocate another.
func BenchmarkRing(b *testing.B) {
	sizes := [...]uint64{64, 128, 192, 256, 384, 512, 768, 1024}
	const pages = 1 << 12
	for _, threads := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("ualloc/threads=%d", threads), func(b *testing.B) {
			al, err := New(tbuddy.New(pages), Geometry{Unit: 8, Pages: pages}, threads)
			if err != nil {
				b.Fatal(err)
			}
			rings(b, threads, func(id int) func(slot int) {
				var held [len(sizes)]uint64
				return func(slot int) {
					if held[slot] != 0 {
						al.Free(held[slot] - 1)
					}
					offset, _, ok := al.Alloc(id, sizes[slot])
					if held[slot] = offset + 1; !ok {
						b.Error("refused")
					}
				}
			})
		})
		b.Run(fmt.Sprintf("make/threads=%d", threads), func(b *testing.B) {
			rings(b, threads, func(int) func(slot int) {
				held := new([len(sizes)][]byte)
				return func(slot int) { held[slot] = make([]byte, sizes[slot]) }
			})
		})
	}
}

// rings has threads replace the blocks in their eight slots in turn, b.N times together.
func rings(b *testing.B, threads int, start func(id int) (replace func(slot int))) {
	b.Helper()
	var all sync.WaitGroup
	for id := range threads {
		replace := start(id)
		all.Go(func() {
			for i := range (b.N + id) / threads {
				replace(i % 8)
			}
		})
	}
	all.Wait()
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

// BenchmarkPairAlone is BenchmarkPair in an empty pool, where the bin is kept.
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
