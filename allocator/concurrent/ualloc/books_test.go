package ualloc

import (
	"sync"
	"sync/atomic"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/tbuddy"
)

// The tests in this file are about free slots that no semaphore counts for a moment, and about bins and chunks that no
// thread remembers to give back.

// One block is held for good, so one bin of two is left, and one thread takes and frees a block of another class. It is
// served at all times, even if another thread returns its bin to the chunk meanwhile.
func TestLastBinIsFound(t *testing.T) {
	const rounds = 200_000
	for name, disturb := range map[string]func(al *Allocator){
		"trim":     (*Allocator).Trim,
		"hopeless": func(al *Allocator) { al.Alloc(0, 4096) },
	} {
		t.Run(name, func(t *testing.T) {
			g := Geometry{Unit: 8, Pages: 4, Bins: 4}
			coarse := tbuddy.New(g.Pages)
			al, err := New(coarse, g, 1)
			if err != nil {
				t.Fatal(err)
			}
			held, _, _ := al.Alloc(0, 8)
			var done atomic.Bool
			var all sync.WaitGroup
			all.Go(func() {
				for !done.Load() {
					disturb(al)
				}
			})
			failures := 0
			for range rounds {
				if offset, _, ok := al.Alloc(0, 1024); ok {
					al.Free(offset)
				} else {
					failures++
				}
			}
			done.Store(true)
			all.Wait()
			if failures > 0 {
				t.Errorf("%d of %d requests were refused, although there is room", failures, rounds)
			}
			al.Free(held)
			wantHome(t, al, coarse)
		})
	}
}

// An allocation waits for a thread that has taken a bin's units and not yet queued the bin's return.
func TestAllocationWaitsForABinThatIsOut(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: 4, Bins: 4}, 1)
	a, l := p.arenas[0], &p.arenas[0].lists[7]
	keep, _, _ := p.Alloc(0, 8)
	last, _, _ := p.Alloc(0, 1024)
	p.Free(last)
	l.mutex.Lock() // so that the thread that retires the bin cannot unlink it
	trimmed := make(chan bool)
	go func() { p.Trim(); close(trimmed) }()
	until(func() bool { return l.units.Counts().Units == 0 })
	var barriers atomic.Int64
	var count func()
	count = func() { barriers.Add(1); a.readers.Defer(count) }
	a.readers.Defer(count)
	served := make(chan bool, 1)
	go func() { _, _, ok := p.Alloc(0, 1024); served <- ok }()
	until(func() bool { return len(served) > 0 || barriers.Load() > 4*tries }) // it has been through them
	l.mutex.Unlock()
	if <-trimmed; !<-served {
		t.Error("refused, although there is room")
	}
	p.Free(keep)
}

// asked calls a function once, when it is asked for a block.
type asked struct {
	*buddy
	hook func()
}

func (c *asked) Alloc(order int, scatter uint64) (int, bool) {
	if hook := c.hook; hook != nil {
		c.hook = nil
		hook()
	}
	return c.buddy.Alloc(order, scatter)
}

// A bin becomes empty while a unit is out, and the unit's owner takes a slot of the bin that a grower brings. So the
// grower must look for the bin that was missed.
func TestGrowerTrims(t *testing.T) {
	coarse := &asked{newBuddy(8), nil}
	al, err := New(coarse, Geometry{Unit: 8, Pages: 8, Bins: 4}, 1)
	if err != nil {
		t.Fatal(err)
	}
	l := &al.arenas[0].lists[7]
	var offsets [6]uint64 // all of the first chunk: two bins of three
	for i := range offsets {
		offsets[i], _, _ = al.Alloc(0, 1024)
	}
	coarse.hook = func() {
		al.Free(offsets[0])
		if !l.units.TryWait(1) {
			t.Fatal("no unit")
		}
		al.Free(offsets[1])
		al.Free(offsets[2])
		al.Trim()
		if !l.missed.Load() {
			t.Fatal("the bin was not missed: this test shows nothing")
		}
		// A slot of the new bin in place of one of the first has the same effect on the books.
		l.units.Signal(1, 0)
	}
	if _, _, ok := al.Alloc(0, 1024); !ok {
		t.Fatal("refused, although there is room")
	}
	if err := al.Validate(); err != nil {
		t.Error(err)
	}
	if s := al.Stats(); s.Bins != 2 || s.Kept != 0 {
		t.Errorf("%+v, want the new bin and the full one", s)
	}
}

// The same, step by step; and Trim takes a bin that was missed even if no other thread looks.
func TestTrimTakesWhatWasMissed(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: chunkBins}, 1)
	a, l := p.arenas[0], &p.arenas[0].lists[7]
	var offsets [3]uint64
	for i := range offsets {
		offsets[i], _, _ = p.Alloc(0, 1024)
	}
	if l.units.Wait(1, l.promisedSlots()) {
		t.Fatal("the bin is not exhausted")
	}
	b := a.newBin(7)
	p.Free(offsets[0])
	if !l.units.TryWait(1) {
		t.Fatal("no unit")
	}
	p.Free(offsets[1])
	p.Free(offsets[2])
	p.Trim()
	b.openForClass(7)
	l.listOrUnlist(b)
	if got := l.claimSlot(); got != b || got.takeSlot() != 1 {
		t.Fatal("the slot is not of the new bin")
	}
	l.units.Signal(b.capacity(7)-1, l.promisedSlots()-1)
	p.Trim()
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if s := p.Stats(); s.Bins != 1 || s.Small != 2 {
		t.Errorf("%+v, want one bin", s)
	}
}

// missChunk has one of an arena's two bins freed while a unit is out, so that the chunk stays. It returns what a thread
// that grows meanwhile would bring.
func missChunk(t *testing.T) (p *pool, brought *chunk) {
	p = newPool(t, Geometry{Unit: 8, Pages: 8, Bins: 4}, 1)
	p.wanting.Add(1) // no bin stays
	s := &p.arenas[0].chunks
	b, _ := p.alloc(0, 8)
	if !s.units.TryWait(1) {
		t.Fatal("no unit")
	}
	if s.units.Wait(1, s.usable) {
		t.Fatal("one unit too many")
	}
	brought = p.arenas[0].allocChunk()
	p.Free(b.offset)
	if got := p.Stats().Chunks; got != 2 || !s.missed.Load() {
		t.Fatalf("%d chunks, missed %v: want both, and a note", got, s.missed.Load())
	}
	return p, brought
}

// The same for chunks: the thread that adds one looks for those that were missed.
func TestChunkThatIsAddedReplacesOneThatWasMissed(t *testing.T) {
	p, brought := missChunk(t)
	s := &p.arenas[0].chunks
	first := brought.takeBinAt(brought.nthFreeBin(tailed, 0))
	s.addChunk(brought)
	if got := p.Stats().Chunks; got != 1 {
		t.Errorf("%d chunks, want the new one", got)
	}
	second := s.takeBin(tailed)
	s.putBin(first)
	s.putBin(second)
	wantHome(t, p.Allocator, p.coarse)
}

// And Trim does.
func TestTrimTakesAChunkThatWasMissed(t *testing.T) {
	p, brought := missChunk(t)
	s := &p.arenas[0].chunks
	s.drop(brought)
	s.units.Signal(1, s.usable-1) // the unit that was out
	wantHome(t, p.Allocator, p.coarse)
}
