package ualloc

import (
	"sync"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/rcu"
	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/semaphore"
)

// arena is what the threads with one number share.
type arena struct {
	of      *Allocator
	number  int
	readers *rcu.Domain // of all lists
	lists   [classes]list
	chunks  chunkList
	owned   atomic.Int32 // chunks
	leaving atomic.Int32 // bins that are not yet back in their chunk, and threads that take bins or chunks out: see trim

	headers struct { // of chunks that were given back
		mutex sync.Mutex
		spare []*chunk
	}
}

// spareHeaders is how many headers of chunks an arena keeps for its next ones.
const spareHeaders = 4

func newArena(of *Allocator, number int) *arena {
	a := &arena{of: of, number: number, readers: rcu.New()}
	a.chunks.units, a.chunks.usable, a.chunks.drop = semaphore.NewBulk(0), of.geometry.usable(), a.drop
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
			a.trim(l, nil) // an earlier taker of a slot of this bin left its unit to a bin that lacked one
			return b, 0, true
		}
		l.units.Signal(0, l.batch()-1)
		if !l.units.TryWait(1) { // unless another thread has freed one since
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
	for !units.Wait(1, a.chunks.usable) {
		if a.takeBack() {
			units.Signal(0, a.chunks.usable-1)
			continue
		}
		if c := a.chunk(); c != nil {
			b := c.pick(c.nth(from, 0))
			a.leaving.Add(1)
			a.chunks.add(c)
			a.leaving.Add(-1)
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
	c := a.header(page)
	a.of.chunks[page/a.of.geometry.bins()].Store(c)
	return c
}

// header returns the header for a chunk that begins at a page: of one that was given back, or a new one.
func (a *arena) header(page int) *chunk {
	h := &a.headers
	h.mutex.Lock()
	defer h.mutex.Unlock()
	n := len(h.spare)
	if n == 0 {
		return newChunk(a, page, a.of.geometry.bins())
	}
	c := h.spare[n-1]
	h.spare = h.spare[:n-1]
	c.page = page
	return c
}

// store takes in the header of a chunk that was given back. Its bins have no class, and all are in it.
func (a *arena) store(c *chunk) {
	h := &a.headers
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(h.spare) < spareHeaders {
		h.spare = append(h.spare, c)
	}
}

// drop gives a chunk without bins in use back. Its header may be reused once no thread reads it.
func (a *arena) drop(c *chunk) {
	a.of.chunks[c.page/len(c.bins)].Store(nil)
	a.owned.Add(-1)
	a.of.coarse.Free(c.page, a.of.geometry.order())
	a.of.arrived.Add(1)
	a.readers.Defer(c.reuse)
}

// free gives back the block that begins at a unit of a bin of the chunk with that number. It is false when none does.
//
// What looks at the bin is a read section: a bin gets no other class while a thread is inside that has seen it with
// this one. That matters for frees that are wrong, and for those that have given their slot back and not yet linked
// the bin.
func (a *arena) free(c *chunk, number, index, within int) (class int, ok bool) {
	r := a.readers.Enter()
	b := &c.bins[index]
	class, _ = b.load()
	if a.of.chunks[number].Load() != c || class < 0 || within&(1<<class-1) != 0 || within>>class >= b.capacity(class) || !b.clear(within>>class) {
		a.readers.Exit(r)
		return 0, false
	}
	l := &a.lists[class]
	_, count := unpack(b.state.Add(1))
	full := count == b.capacity(class)
	// The thread that freed the first slot links the bin. It may be late: then the one that frees the last slot does,
	// because a bin that is missed is looked for in the list.
	if count == 1 || full {
		l.relink(b)
	}
	a.readers.Exit(r)
	l.units.Signal(1, 0)
	switch {
	case !full:
		a.trim(l, nil)
	case a.of.wanting.Load() == 0:
		a.keep(l, b)
	default:
		a.trim(l, b)
	}
	return class, true
}

// keep has a bin without blocks stay, and sends the one that stayed so far to its chunk.
func (a *arena) keep(l *list, b *bin) {
	if l.kept.Load() == b {
		a.trim(l, nil)
		return
	}
	a.leaving.Add(1) // the other one is neither what stays nor on its way
	a.trim(l, l.keep(b))
	a.leaving.Add(-1)
}

// takeBack sends the bins that stay without blocks to their chunks, and what had to be left in a list before. It is
// false when nothing stayed.
func (a *arena) takeBack() bool {
	found := false
	for class := range a.lists {
		l := &a.lists[class]
		if l.kept.Load() == nil {
			a.trim(l, nil)
			continue
		}
		a.leaving.Add(1) // as in keep
		b := l.unkeep()
		a.trim(l, b)
		a.leaving.Add(-1)
		found = found || b != nil
	}
	if a.chunks.missed.Load() {
		a.leaving.Add(1)
		a.chunks.sweep()
		a.leaving.Add(-1)
	}
	return found
}

// trim takes bins without blocks out of a list: b, which may be nil, and those that others had to leave.
//
// From when it has their units until they are back, in the list or in their chunks, free slots are in no book. So this
// thread counts as leaving all the while, and each bin that it sends on its way does until it is home: who finds
// nothing waits for them. What has come back is counted in arrived first, for those who look after that.
func (a *arena) trim(l *list, b *bin) {
	if b == nil && !l.missed.Load() {
		return
	}
	a.leaving.Add(1)
	defer a.leaving.Add(-1)
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

// retire takes a bin without blocks out of the list and sends it to its chunk, unless a thread allocates from it
// first. It is false when units are out, so that it cannot tell. Either their owners take slots of this bin, and free
// them, or they take others, whose units are still to be signalled: by a free, by a grower, or by another thread that
// retires. The signalling thread trims afterwards, because it sees missed.
func (a *arena) retire(l *list, b *bin) bool {
	n := b.capacity(l.class)
	if !l.units.TryWait(n) {
		l.missed.Store(true)
		if !l.units.TryWait(n) { // a thread that signalled in between did not see it
			return false
		}
	}
	if !b.state.CompareAndSwap(stateOf(l.class, n), 0) {
		l.units.Signal(n, 0)
		a.of.arrived.Add(1)
		return true
	}
	a.leaving.Add(1)
	l.relink(b)
	if b.home == nil {
		b.home = func() { a.home(b) }
	}
	a.readers.Defer(b.home)
	a.readers.TryBarrier()
	return true
}

// home takes a bin that no reader sees any more back into its chunk.
func (a *arena) home(b *bin) {
	b.next.Store(nil)
	a.chunks.give(b)
	a.of.arrived.Add(1)
	a.leaving.Add(-1)
}
