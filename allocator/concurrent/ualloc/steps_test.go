package ualloc

import (
	"sync"
	"sync/atomic"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/collective"
)

// The tests in this file stop a thread where it matters, by doing its steps themselves.

// Threads that wait for a bin at the same time are served by one cut of the chunk list.
func TestWaitersShareOneListOperation(t *testing.T) {
	const n = 2*usableBins + 5 // two chunks, and some of a third
	p := newPool(t, Geometry{Unit: 8, Pages: 3 * chunkBins}, 1)
	a := p.arenas[0]
	a.chunks.drop = func(c *chunk) { a.chunks.push(c); a.chunks.units.Signal(usableBins, 0) }
	for range 3 {
		a.chunks.addChunk(mustChunk(t, a))
		a.chunks.units.Signal(1, 0) // the one that the maker would have kept
	}
	for _, from := range []side{tailed, plain} {
		before := a.chunks.operations
		bins := make(chan *bin, n)
		if !a.chunks.units.TryWait(n + 1) {
			t.Fatal("no units")
		}
		gate := a.chunks.mutex.Lock(collective.Alone)
		for range n {
			go func() { bins <- a.chunks.takeBin(from) }()
		}
		until(func() bool { return a.chunks.mutex.WaitingCount() == n })
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
		before = a.chunks.operations
		one := a.chunks.takeBin(from) // of a chunk that has more
		if seen[one] || a.chunks.operations != before {
			t.Errorf("bin %d, %d list operations; want a new bin and none", one.index, a.chunks.operations-before)
		}
		seen[one] = true
		for b := range seen {
			a.chunks.putBin(b)
		}
	}
}

func mustChunk(t *testing.T, a *arena) *chunk {
	c := a.allocChunk()
	if c == nil {
		t.Fatal("no chunk")
	}
	// add promises nothing itself: it fulfils what a grower has promised.
	a.chunks.units.PromiseUnits(usableBins - 1)
	return c
}

// A reader that has reached a bin keeps it from being used for anything else.
func TestBinStaysWhileReadersSeeIt(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: chunkBins}, 1)
	p.wanting.Add(1)         // no bin stays
	keep, _ := p.alloc(0, 8) // so that the chunk stays
	b, _ := p.alloc(0, 64)
	a := p.arenas[0]
	r := a.readers.Enter()
	seen := a.lists[3].head.Load()
	c := seen.chunk
	free := c.count.Load()
	done := make(chan bool)
	go func() { _, ok := p.Free(b.offset); done <- ok }()
	until(func() bool { return a.leaving.Load() > 0 && a.lists[3].head.Load() == nil })
	if class, _ := seen.loadState(); class >= 0 || c.count.Load() != free {
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
	p.wanting.Add(1) // no bin stays
	l := &p.arenas[0].lists[7]
	var offsets []uint64
	for range 4 { // three in one bin, one in the next
		b, _ := p.alloc(0, 1024)
		offsets = append(offsets, b.offset)
	}
	p.Free(offsets[0])
	if !l.units.TryWait(3) { // three threads that are about to look for their slots
		t.Fatal("no units")
	}
	p.Free(offsets[1])
	p.Free(offsets[2])
	if p.Stats().Bins != 2 || !l.missed.Load() {
		t.Fatalf("%d bins, missed %v: want both bins, and a note", p.Stats().Bins, l.missed.Load())
	}
	var taken []uint64
	for range 3 {
		b := l.claimSlot()
		taken = append(taken, uint64(b.chunk.page*binUnits+unitOf(7, b.index, b.takeSlot()))*8)
	}
	for _, offset := range append(taken, offsets[3]) {
		if _, ok := p.Free(offset); !ok {
			t.Fatalf("offset %d cannot be freed", offset)
		}
	}
	wantHome(t, p.Allocator, p.coarse)
}

// A thread has freed the first slot of an exhausted bin and not yet linked it, while others free the rest and yet

// All bins that were missed go.
func TestBinsThatWereMissedGoTogether(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: chunkBins}, 1)
	p.wanting.Add(1) // no bin stays
	l := &p.arenas[0].lists[7]
	var offsets []uint64
	for range 7 { // three in either of two bins, one in the next
		b, _ := p.alloc(0, 1024)
		offsets = append(offsets, b.offset)
	}
	out := 0 // units
	for _, offset := range offsets[:6] {
		n := l.units.Counts().Units
		if !l.units.TryWait(n) {
			t.Fatal("no units")
		}
		out += n
		p.Free(offset)
	}
	if p.Stats().Bins != 3 || l.units.Counts().Units != 1 {
		t.Fatalf("%d bins, %+v: want all bins, and one unit", p.Stats().Bins, l.units.Counts())
	}
	l.units.Signal(out, 0)
	p.Free(offsets[6])
	wantHome(t, p.Allocator, p.coarse)
}

// The same for chunks.
func TestChunkThatWasMissedGoesLater(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: chunkBins}, 1)
	p.wanting.Add(1) // no bin stays
	s := &p.arenas[0].chunks
	b, _ := p.alloc(0, 8)
	if !s.units.TryWait(2) {
		t.Fatal("no units")
	}
	p.Free(b.offset)
	if p.Stats().Chunks != 1 || !s.missed.Load() {
		t.Fatalf("%d chunks, missed %v: want one, and a note", p.Stats().Chunks, s.missed.Load())
	}
	first, second := s.takeBin(tailed), s.takeBin(plain)
	s.putBin(first)
	s.putBin(second)
	wantHome(t, p.Allocator, p.coarse)
}

// Threads that wait for a bin with a tail get all of its slots, and are not sent to look for another bin.
func TestWaitersGetTheTail(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: chunkBins}, 1)
	a, l := p.arenas[0], &p.arenas[0].lists[4]
	p.alloc(0, 8) // makes the chunk
	if l.units.Wait(1, l.promisedSlots()) || !a.chunks.units.TryWait(usableBins-1) {
		t.Fatal("want to grow, with all bins for ourselves")
	}
	var got, refused atomic.Int64
	var all sync.WaitGroup
	const n = 32 // blocks of 16 units in a bin with a tail
	for range n - 1 {
		all.Go(func() {
			if _, _, ok := p.Alloc(0, 128); ok {
				got.Add(1)
			} else {
				refused.Add(1)
			}
		})
	}
	until(func() bool { return l.units.Counts().Reserved+int(refused.Load()) == n-1 })
	b := a.chunks.takeBin(tailed)
	b.openForClass(4)
	l.listOrUnlist(b)
	l.units.Signal(b.capacity(4)-1, l.promisedSlots()-1)
	all.Wait()
	if got.Load() != n-1 {
		t.Errorf("%d of %d found room, %d were refused", got.Load(), n-1, refused.Load())
	}
}

// hooked calls a function when it has no memory to give.
type hooked struct {
	*buddy
	refuses func()
}

func (h *hooked) Alloc(order int, scatter uint64) (int, bool) {
	page, ok := h.buddy.Alloc(order, scatter)
	if !ok {
		h.refuses()
	}
	return page, ok
}

// An allocation finds memory that is freed while it finds out that there is none: a slot, or a whole bin.
func TestFreedMeanwhile(t *testing.T) {
	for _, size := range []uint64{512, 1024} {
		coarse := &hooked{newBuddy(chunkBins), func() {}}
		al, err := New(coarse, Geometry{Unit: 8, Pages: chunkBins}, 1)
		if err != nil {
			t.Fatal(err)
		}
		var offsets []uint64
		for {
			offset, _, ok := al.Alloc(0, 1024)
			if !ok {
				break
			}
			offsets = append(offsets, offset)
		}
		last := offsets[len(offsets)-3:] // a bin
		if size == 1024 {
			last = last[:1]
		}
		coarse.refuses = func() {
			for _, offset := range last {
				al.Free(offset)
			}
			last = nil
		}
		if _, _, ok := al.Alloc(0, size); !ok {
			t.Errorf("%d bytes were refused, although blocks had been freed", size)
		}
	}
}
