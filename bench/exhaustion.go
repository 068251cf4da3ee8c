package main

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/allocator/tbuddy"
	"codeberg.org/gpumemtop/gpumemtop/allocator/ualloc"
)

const (
	mostRequests = 1 << 20   // as many as the smallest sizes make
	mostPool     = 512 * mib // bytes, reached at 512 bytes
	smallest     = 8         // bytes
	page         = 4096      // bytes
	arenas       = 4         // as few as serve the largest pool, see package ualloc
)

// request asks for the size that is measured, once and for all, and says whether it was served.
type request func(worker int) bool

// exhaustion is the protocol of seed 001 §5.3: one request after the other until a pool would be used up if nothing of
// it were lost.
//
// There, each of 2^20 threads makes one request. So many goroutines take 2 GiB for stacks, and to start one takes as
// long as several requests: that would be the figure. A few for each core, which never free anything, ask the
// allocator for the same. Where there are few requests the whole is done several times.
func (b *bench) exhaustion() error {
	b.row("size", "requests", "ualloc M/s", "failed", "mutex buddy M/s", "failed", "counting buddy M/s", "failed", "ualloc / mutex")
	for size := smallest; size <= 512<<10; size *= 2 {
		if err := b.exhaust(size); err != nil {
			return err
		}
	}
	b.flush()
	fmt.Println("\nMillions of requests in a second, failed ones included, until they add up to the pool: 8 MiB at 8 bytes, 512 MiB from 512\n" +
		"bytes on. The paper has as many threads as requests, and each makes one; here 8 threads for each core make many each,\n" +
		"one after the other, so that fewer meet. The unaligned allocator lies on a tree buddy allocator with pages of 4 KiB. The\n" +
		"buddy allocators alone have pages of the size that is asked for, up to 4 KiB: nothing can fail, and one lock sees the\n" +
		"best case. To be expected of the unaligned one, as in the paper: some failures below 1 KiB, for headers; 1 in 4 at 1\n" +
		"KiB, because three fit into 4 KiB with a header; half at 2 KiB, which take 4 KiB; none from there on. A request that\n" +
		"fails has looked everywhere and costs the most.")
	return nil
}

// exhaust measures one size.
func (b *bench) exhaust(size int) error {
	requests := min(mostRequests, mostPool/size)
	small := min(size, page)
	pools := []func() (request, error){
		func() (request, error) { return fromUalloc(size, requests) },
		func() (request, error) { return fromBuddy(tbuddy.NewMutex(requests*size/small), size/small), nil },
	}
	if size >= page {
		pools = append(pools, func() (request, error) { return fromBuddy(tbuddy.NewCounting(requests*size/small), size/small), nil })
	}
	failed, ways := make([]int64, len(pools)), make([]func() (float64, error), len(pools))
	rounds := min(16, max(1, 1<<17/requests))
	for i, pool := range pools {
		ways[i] = func() (sum float64, err error) {
			for range rounds {
				ask, err := pool()
				if err != nil {
					return 0, err
				}
				ns, refused, err := askAll(ask, requests)
				if err != nil {
					return 0, err
				}
				failed[i], sum = refused, sum+ns
			}
			return sum / float64(rounds), nil
		}
	}
	figures, cells := inTurns(b.runs, ways), []any{size, requests}
	for i, f := range figures {
		if f.err != nil {
			return f.err
		}
		cells = append(cells, fixed(1000/f.value, 2), percent(float64(failed[i])/float64(requests)))
	}
	if size < page {
		cells = append(cells, "", "")
	}
	b.row(append(cells, fixed(figures[1].value/figures[0].value, 2))...)
	return nil
}

// askAll has many threads make so many requests together, and returns the ns of one and how many failed.
func askAll(ask request, requests int) (ns float64, failed int64, err error) {
	var refused atomic.Int64
	steps := make([]step, min(8*runtime.GOMAXPROCS(0), requests))
	for worker := range steps {
		steps[worker] = func(n int) error {
			count := int64(0)
			for range n {
				if !ask(worker) {
					count++
				}
			}
			refused.Add(count)
			return nil
		}
	}
	ns, err = share(requests, steps)
	return ns, refused.Load(), err
}

// fromUalloc makes an unaligned allocator whose pool has the bytes of so many requests.
func fromUalloc(size, requests int) (request, error) {
	pages := requests * size / page
	geometry := ualloc.Geometry{Unit: smallest, Pages: pages}
	al, err := ualloc.New(tbuddy.New(pages), geometry, arenas)
	return func(worker int) bool {
		_, _, ok := al.Alloc(worker, uint64(size))
		return ok
	}, err
}

// fromBuddy asks for so many pages, a power of two.
func fromBuddy(from ualloc.Coarse, pages int) request {
	order := bits.TrailingZeros(uint(pages))
	return func(worker int) bool {
		_, ok := from.Alloc(order, scatter(worker))
		return ok
	}
}
