package ualloc

import (
	"runtime"
	"sync"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/rcu"
	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/semaphore"
)

// list holds an arena's bins of one class that have free slots. Threads walk it in read sections. A thread that links
// or unlinks a bin holds the mutex, in a read section or not, and never waits for a barrier meanwhile.
//
// The semaphore's units are free slots that the holder of a unit will find: a slot is counted after its bin has been
// linked, or while another thread is just linking it, and the slots of a bin are uncounted before the bin is unlinked.
type list struct {
	class   int
	readers *rcu.Domain
	units   *semaphore.Bulk
	head    atomic.Pointer[bin]
	mutex   sync.Mutex
	kept    atomic.Pointer[bin] // the most recently emptied bin: it stays in the list while it has no blocks
	missed  atomic.Bool         // another bin without a block may be in the list, because units were out when it became empty
}

// promisedSlots returns how many slots a grower promises: those of a bin with a tail. A bin without a tail brings fewer, and
// some waiting threads then grow in turn. With a smaller promise, threads would give up although slots are on their
// way.
func (l *list) promisedSlots() int { return binCapacity(l.class, headerBins) }

// claimSlot claims a slot of some bin. The caller has a unit, so some bin has a free slot.
func (l *list) claimSlot() *bin {
	for {
		if b := l.findBinWithSlot(); b != nil {
			return b
		}
		runtime.Gosched() // a thread is about to link a bin, or others freed slots in bins that search has passed
	}
}

func (l *list) findBinWithSlot() *bin {
	r := l.readers.Enter()
	defer l.readers.Exit(r)
	for b := l.head.Load(); b != nil; b = b.next.Load() {
		if left, ok := b.claimSlot(l.class); ok {
			if left == 0 {
				l.listOrUnlist(b)
			}
			return b
		}
	}
	return nil
}

// listOrUnlist makes a bin's place fit its state: in the list if it has the list's class and free slots, else out. A thread
// that moves the free counter from or to 0 calls it afterwards, so the last to come sees the last value. The caller
// keeps the bin from getting another class: it is in a read section that began when the bin had this one, or has taken
// the class away and not yet given the bin back.
func (l *list) listOrUnlist(b *bin) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	class, count := b.loadState()
	belongs := class == l.class && count > 0
	if belongs == b.linked {
		return
	}
	b.linked = belongs
	if belongs {
		l.push(b)
	} else {
		l.unlink(b)
	}
}

// push puts b first, so that a bin that was exhausted a moment ago fills up before other bins are begun.
func (l *list) push(b *bin) {
	first := l.head.Load()
	b.previous = nil
	b.next.Store(first)
	if first != nil {
		first.previous = b
	}
	l.head.Store(b)
}

func (l *list) unlink(b *bin) {
	next := b.next.Load()
	if next != nil {
		next.previous = b.previous
	}
	if b.previous != nil {
		b.previous.next.Store(next)
	} else {
		l.head.Store(next)
	}
}

// exchangeKeptBin makes b, which has no block or is nil, the kept bin. It returns the previous kept bin if that must go,
// because it has no block either; nil: no bin must go.
func (l *list) exchangeKeptBin(b *bin) *bin {
	if old := l.kept.Swap(b); old != nil && old != b && old.isEmpty(l.class) {
		return old
	}
	return nil
}

// anyEmptyBin returns a bin of the list without any block, except the kept one; nil if there is none.
func (l *list) anyEmptyBin() *bin {
	r := l.readers.Enter()
	defer l.readers.Exit(r)
	for b := l.head.Load(); b != nil; b = b.next.Load() {
		if b.isEmpty(l.class) && b != l.kept.Load() {
			return b
		}
	}
	return nil
}
