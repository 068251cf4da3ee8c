package ualloc

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/tbuddy"
)

// until runs other goroutines until something holds.
func until(holds func() bool) {
	for !holds() {
		runtime.Gosched()
	}
}

// counted is a coarse allocator that knows how much it has.
type counted interface {
	Coarse
	FreePages() int
}

// wantHome fails unless the coarse allocator has all pages back.
func wantHome(t *testing.T, al *Allocator, coarse counted) {
	t.Helper()
	if err := al.Validate(); err != nil {
		t.Fatal(err)
	}
	al.Trim()
	if err := al.Validate(); err != nil {
		t.Fatal(err)
	}
	if s := al.Stats(); s != (Stats{}) || coarse.FreePages() != al.Geometry().Pages {
		t.Fatalf("after everything was freed and trimmed: %+v, %d of %d pages free", s, coarse.FreePages(), al.Geometry().Pages)
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

// TestGoroutinesFreeWhatOthersAllocate has goroutines allocate into shared places and free what others put there. Places limit
// what is out, so there is always room.
func TestGoroutinesFreeWhatOthersAllocate(t *testing.T) {
	const goroutines, places, rounds, steps = 8, 64, 5, 250
	g := Geometry{Unit: 8, Pages: 12 * chunkBins}
	for _, arenas := range []int{1, 3} {
		t.Run(fmt.Sprintf("arenas=%d", arenas), func(t *testing.T) {
			coarse := tbuddy.New(g.Pages)
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
							offset, granted, ok := al.Alloc(id, 1+rng.Uint64N(8<<rng.IntN(11)))
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

// Of all threads that free a block at once, one succeeds.
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

// others look for bins that were missed.
func TestBinThatIsNotYetLinkedGoesLater(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: chunkBins}, 1)
	p.wanting.Add(1) // no bin stays
	a, l := p.arenas[0], &p.arenas[0].lists[7]
	var offsets []uint64
	for range 6 { // three in either of two bins
		b, _ := p.alloc(0, 1024)
		offsets = append(offsets, b.offset)
	}
	first := &a.of.chunks[0].Load().bins[chunkBins-1]
	if first.linked || !first.freeSlot(0) {
		t.Fatal("the first bin is not exhausted")
	}
	first.state.Add(1)
	p.Free(offsets[1])
	p.Free(offsets[2])
	p.Free(offsets[3])
	l.listOrUnlist(first)
	l.units.Signal(1, 0)
	a.takeOutEmptyBins(l, nil)
	p.Free(offsets[4])
	p.Free(offsets[5])
	wantHome(t, p.Allocator, p.coarse)
}

// Many threads look for slots in one bin.
func TestOneBinForMany(t *testing.T) {
	const goroutines = 4
	c := newChunk(nil, 0, chunkBins)
	b := &c.bins[headerBins]
	for range 100 {
		b.openForClass(0)
		var taken [binUnits]atomic.Int32
		taken[0].Add(1)
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {
				for {
					if _, ok := b.claimSlot(0); !ok {
						return
					}
					taken[b.takeSlot()].Add(1)
				}
			})
		}
		all.Wait()
		for slot := range taken {
			if n := taken[slot].Load(); n != 1 {
				t.Fatalf("slot %d was taken %d times", slot, n)
			}
		}
	}
	if _, ok := b.claimSlot(1); ok {
		t.Error("a slot of another class was taken")
	}
}

// A bin that is exhausted and freed from in turns is in the list whenever it has a slot: a unit that no thread could
// find would keep its owner searching for ever.
func TestBinBetweenExhaustedAndNot(t *testing.T) {
	const goroutines, rounds = 4, 10_000
	p := newPool(t, Geometry{Unit: 8, Pages: chunkBins}, 1)
	keep, _ := p.alloc(0, 1024) // two slots of the bin are left
	units := p.arenas[0].chunks.units
	if !units.TryWait(usableBins - 1) { // and there is no other bin
		t.Fatal("no units")
	}
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range rounds {
				if offset, _, ok := p.Alloc(0, 1024); ok {
					p.Free(offset)
				}
			}
		})
	}
	all.Wait()
	units.Signal(usableBins-1, 0)
	p.Free(keep.offset)
	wantHome(t, p.Allocator, p.coarse)
}
