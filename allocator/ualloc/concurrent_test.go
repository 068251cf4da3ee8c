package ualloc

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator/collective"
)

// until runs other goroutines until something holds.
func until(holds func() bool) {
	for !holds() {
		runtime.Gosched()
	}
}

// wantHome fails unless everything is back with the coarse allocator.
func wantHome(t *testing.T, al *Allocator, coarse *buddy) {
	t.Helper()
	if err := al.Validate(); err != nil {
		t.Fatal(err)
	}
	if s := al.Stats(); s != (Stats{}) || coarse.free != al.Geometry().Pages {
		t.Fatalf("after everything was freed: %+v, %d of %d pages free", s, coarse.free, al.Geometry().Pages)
	}
}

// owners has a word per unit of the pool, so that each block is written by its owner only.
type owners struct {
	unit  uint64
	words []atomic.Int32
}

func (o *owners) change(t *testing.T, b block, from, to int32) {
	for i := b.offset / o.unit; i < (b.offset+b.size)/o.unit; i++ {
		if !o.words[i].CompareAndSwap(from, to) {
			t.Errorf("unit %d of block %+v belongs to %d, not to %d", i, b, o.words[i].Load(), from)
			return
		}
	}
}

// TestHammer has goroutines allocate into shared places and free what others put there. Places limit what is out, so
// there is always room.
func TestHammer(t *testing.T) {
	const goroutines, places, rounds, steps = 8, 64, 6, 400
	g := Geometry{Unit: 8, Pages: 12 * chunkBins}
	for _, arenas := range []int{1, 3} {
		t.Run(fmt.Sprintf("arenas=%d", arenas), func(t *testing.T) {
			coarse := newBuddy(g.Pages)
			al, err := New(coarse, g, arenas)
			if err != nil {
				t.Fatal(err)
			}
			own := &owners{g.Unit, make([]atomic.Int32, g.Pages*binUnits)}
			for round := range rounds {
				var table [places]atomic.Pointer[block]
				put := func(i int, b *block) {
					old := table[i].Swap(b)
					if old == nil {
						return
					}
					own.change(t, *old, int32(i)+1, 0)
					if granted, ok := al.Free(old.offset); !ok || granted != old.size {
						t.Errorf("free of %+v: %d, %v", *old, granted, ok)
					}
				}
				var all sync.WaitGroup
				for id := range goroutines {
					rng := rand.New(rand.NewPCG(uint64(round), uint64(id)))
					all.Go(func() {
						for range steps {
							i := rng.IntN(places)
							offset, granted, ok := al.Alloc(id, 1+rng.Uint64N(8<<rng.IntN(9)))
							if !ok {
								t.Error("refused, although there is room")
								return
							}
							b := &block{offset, granted}
							own.change(t, *b, 0, int32(i)+1)
							put(i, b)
						}
					})
				}
				all.Wait()
				if err := al.Validate(); err != nil {
					t.Fatal(err)
				}
				for i := range places {
					all.Go(func() { put(i, nil) })
				}
				all.Wait()
				wantHome(t, al, coarse)
			}
		})
	}
}

// All find their block as long as there is one: no false starvation while chunks, bins and slots are being made.
func TestExhaustionByMany(t *testing.T) {
	const chunks, goroutines = 3, 8
	for _, test := range []struct {
		size uint64
		want int64
	}{{16, 31744}, {256, 1890}, {1024, 378}} {
		for _, arenas := range []int{1, chunks} {
			coarse := newBuddy(chunks * chunkBins)
			al, err := New(coarse, Geometry{Unit: 8, Pages: chunks * chunkBins}, arenas)
			if err != nil {
				t.Fatal(err)
			}
			var got atomic.Int64
			offsets := make([][]uint64, goroutines)
			var all sync.WaitGroup
			for id := range goroutines {
				all.Go(func() {
					for {
						offset, _, ok := al.Alloc(id, test.size)
						if !ok {
							return
						}
						got.Add(1)
						offsets[id] = append(offsets[id], offset)
					}
				})
			}
			all.Wait()
			if err := al.Validate(); err != nil {
				t.Fatal(err)
			}
			if want := chunks * test.want; got.Load() != want {
				t.Errorf("%d bytes, %d arenas: %d blocks, want %d", test.size, arenas, got.Load(), want)
			}
			for id := range goroutines {
				all.Go(func() {
					for _, offset := range offsets[id] {
						if _, ok := al.Free(offset); !ok {
							t.Errorf("offset %d cannot be freed", offset)
						}
					}
				})
			}
			all.Wait()
			wantHome(t, al, coarse)
		}
	}
}

// Bins that were freed and still wait for readers are no reason to refuse: the demand is below the pool, with slack for
// what goroutines are about to free.
func TestRoomIsFound(t *testing.T) {
	const goroutines, held, steps = 4, 75, 60
	coarse := newBuddy(chunkBins)
	al, err := New(coarse, Geometry{Unit: 8, Pages: chunkBins}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range steps {
				var offsets []uint64
				for range held { // 4*75 = 300 of 378, in whole bins of three
					offset, _, ok := al.Alloc(0, 1024)
					if !ok {
						t.Error("refused, although there is room")
						break
					}
					offsets = append(offsets, offset)
				}
				for _, offset := range offsets {
					al.Free(offset)
				}
			}
		})
	}
	all.Wait()
	wantHome(t, al, coarse)
}

// Of all who free a block at once, one does.
func TestOneOfManyFrees(t *testing.T) {
	coarse := newBuddy(chunkBins)
	al, err := New(coarse, Geometry{Unit: 8, Pages: chunkBins}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []uint64{8, 1024, 4096} {
		for range 200 {
			offset, _, _ := al.Alloc(0, size)
			var freed atomic.Int64
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if _, ok := al.Free(offset); ok {
						freed.Add(1)
					}
				})
			}
			all.Wait()
			if freed.Load() != 1 {
				t.Fatalf("a block of %d bytes was freed %d times", size, freed.Load())
			}
		}
	}
	wantHome(t, al, coarse)
}

// Who wait for a bin at the same time are served by one cut of the chunk list.
func TestWaitersShareOneListOperation(t *testing.T) {
	const n = 2*usableBins + 5 // two chunks, and some of a third
	p := newPool(t, Geometry{Unit: 8, Pages: 3 * chunkBins}, 1)
	a := p.arenas[0]
	for range 3 {
		a.chunks.add(mustChunk(t, a))
		a.chunks.units.Signal(1, 0) // the one that the maker would have kept
	}
	for _, from := range []side{tailed, plain} {
		before := a.chunks.operations
		bins := make(chan *bin, n)
		gate := a.chunks.mutex.Lock(collective.Alone)
		for range n {
			if !a.chunks.units.TryWait(1) {
				t.Fatal("no unit")
			}
			go func() { bins <- a.chunks.take(from) }()
		}
		until(func() bool { return a.chunks.mutex.Waiting() == n })
		gate.Unlock()
		seen := map[*bin]bool{}
		for range n {
			b := <-bins
			if seen[b] || b.index < headerBins {
				t.Fatalf("bin %d was taken twice, or is a header", b.index)
			}
			seen[b] = true
		}
		gate = a.chunks.mutex.Lock(collective.Alone) // all have left
		got := a.chunks.operations - before
		gate.Unlock()
		if got != 1 {
			t.Errorf("%d list operations for %d bins, want 1", got, n)
		}
		for b := range seen {
			a.chunks.give(b, func(c *chunk) { a.chunks.push(c); a.chunks.units.Signal(usableBins, 0) })
		}
	}
}

func mustChunk(t *testing.T, a *arena) *chunk {
	c := a.chunk()
	if c == nil {
		t.Fatal("no chunk")
	}
	// add promises nothing itself: it fulfils what a grower has promised.
	a.chunks.units.Expect(usableBins - 1)
	return c
}

// A reader who stands on a bin keeps it from being used for anything else.
func TestBinStaysWhileReadersSeeIt(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: chunkBins}, 1)
	keep, _ := p.alloc(0, 8) // so that the chunk stays
	b, _ := p.alloc(0, 64)
	a := p.arenas[0]
	r := a.readers.Enter()
	seen := a.lists[3].head.Load()
	c := seen.chunk
	free := c.count.Load()
	done := make(chan bool)
	go func() { _, ok := p.Free(b.offset); done <- ok }()
	until(func() bool { return a.leaving.Load() == 1 && a.lists[3].head.Load() == nil })
	if class, _ := seen.load(); class >= 0 || c.count.Load() != free {
		t.Errorf("class %d, %d bins free; want no class and %d bins", class, c.count.Load(), free)
	}
	a.readers.Exit(r)
	if !<-done || c.count.Load() != free+1 {
		t.Errorf("the bin did not come home: %d bins free", c.count.Load())
	}
	p.Free(keep.offset)
	wantHome(t, p.Allocator, p.coarse)
}

// A bin that becomes empty while units are out stays, and goes when they come back.
func TestBinThatWasMissedGoesLater(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: chunkBins}, 1)
	l := &p.arenas[0].lists[7]
	var offsets []uint64
	for range 4 { // three in one bin, one in the next
		b, _ := p.alloc(0, 1024)
		offsets = append(offsets, b.offset)
	}
	p.Free(offsets[0])
	if !l.units.TryWait(3) { // three who are about to look for their slots
		t.Fatal("no units")
	}
	p.Free(offsets[1])
	p.Free(offsets[2])
	if p.Stats().Bins != 2 || !l.missed.Load() {
		t.Fatalf("%d bins, missed %v: want both bins, and a note", p.Stats().Bins, l.missed.Load())
	}
	var taken []uint64
	for range 3 {
		b := l.claim()
		taken = append(taken, uint64(b.chunk.page*binUnits+unitOf(7, b.index, b.take()))*8)
	}
	for _, offset := range append(taken, offsets[3]) {
		if _, ok := p.Free(offset); !ok {
			t.Fatalf("offset %d cannot be freed", offset)
		}
	}
	wantHome(t, p.Allocator, p.coarse)
}

// The same for chunks.
func TestChunkThatWasMissedGoesLater(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: chunkBins}, 1)
	s := &p.arenas[0].chunks
	b, _ := p.alloc(0, 8)
	if !s.units.TryWait(2) {
		t.Fatal("no units")
	}
	p.Free(b.offset)
	if p.Stats().Chunks != 1 || !s.missed {
		t.Fatalf("%d chunks, missed %v: want one, and a note", p.Stats().Chunks, s.missed)
	}
	first, second := s.take(tailed), s.take(plain)
	s.give(first, p.arenas[0].drop)
	s.give(second, p.arenas[0].drop)
	wantHome(t, p.Allocator, p.coarse)
}
