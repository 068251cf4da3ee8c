package tbuddy

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestAloneAndSharedAgree: a call that no other call overlaps gives the same answer in an alone and in a shared tree.
func TestAloneAndSharedAgree(t *testing.T) {
	for _, pages := range []int{1, 7, 64, 100} {
		rng := rand.New(rand.NewPCG(uint64(pages), 8))
		plain, common := New(pages), newShared(pages)
		var live []block
		for range 3000 {
			if n := len(live); n > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(n)
				b := live[i]
				live = slices.Delete(live, i, i+1)
				order, ok := plain.Release(b.page, b.order)
				if other, too := common.Release(b.page, b.order); !ok || !too || order != other {
					t.Fatalf("%v merges to order %d %v and %d %v", b, order, ok, other, too)
				}
			} else {
				order, scatter := rng.IntN(5), rng.Uint64()
				page, ok := plain.Alloc(order, scatter)
				if other, too := common.Alloc(order, scatter); page != other || ok != too {
					t.Fatalf("order %d: page %d %v and %d %v", order, page, ok, other, too)
				}
				if ok {
					live = append(live, block{page, order})
				}
			}
			if plain.FreePages() != common.FreePages() || plain.LargestFree() != common.LargestFree() {
				t.Fatalf("%d and %d pages free, up to order %d and %d", plain.FreePages(), common.FreePages(), plain.LargestFree(), common.LargestFree())
			}
		}
		if plain.mode.Load() != unmet || plain.Validate() != nil || common.Validate() != nil {
			t.Errorf("mode %d, %v, %v", plain.mode.Load(), plain.Validate(), common.Validate())
		}
	}
}

// TestSecondCallWaitsForTheFirst: a call that comes while another has the tree to itself waits for its end, and then all share.
func TestSecondCallWaitsForTheFirst(t *testing.T) {
	tree := New(2)
	if !tree.beginSoleUse() {
		t.Fatal("no other thread is here")
	}
	done := start(tree)
	for tree.mode.Load() != called {
		runtime.Gosched()
	}
	page, ok := tree.allocAlone(0, 0)
	tree.endSoleUse()
	if !ok || !<-done || tree.mode.Load() != shared || tree.FreePages() != 0 {
		t.Errorf("%v, mode %d, %d pages free; want both pages taken", ok, tree.mode.Load(), tree.FreePages())
	}
	if !tree.Free(page, 0) || !tree.Free(page^1, 0) {
		t.Error("a page cannot be freed")
	}
	whole(t, tree, 2)
}

// TestStateOutOfRange: a call that panics leaves the tree to others.
func TestStateOutOfRange(t *testing.T) {
	tree := New(64)
	for _, b := range []block{{64, 0}, {-65, 0}, {0, 7}, {0, -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v has a state", b)
				}
			}()
			tree.State(b.page, b.order)
		}()
	}
	if tree.mode.Load() != unmet {
		t.Errorf("mode %d after calls that have panicked", tree.mode.Load())
	}
}

// meeting lets the first of some threads hold the tree until another has come.
type meeting struct {
	tree *Tree
	here atomic.Bool
}

// hold is called by the first thread, at any time.
func (m *meeting) hold() {
	alone := m.tree.beginSoleUse()
	m.here.Store(true)
	if alone {
		for m.tree.mode.Load() != called {
			runtime.Gosched()
		}
		m.tree.endSoleUse()
	}
}

// await is called by the other threads, before their last call.
func (m *meeting) await() {
	for !m.here.Load() {
		runtime.Gosched()
	}
}

// TestMeetingsByChance: wherever the first calls meet, at some step of one thread at the latest, no block is handed out
// twice and none is lost.
func TestMeetingsByChance(t *testing.T) {
	const pages, threads, steps = 16, 4, 6
	for round := range uint64(200) {
		tree := New(pages)
		m := &meeting{tree: tree}
		o := &owners{t, make([]atomic.Int32, pages)}
		var wg sync.WaitGroup
		for id := range int32(threads) {
			wg.Go(func() {
				for i := range uint64(steps) {
					switch {
					case id == 0 && i == round%steps:
						m.hold()
					case id > 0 && i == steps-1:
						m.await()
					}
					order := int(i+uint64(id)) % 3
					page, ok := tree.Alloc(order, round*(i+1))
					if !ok {
						t.Errorf("nothing of order %d", order) // each has four pages at most
						return
					}
					o.move(block{page, order}, 0, id+1)
					tree.State(page, order)
					o.move(block{page, order}, id+1, 0)
					tree.Free(page, order)
				}
			})
		}
		wg.Wait()
		if tree.mode.Load() != shared {
			t.Fatal("no two calls have met")
		}
		whole(t, tree, pages)
	}
}
