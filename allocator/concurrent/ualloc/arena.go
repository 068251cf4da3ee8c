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
	readers *rcu.Domain // threads that walk a list
	lists   [classes]list
	chunks  chunkList
	owned   atomic.Int32 // chunks
	leaving atomic.Int32 // bins that are not yet back in their chunk, and threads that take bins or chunks out: see takeOutEmptyBins

	headers struct { // of chunks that were given back
		mutex sync.Mutex
		spare []*chunk
	}
}

// spareHeaders is how many headers of released chunks an arena keeps for new chunks.
const spareHeaders = 4

func newArena(of *Allocator, number int) *arena {
	a := &arena{of: of, number: number, readers: rcu.New()}
	a.chunks.units, a.chunks.usable, a.chunks.drop = semaphore.NewBulk(0), of.geometry.usableBins(), a.releaseChunk
	for class := range a.lists {
		l := &a.lists[class]
		l.class, l.readers, l.units = class, a.readers, semaphore.NewBulk(0)
	}
	return a
}

// alloc takes a slot of a class. ok is false if there is no memory.
func (a *arena) alloc(class int) (b *bin, slot int, ok bool) {
	l := &a.lists[class]
	if !l.units.Wait(1, l.promisedSlots()) {
		if b := a.newBin(class); b != nil {
			b.openForClass(class)
			l.listOrUnlist(b)
			l.units.Signal(b.capacity(class)-1, l.promisedSlots()-1)
			a.takeOutEmptyBins(l, nil) // units were signalled: a bin that retire had to leave may go now
			return b, 0, true
		}
		l.units.Signal(0, l.promisedSlots()-1)
		if !l.units.TryWait(1) { // another thread may have freed a slot since
			return nil, 0, false
		}
	}
	b = l.claimSlot()
	return b, b.takeSlot(), true
}

// newBin returns a bin without class, nil if there is none.
func (a *arena) newBin(class int) *bin {
	from := sideOfClass(class)
	units := a.chunks.units
	for !units.Wait(1, a.chunks.usable) {
		if a.returnKeptBins() {
			units.Signal(0, a.chunks.usable-1)
			continue
		}
		if c := a.allocChunk(); c != nil {
			b := c.takeBinAt(c.nthFreeBin(from, 0))
			a.leaving.Add(1)
			a.chunks.addChunk(c)
			a.leaving.Add(-1)
			return b
		}
		units.Signal(0, a.chunks.usable-1)
		return nil
	}
	return a.chunks.takeBin(from)
}

// allocChunk returns a new chunk that is in no list, nil if there is none.
func (a *arena) allocChunk() *chunk {
	if int(a.owned.Add(1)) > a.of.geometry.MaxChunks() {
		a.owned.Add(-1)
		return nil
	}
	page, ok := a.of.coarse.Alloc(a.of.geometry.chunkOrder(), uint64(a.number))
	if !ok {
		a.owned.Add(-1)
		return nil
	}
	c := a.takeOrMakeHeader(page)
	a.of.chunks[page/a.of.geometry.binsPerChunk()].Store(c)
	return c
}

// takeOrMakeHeader returns a header for the chunk that begins at a page: that of a released chunk, or a new one.
func (a *arena) takeOrMakeHeader(page int) *chunk {
	h := &a.headers
	h.mutex.Lock()
	defer h.mutex.Unlock()
	n := len(h.spare)
	if n == 0 {
		return newChunk(a, page, a.of.geometry.binsPerChunk())
	}
	c := h.spare[n-1]
	h.spare = h.spare[:n-1]
	c.page = page
	return c
}

// keepHeader keeps the header of a released chunk. All of its bins are in it and have no class.
func (a *arena) keepHeader(c *chunk) {
	h := &a.headers
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(h.spare) < spareHeaders {
		h.spare = append(h.spare, c)
	}
}

// releaseChunk returns a chunk without bins in use to the coarse allocator. The chunk's header may be reused once no
// thread reads it.
func (a *arena) releaseChunk(c *chunk) {
	a.of.chunks[c.page/len(c.bins)].Store(nil)
	a.owned.Add(-1)
	a.of.coarse.Free(c.page, a.of.geometry.chunkOrder())
	a.of.arrived.Add(1)
	a.readers.Defer(c.reuse)
}

// free frees the block that begins at unit within of a bin: the bin with that index in chunk c, which has that number.
// ok is false if no block begins there.
//
// The bin is read in a read section: while a thread is inside that has seen the bin with one class, the bin gets no
// other. That matters for frees that are wrong, and for threads that have freed their slot and not yet linked the bin.
func (a *arena) free(c *chunk, number, index, within int) (class int, ok bool) {
	r := a.readers.Enter()
	b := &c.bins[index]
	class, _ = b.loadState()
	if a.of.chunks[number].Load() != c || class < 0 || within&(1<<class-1) != 0 || within>>class >= b.capacity(class) || !b.freeSlot(within>>class) {
		a.readers.Exit(r)
		return 0, false
	}
	l := &a.lists[class]
	_, count := unpackState(b.state.Add(1))
	full := count == b.capacity(class)
	// The thread that frees the first slot links the bin. If it is late, the thread that frees the last slot links the
	// bin, because a missed bin is looked for in the list.
	if count == 1 || full {
		l.listOrUnlist(b)
	}
	a.readers.Exit(r)
	l.units.Signal(1, 0)
	switch {
	case !full:
		a.takeOutEmptyBins(l, nil)
	case a.of.wanting.Load() == 0:
		a.keepBin(l, b)
	default:
		a.takeOutEmptyBins(l, b)
	}
	return class, true
}

// keepBin keeps a bin without blocks in its list, and sends the previously kept bin to its chunk.
func (a *arena) keepBin(l *list, b *bin) {
	if l.kept.Load() == b {
		a.takeOutEmptyBins(l, nil)
		return
	}
	a.leaving.Add(1) // the previous bin is not kept any longer, and not yet on its way
	a.takeOutEmptyBins(l, l.exchangeKeptBin(b))
	a.leaving.Add(-1)
}

// returnKeptBins sends the kept bins to their chunks, and the bins and chunks that earlier calls had to leave. It reports
// whether a bin was kept.
func (a *arena) returnKeptBins() bool {
	found := false
	for class := range a.lists {
		l := &a.lists[class]
		if l.kept.Load() == nil {
			a.takeOutEmptyBins(l, nil)
			continue
		}
		a.leaving.Add(1) // as in keepBin
		b := l.exchangeKeptBin(nil)
		a.takeOutEmptyBins(l, b)
		a.leaving.Add(-1)
		found = found || b != nil
	}
	if a.chunks.missed.Load() {
		a.leaving.Add(1)
		a.chunks.dropMissedChunks()
		a.leaving.Add(-1)
	}
	return found
}

// takeOutEmptyBins takes bins without blocks out of a list: b, which may be nil, and the bins that other threads had to leave.
//
// From the time when the thread takes a bin's units until the bin is back, in the list or in its chunk, no semaphore
// counts the bin's free slots. So the thread counts in leaving all the while, and so does each bin that it takes out
// until the bin is in its chunk. An allocation that finds nothing waits for them. What comes back is first counted in
// arrived, for allocations that look later.
func (a *arena) takeOutEmptyBins(l *list, b *bin) {
	if b == nil && !l.missed.Load() {
		return
	}
	a.leaving.Add(1)
	defer a.leaving.Add(-1)
	for b != nil || l.missed.Load() && l.missed.CompareAndSwap(true, false) {
		if b == nil {
			if b = l.anyEmptyBin(); b == nil {
				continue
			}
			l.missed.Store(true) // there may be more
		}
		if !a.retireBin(l, b) {
			return
		}
		b = nil
	}
}

// retireBin takes a bin without blocks out of the list and sends it to its chunk, unless a thread allocates from it first.
// It returns false if other threads hold units, because these may be for slots of this bin. The owners of the units
// either take slots of this bin and free them, or take slots of other bins, whose units are signalled later: by a free,
// by a grower, or by another thread that retires a bin. The signalling thread trims afterwards, because it sees missed.
func (a *arena) retireBin(l *list, b *bin) bool {
	n := b.capacity(l.class)
	if !l.units.TryWait(n) {
		l.missed.Store(true)
		if !l.units.TryWait(n) { // a thread that signalled in between did not see it
			return false
		}
	}
	if !b.state.CompareAndSwap(packState(l.class, n), 0) {
		l.units.Signal(n, 0)
		a.of.arrived.Add(1)
		return true
	}
	a.leaving.Add(1)
	l.listOrUnlist(b)
	if b.goHome == nil {
		b.goHome = func() { a.returnToChunk(b) }
	}
	a.readers.Defer(b.goHome)
	a.readers.TryBarrier()
	return true
}

// returnToChunk returns a bin that no reader sees any longer to its chunk.
func (a *arena) returnToChunk(b *bin) {
	b.next.Store(nil)
	a.chunks.putBin(b)
	a.of.arrived.Add(1)
	a.leaving.Add(-1)
}
