package ualloc

import (
	"sync"
	"sync/atomic"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/tbuddy"
)

// A program that takes and frees one block, or many, makes its bins once.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	g := Geometry{Unit: 8, Pages: 16 * chunkBins}
	for _, test := range []struct {
		blocks int
		sizes  []uint64
	}{{1, []uint64{64}}, {1, []uint64{1024}}, {3, []uint64{8, 1000, 4096}}, {1000, []uint64{200}}, {1000, []uint64{1024, 3000}}} {
		al, err := New(tbuddy.New(g.Pages), g, 1)
		if err != nil {
			t.Fatal(err)
		}
		offsets := make([]uint64, test.blocks)
		cycle := func() {
			for i := range offsets {
				offsets[i], _, _ = al.Alloc(0, test.sizes[i%len(test.sizes)])
			}
			for _, offset := range offsets {
				if _, ok := al.Free(offset); !ok {
					t.Fatalf("offset %d cannot be freed", offset)
				}
			}
		}
		for range 3 {
			cycle()
		}
		if n := testing.AllocsPerRun(20, cycle); n != 0 {
			t.Errorf("%d blocks of %d bytes: %v allocations", test.blocks, test.sizes, n)
		}
	}
}

// One bin for each class stays, until the pool is trimmed.
func TestOneBinOfAClassStays(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: 4 * chunkBins}, 1)
	for class := range classes {
		for range 2 * binCapacity(class, headerBins) {
			p.alloc(0, 8<<class)
		}
		for len(p.blocks) > 0 {
			p.release(len(p.blocks) / 2)
		}
		p.check()
		if got := p.Stats(); got.Kept != class+1 || got.Bins != class+1 || got.Chunks < 1 {
			t.Errorf("after class %d: %+v", class, got)
		}
	}
	p.empty()
}

// No request is refused memory that is only kept for others: pages, a chunk of another arena, a bin of another class.
func TestWhatStaysIsFree(t *testing.T) {
	for name, want := range map[string]func(p *pool) bool{
		"all pages":     func(p *pool) bool { _, ok := p.alloc(1, p.Geometry().ChunkBytes()); return ok },
		"a chunk":       func(p *pool) bool { _, ok := p.alloc(1, 1024); return ok },
		"another class": func(p *pool) bool { _, ok := p.alloc(0, 1024); return ok },
	} {
		p := newPool(t, Geometry{Unit: 8, Pages: chunkBins}, 2)
		for class := range classes - 1 {
			p.alloc(0, 8<<class)
			p.release(0)
		}
		if name == "another class" {
			for range (usableBins - (classes - 1)) * 3 {
				p.alloc(0, 1024)
			}
		}
		if !want(p) {
			t.Errorf("%s: refused, although there is room", name)
		}
		p.check()
		p.empty()
	}
}

// An arena makes no further chunk as long as bins stay in those that it has.
func TestBinsThatStayComeBeforeAChunk(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: 2 * chunkBins}, 1)
	p.alloc(0, 8)
	p.release(0)
	for range usableBins * 3 {
		p.alloc(0, 1024)
	}
	if got := p.Stats(); got.Chunks != 1 {
		t.Errorf("%+v, want one chunk", got)
	}
	p.empty()
}

// The same while other threads keep emptying bins: two arenas whose blocks come and go, beside a thread that wants
// pages. There is always room for a chunk of either arena, or for one chunk and the pages.
func TestWhatStaysIsFreeForMany(t *testing.T) {
	const rounds = 600
	g := Geometry{Unit: 8, Pages: 3 * chunkBins}
	coarse := tbuddy.New(g.Pages)
	al, err := New(coarse, g, 4)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	cycle := func(arena func(i int) int, size func(i int) uint64) {
		all.Go(func() {
			for i := range rounds {
				offset, _, ok := al.Alloc(arena(i), size(i))
				if !ok {
					t.Error("refused, although there is room")
					return
				}
				al.Free(offset)
			}
		})
	}
	for id := range 2 {
		cycle(func(i int) int { return 2*id + i%2 }, func(i int) uint64 { return 8 << (i % classes) })
	}
	cycle(func(int) int { return 0 }, func(int) uint64 { return g.ChunkBytes() })
	all.Wait()
	wantHome(t, al, coarse)
}

// Trimming takes nothing that is in use, whenever it runs.
func TestTrimMeanwhile(t *testing.T) {
	g := Geometry{Unit: 8, Pages: 4 * chunkBins}
	coarse := tbuddy.New(g.Pages)
	al, err := New(coarse, g, 2)
	if err != nil {
		t.Fatal(err)
	}
	own := &owners{g.Unit, make([]atomic.Int32, g.Pages*binUnits)}
	var all sync.WaitGroup
	for id := range int32(3) {
		all.Go(func() {
			for i := range 500 {
				offset, granted, ok := al.Alloc(int(id), 8<<(i%classes))
				if !ok {
					t.Error("refused, although there is room")
					return
				}
				b := block{offset, granted}
				own.change(t, b, 0, id+1)
				if i%7 == 0 {
					al.Trim()
				}
				own.change(t, b, id+1, 0)
				al.Free(offset)
			}
		})
	}
	all.Wait()
	wantHome(t, al, coarse)
}
