package ualloc

import (
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/allocator/rcu"
	"codeberg.org/gpumemtop/gpumemtop/allocator/semaphore"
)

// arena is what the threads with one number share.
type arena struct {
	of      *Allocator
	number  int
	readers *rcu.Domain // of all lists
	lists   [classes]list
	chunks  chunkList
	owned   atomic.Int32 // chunks
	leaving atomic.Int32 // bins that have lost their class and are not yet back in their chunk
}

func newArena(of *Allocator, number int) *arena {
	a := &arena{of: of, number: number, readers: rcu.New()}
	a.chunks.units, a.chunks.usable = semaphore.NewBulk(0), of.geometry.usable()
	for class := range a.lists {
		l := &a.lists[class]
		l.class, l.readers, l.units = class, a.readers, semaphore.NewBulk(0)
	}
	return a
}

// alloc takes a slot of a class. It is false when there is no more.
func (a *arena) alloc(class int) (b *bin, slot int, ok bool) {
	l := &a.lists[class]
	if !l.units.Wait(1, l.batch()) {
		if b := a.bin(class); b != nil {
			b.open(class)
			l.relink(b)
			l.units.Signal(b.capacity(class)-1, l.batch()-1)
			return b, 0, true
		}
		l.units.Signal(0, l.batch()-1)
		if !l.units.TryWait(1) { // unless somebody has freed one since
			return nil, 0, false
		}
	}
	b = l.claim()
	return b, b.take(), true
}

// bin returns a bin without class, nil if there is none.
func (a *arena) bin(class int) *bin {
	from := sideOf(class)
	units := a.chunks.units
	if !units.Wait(1, a.chunks.usable) {
		if c := a.chunk(); c != nil {
			b := c.pick(c.nth(from, 0))
			a.chunks.add(c)
			return b
		}
		units.Signal(0, a.chunks.usable-1)
		return nil
	}
	return a.chunks.take(from)
}

// chunk returns a new chunk that is in no list, nil if there is none.
func (a *arena) chunk() *chunk {
	if int(a.owned.Add(1)) > a.of.geometry.MaxChunks() {
		a.owned.Add(-1)
		return nil
	}
	page, ok := a.of.coarse.Alloc(a.of.geometry.order(), uint64(a.number))
	if !ok {
		a.owned.Add(-1)
		return nil
	}
	c := newChunk(a, page, a.of.geometry.bins())
	a.of.chunks[page/a.of.geometry.bins()].Store(c)
	return c
}

// drop gives a chunk without bins in use back.
func (a *arena) drop(c *chunk) {
	a.of.chunks[c.page/len(c.bins)].Store(nil)
	a.owned.Add(-1)
	a.of.coarse.Free(c.page, a.of.geometry.order())
}

// free gives back the block that begins at a unit of a bin. It is false when none does.
//
// What looks at the bin is a read section: a bin gets no other class as long as anybody is inside who has seen it with
// this one. That matters for frees that are wrong, and for those that have given their slot back and not yet linked
// the bin.
func (a *arena) free(b *bin, within int) (class int, ok bool) {
	r := a.readers.Enter()
	class, _ = b.load()
	if class < 0 || within&(1<<class-1) != 0 || within>>class >= b.capacity(class) || !b.clear(within>>class) {
		a.readers.Exit(r)
		return 0, false
	}
	l := &a.lists[class]
	_, count := unpack(b.state.Add(1))
	full := count == b.capacity(class)
	// Whoever freed the first slot links the bin. He may be late: then who frees the last one does, because a bin that is
	// missed is looked for in the list.
	if count == 1 || full {
		l.relink(b)
	}
	a.readers.Exit(r)
	l.units.Signal(1, 0)
	if !full {
		b = nil
	}
	a.trim(l, b)
	return class, true
}

// trim takes bins without blocks out of a list: b, which may be nil, and those that others had to leave.
func (a *arena) trim(l *list, b *bin) {
	for b != nil || l.missed.Load() && l.missed.CompareAndSwap(true, false) {
		if b == nil {
			if b = l.anyEmpty(); b == nil {
				continue
			}
			l.missed.Store(true) // there may be more
		}
		if !a.retire(l, b) {
			return
		}
		b = nil
	}
}

// retire takes a bin without blocks out of the list and sends it to its chunk, unless somebody allocates from it
// first. It is false when units are out, so that it cannot tell: who has them signals some later and then trims,
// because he sees missed.
func (a *arena) retire(l *list, b *bin) bool {
	n := b.capacity(l.class)
	if !l.units.TryWait(n) {
		l.missed.Store(true)
		if !l.units.TryWait(n) { // whoever signalled between the two did not see it
			return false
		}
	}
	a.leaving.Add(1)
	if !b.state.CompareAndSwap(stateOf(l.class, n), 0) {
		a.leaving.Add(-1)
		l.units.Signal(n, 0)
		return true
	}
	l.relink(b)
	a.readers.Defer(func() {
		b.next.Store(nil)
		a.chunks.give(b, a.drop)
		a.of.arrived.Add(1)
		a.leaving.Add(-1)
	})
	a.readers.TryBarrier()
	return true
}
