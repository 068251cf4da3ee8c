package tbuddy

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// owners finds blocks that overlap: each page belongs to one thread, or to 0.
type owners struct {
	t    *testing.T
	page []atomic.Int32
}

func (o *owners) move(b block, from, to int32) {
	for i := range 1 << b.order {
		if !o.page[b.page+i].CompareAndSwap(from, to) {
			o.t.Errorf("page %d of %v belongs to %d, not to %d", b.page+i, b, o.page[b.page+i].Load(), from)
		}
	}
}

// TestBlocksOfThreadsDoNotOverlap: many threads allocate and free blocks of all sizes; none overlap, and in the end all is one piece again.
func TestBlocksOfThreadsDoNotOverlap(t *testing.T) {
	for _, kind := range kinds {
		for _, pages := range []int{8, 100, 1024} {
			t.Run(fmt.Sprintf("%s/%d", kind.name, pages), func(t *testing.T) {
				subj := kind.make(pages)
				o := &owners{t, make([]atomic.Int32, pages)}
				var wg sync.WaitGroup
				for id := range int32(16) {
					wg.Go(func() { churn(o, subj, id+1) })
				}
				wg.Wait()
				whole(t, subj, pages)
			})
		}
	}
}

func churn(o *owners, subj buddy, id int32) {
	rng := rand.New(rand.NewPCG(uint64(id), 5))
	var live []block
	for range 600 {
		if len(live) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(live))
			o.move(live[i], id, 0)
			if !subj.Free(live[i].page, live[i].order) {
				o.t.Errorf("%v cannot be freed", live[i])
			}
			live = slices.Delete(live, i, i+1)
			continue
		}
		order := min(rng.IntN(6), rng.IntN(6))
		if page, ok := subj.Alloc(order, rng.Uint64()); ok {
			live = append(live, block{page, order})
			o.move(block{page, order}, 0, id)
		}
	}
	for _, b := range live {
		o.move(b, id, 0)
		subj.Free(b.page, b.order)
	}
}

// whole tests that all pages are free and merged as far as they can be.
func whole(t *testing.T, subj buddy, pages int) {
	t.Helper()
	tree, ok := subj.(*Tree)
	if !ok {
		return
	}
	if err := tree.Validate(); err != nil {
		t.Fatal(err)
	}
	fresh := New(pages)
	if tree.FreePages() != pages || tree.LargestFree() != fresh.LargestFree() {
		t.Errorf("%d of %d pages free, largest order %d", tree.FreePages(), pages, tree.LargestFree())
	}
}

// TestExhaustion is the evaluation of seed 001 §5.3: as many threads as there is room for allocate one block each. All
// sizes are served to the last one; one more is not.
func TestExhaustion(t *testing.T) {
	for _, kind := range kinds {
		for _, pages := range []int{512, 300} {
			for order := range 5 {
				subj := kind.make(pages)
				o := &owners{t, make([]atomic.Int32, pages)}
				var wg sync.WaitGroup
				for id := range pages >> order {
					wg.Go(func() {
						page, ok := subj.Alloc(order, uint64(id)*0x9e3779b97f4a7c15)
						if !ok {
							t.Errorf("%s, %d pages, order %d: thread %d gets nothing", kind.name, pages, order, id)
							return
						}
						o.move(block{page, order}, 0, 1)
					})
				}
				wg.Wait()
				if _, ok := subj.Alloc(order, 0); ok {
					t.Errorf("%s, %d pages, order %d: one block too many", kind.name, pages, order)
				}
			}
		}
	}
}

// TestNeverFailsWithRoom: the threads are so few that each request could be met whatever the others hold, so none may
// fail, though blocks are split and merged all the time.
func TestNeverFailsWithRoom(t *testing.T) {
	for _, kind := range kinds {
		for _, c := range []struct {
			name   string
			pages  int
			orders []int // what each thread takes and frees, one block at a time
		}{
			{"as many as pages", 8, []int{0, 0, 0, 0, 0, 0, 0, 0}},
			{"two for two pages", 2, []int{0, 0}},
			{"all of it and more", 16, []int{2, 2, 2, 2}},
			{"no power of two", 7, []int{0, 0, 0, 0, 0, 0, 0}},
			// At most two of the four blocks of 8 have a page of a small one, and at most one is the other's.
			{"small and large", 32, []int{0, 1, 3, 3}},
			{"half against one page", 16, []int{0, 3}},
		} {
			t.Run(kind.name+"/"+c.name, func(t *testing.T) {
				subj := kind.make(c.pages)
				var wg sync.WaitGroup
				for id, order := range c.orders {
					wg.Go(func() {
						for i := range uint64(1500) {
							page, ok := subj.Alloc(order, i*uint64(2*id+1)*0x9e3779b97f4a7c15)
							if !ok {
								t.Errorf("thread %d: nothing of order %d", id, order)
								return
							}
							if i%4 == 0 {
								runtime.Gosched()
							}
							subj.Free(page, order)
						}
					})
				}
				wg.Wait()
				whole(t, subj, c.pages)
			})
		}
	}
}
