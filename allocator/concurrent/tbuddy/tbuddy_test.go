package tbuddy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// buddy is what all the allocators here do.
type buddy interface {
	Alloc(order int, scatter uint64) (page int, ok bool)
	Free(page, order int) bool
}

var kinds = []struct {
	name string
	make func(pages int) buddy
}{
	{"alone", func(pages int) buddy { return New(pages) }}, // until calls meet
	{"bulk", func(pages int) buddy { return newShared(pages) }},
	{"mutex", func(pages int) buddy { return newMutexBuddy(pages) }},
}

// newShared returns a tree that uses semaphores and locks from the start, as if calls had met.
func newShared(pages int) *Tree {
	return newSharedBy(pages, func(units int) stock { return newBulkStock(units) })
}

func newSharedBy(pages int, newStock func(units int) stock) *Tree {
	t := New(pages)
	t.beginSharing(newStock)
	return t
}

// bitmap says of each page whether it is allocated, and answers every question by looking at all of them.
type bitmap []bool

func (b bitmap) fits(page, order int) bool {
	end := page + 1<<order
	return page >= 0 && end <= len(b) && page%(1<<order) == 0 && !slices.Contains(b[page:end], true)
}

func (b bitmap) anyFits(order int) bool {
	for page := 0; page < len(b); page += 1 << order {
		if b.fits(page, order) {
			return true
		}
	}
	return false
}

func (b bitmap) fill(page, order int, taken bool) {
	for i := range 1 << order {
		b[page+i] = taken
	}
}

type block struct{ page, order int }

// pair drives an allocator and the bitmap side by side.
type pair struct {
	t    *testing.T
	subj buddy
	ref  bitmap
	live []block
}

func (p *pair) alloc(order int, scatter uint64) {
	p.t.Helper()
	page, ok := p.subj.Alloc(order, scatter)
	if want := p.ref.anyFits(order); ok != want {
		p.t.Fatalf("order %d: served %v, want %v: %v", order, ok, want, p.live)
	}
	if ok {
		if !p.ref.fits(page, order) {
			p.t.Fatalf("order %d: page %d is not free or not aligned: %v", order, page, p.live)
		}
		p.ref.fill(page, order, true)
		p.live = append(p.live, block{page, order})
	}
	p.check()
}

// free frees block i of those that live, and tries to free what is no block.
func (p *pair) free(i int) {
	p.t.Helper()
	b := p.live[i]
	for _, wrong := range []block{{b.page, b.order + 1}, {b.page, b.order - 1}, {b.page + 1, b.order}, {-1, 0}, {len(p.ref), 0}, {0, 60}} {
		if !slices.Contains(p.live, wrong) && p.subj.Free(wrong.page, wrong.order) {
			p.t.Fatalf("%v was freed and is not allocated: %v", wrong, p.live)
		}
	}
	if !p.subj.Free(b.page, b.order) || p.subj.Free(b.page, b.order) {
		p.t.Fatalf("%v must be freed once: %v", b, p.live)
	}
	p.ref.fill(b.page, b.order, false)
	p.live = slices.Delete(p.live, i, i+1)
	p.check()
}

func (p *pair) check() {
	p.t.Helper()
	tree, ok := p.subj.(*Tree)
	if !ok {
		return
	}
	if err := tree.Validate(); err != nil {
		p.t.Fatalf("%v\nwith %v", err, p.live)
	}
	largest, free := -1, 0
	for order := range tree.Height() + 1 {
		if p.ref.anyFits(order) {
			largest = order
		}
	}
	for _, taken := range p.ref {
		if !taken {
			free++
		}
	}
	if tree.LargestFree() != largest || tree.FreePages() != free {
		p.t.Fatalf("largest free %d, want %d; free pages %d, want %d", tree.LargestFree(), largest, tree.FreePages(), free)
	}
}

// TestAgainstBitmap: a request fails if and only if no aligned block of its size is free, and no two blocks overlap;
// every invariant holds after every call.
func TestAgainstBitmap(t *testing.T) {
	for _, kind := range kinds {
		for _, pages := range []int{1, 2, 3, 5, 8, 13, 31, 64, 100} {
			t.Run(fmt.Sprintf("%s/%d", kind.name, pages), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(pages), 3))
				p := &pair{t: t, subj: kind.make(pages), ref: make(bitmap, pages)}
				for range 600 {
					if len(p.live) > 0 && rng.IntN(2) == 0 {
						p.free(rng.IntN(len(p.live)))
					} else {
						p.alloc(min(rng.IntN(8), rng.IntN(8)), rng.Uint64())
					}
				}
				for len(p.live) > 0 {
					p.free(0)
				}
				p.alloc(0, 0)
			})
		}
	}
}

// TestSameCallsSamePlaces: replay relies on it.
func TestSameCallsSamePlaces(t *testing.T) {
	run := func(scatter uint64) string {
		rng := rand.New(rand.NewPCG(1, 1))
		tree, log := New(100), ""
		var live []block
		for range 400 {
			if len(live) > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(len(live))
				tree.Free(live[i].page, live[i].order)
				live = slices.Delete(live, i, i+1)
			} else if order := rng.IntN(4); true {
				page, ok := tree.Alloc(order, scatter)
				log += fmt.Sprintln(page, ok)
				if ok {
					live = append(live, block{page, order})
				}
			}
		}
		return log
	}
	low := run(0)
	if again := run(0); again != low {
		t.Error("the same calls get different pages")
	}
	if low == run(0x123456789abcdef) {
		t.Error("scatter changes nothing")
	}
}

// TestLowPagesFirst: with scatter 0 the first pages are taken first, and what is cut off stays together.
func TestLowPagesFirst(t *testing.T) {
	tree := New(16)
	for _, want := range []block{{0, 0}, {2, 1}, {1, 0}, {4, 0}, {8, 3}} {
		if page, ok := tree.Alloc(want.order, 0); !ok || page != want.page {
			t.Errorf("order %d: page %d %v, want %d", want.order, page, ok, want.page)
		}
	}
	for _, want := range []struct {
		block
		state State
	}{{block{0, 4}, Partial}, {block{0, 2}, Busy}, {block{5, 0}, Available}, {block{4, 1}, Partial}, {block{6, 1}, Available}, {block{6, 0}, Busy}} {
		if got := tree.State(want.page, want.order); got != want.state {
			t.Errorf("%v is %v, want %v", want.block, got, want.state)
		}
	}
}

// TestScatterSpreads: of eight free pages each is found by one of eight threads.
func TestScatterSpreads(t *testing.T) {
	tree := New(16)
	for range 16 {
		tree.Alloc(0, 0)
	}
	for page := 0; page < 16; page += 2 {
		tree.Free(page, 0)
	}
	found := map[int]bool{}
	for scatter := range uint64(8) {
		page, _ := tree.Alloc(0, scatter)
		found[page] = true
		tree.Free(page, 0)
	}
	if len(found) != 8 {
		t.Errorf("eight values lead to %v", found)
	}
}

func TestSizesOutOfRange(t *testing.T) {
	for _, pages := range []int{-1, 0, MaxPages + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a tree of %d pages was made", pages)
				}
			}()
			New(pages)
		}()
	}
	for _, order := range []int{-1, 5, 70} {
		if _, ok := New(16).Alloc(order, 0); ok {
			t.Errorf("got a block of order %d", order)
		}
	}
}

// TestValidateSees: a test that cannot fail shows nothing.
func TestValidateSees(t *testing.T) {
	for name, spoil := range map[string]func(tree *Tree){
		"locked":        func(tree *Tree) { tree.lock(9) },
		"root's parent": func(tree *Tree) { tree.lock(0) },
		"its buddy are Available": func(tree *Tree) {
			tree.setListed(2, availableBit(3))
			tree.setListed(3, availableBit(3))
			tree.setListed(1, availableBit(3))
		},
		"neither free nor":       func(tree *Tree) { tree.stocks[4].tryWait(); tree.setListed(1, 0) },
		"the semaphore counts":   func(tree *Tree) { tree.stocks[4].tryWait() },
		"at rest false":          func(tree *Tree) { tree.stocks[2].promiseUnit() },
		"not Busy in a block":    func(tree *Tree) { tree.setListed(16, heldBit) },
		"its halves list":        func(tree *Tree) { tree.setListed(1, availableBit(2)) },
		"allocated and not Busy": func(tree *Tree) { tree.setListed(1, heldBit|1) },
	} {
		tree := newShared(16)
		spoil(tree)
		if err := tree.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tree := New(16)
	tree.counts[2]++
	if err := tree.Validate(); err == nil || !strings.Contains(err.Error(), "counted as") {
		t.Error(err)
	}
	tree = New(3)
	tree.Alloc(0, 0)
	tree.setListed(tree.nodeOf(3, 0), availableBit(0))
	if err := tree.Validate(); err == nil || !strings.Contains(err.Error(), "beyond the last page") {
		t.Error(err)
	}
}

func FuzzTree(f *testing.F) {
	f.Add([]byte{16, 0, 1, 2, 0x80, 0x81})
	f.Add([]byte{13, 3, 0, 0, 0x40, 0x80, 2, 0x80})
	f.Fuzz(func(t *testing.T, calls []byte) {
		if len(calls) == 0 || len(calls) > 200 || calls[0] == 0 {
			return
		}
		p := &pair{t: t, subj: New(int(calls[0])), ref: make(bitmap, calls[0])}
		for _, c := range calls[1:] {
			if c < 0x80 {
				p.alloc(int(c&15), uint64(c>>4)*0x9e3779b97f4a7c15)
			} else if len(p.live) > 0 {
				p.free(int(c&0x7f) % len(p.live))
			}
		}
	})
}
