package ualloc

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"testing"
)

// usableBins is how many bins of a chunk can be used, unless a test has smaller chunks.
const usableBins = chunkBins - headerBins

// buddy is a coarse allocator that is as simple as can be: a page is free or not, and the first place that suits is
// taken.
type buddy struct {
	mutex sync.Mutex
	used  []bool
	free  int
}

func newBuddy(pages int) *buddy { return &buddy{used: make([]bool, pages), free: pages} }

func (c *buddy) Alloc(order int, _ uint64) (int, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	n := 1 << order
	for page := 0; page+n <= len(c.used); page += n {
		if !slices.Contains(c.used[page:page+n], true) {
			c.fill(page, n, true)
			return page, true
		}
	}
	return 0, false
}

func (c *buddy) FreePages() int { return c.free }

func (c *buddy) Free(page, order int) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if slices.Contains(c.used[page:page+1<<order], false) {
		panic(fmt.Sprintf("pages %d to %d are not all in use", page, page+1<<order-1))
	}
	c.fill(page, 1<<order, false)
	return true
}

func (c *buddy) fill(page, n int, used bool) {
	for i := range n {
		c.used[page+i] = used
	}
	if used {
		n = -n
	}
	c.free += n
}

// naive knows the blocks that are in use, and looks through all of them for each new one.
type naive struct {
	geometry Geometry
	blocks   []block // by offset
}

type block struct{ offset, size uint64 }

// add says what is wrong with a block that was granted for a request.
func (n *naive) add(b block, request uint64) error {
	g := n.geometry
	want := max(g.Unit, 1<<bits.Len64(request-1))
	if want > g.LargestSmall() {
		want = max(want, g.PageBytes())
	}
	aligned := b.offset%g.PageBytes() == 0
	switch {
	case b.size != want:
		return fmt.Errorf("%d bytes granted for %d, want %d", b.size, request, want)
	case b.offset%g.Unit != 0:
		return fmt.Errorf("offset %d is no multiple of the unit", b.offset)
	case aligned != (request > g.LargestSmall()):
		return fmt.Errorf("a block for %d bytes at offset %d: page aligned is %v", request, b.offset, aligned)
	case aligned && b.offset%b.size != 0:
		return fmt.Errorf("%d bytes of pages at offset %d", b.size, b.offset)
	case b.offset+b.size > uint64(g.Pages)*g.PageBytes():
		return fmt.Errorf("%d bytes at offset %d are outside of the pool", b.size, b.offset)
	}
	i, _ := slices.BinarySearchFunc(n.blocks, b.offset, func(b block, at uint64) int {
		return int(b.offset) - int(at)
	})
	if i > 0 && n.blocks[i-1].offset+n.blocks[i-1].size > b.offset ||
		i < len(n.blocks) && b.offset+b.size > n.blocks[i].offset {
		return fmt.Errorf("%d bytes at offset %d overlap", b.size, b.offset)
	}
	n.blocks = slices.Insert(n.blocks, i, b)
	return nil
}

// pool is an allocator beside its references.
type pool struct {
	t testing.TB
	*Allocator
	coarse *buddy
	naive
}

func newPool(t testing.TB, g Geometry, arenas int) *pool {
	t.Helper()
	coarse := newBuddy(g.Pages)
	al, err := New(coarse, g, arenas)
	if err != nil {
		t.Fatal(err)
	}
	return &pool{t, al, coarse, naive{geometry: g}}
}

func (p *pool) alloc(arena int, size uint64) (block, bool) {
	offset, granted, ok := p.Alloc(arena, size)
	b := block{offset, granted}
	if ok {
		if err := p.add(b, size); err != nil {
			p.t.Fatal(err)
		}
	}
	return b, ok
}

// release frees the i-th block by offset, twice.
func (p *pool) release(i int) {
	b := p.blocks[i]
	p.blocks = slices.Delete(p.blocks, i, i+1)
	if granted, ok := p.Free(b.offset); !ok || granted != b.size {
		p.t.Fatalf("free of %d bytes at offset %d: %d, %v", b.size, b.offset, granted, ok)
	}
	if _, ok := p.Free(b.offset); ok {
		p.t.Fatalf("offset %d was freed twice", b.offset)
	}
}

// check compares what the allocator says of itself with the references.
func (p *pool) check() {
	p.t.Helper()
	if err := p.Validate(); err != nil {
		p.t.Fatal(err)
	}
	var want Stats
	for _, b := range p.blocks {
		if b.size <= p.Geometry().LargestSmall() {
			want.Small++
			want.SmallBytes += b.size
		} else {
			want.Large++
			want.LargeBytes += b.size
		}
	}
	got := p.Stats()
	pages := p.coarse.free + got.Chunks*p.Geometry().binsPerChunk() + int(got.LargeBytes/p.Geometry().PageBytes())
	if pages != p.Geometry().Pages {
		p.t.Fatalf("%d pages of %d are accounted for", pages, p.Geometry().Pages)
	}
	if got.Small > 0 != (got.Bins > got.Kept) || got.Bins > 0 != (got.Chunks > 0) || got.Kept > classes*len(p.arenas) {
		p.t.Fatalf("%d blocks in %d bins, %d of them kept, in %d chunks", got.Small, got.Bins, got.Kept, got.Chunks)
	}
	if want.Small != got.Small || want.SmallBytes != got.SmallBytes || want.Large != got.Large || want.LargeBytes != got.LargeBytes {
		p.t.Fatalf("stats %+v, want %+v", got, want)
	}
}

// empty frees everything, trims, and checks that the coarse allocator has all pages back.
func (p *pool) empty() {
	p.t.Helper()
	for len(p.blocks) > 0 {
		p.release(len(p.blocks) - 1)
	}
	p.check()
	p.Trim()
	p.check()
	if p.Stats() != (Stats{}) || p.coarse.free != p.Geometry().Pages {
		p.t.Errorf("after everything was freed and trimmed: %+v, %d of %d pages free", p.Stats(), p.coarse.free, p.Geometry().Pages)
	}
}
