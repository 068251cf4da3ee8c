// Package rcu lets readers walk a linked structure while others take elements out of it, and says when an element
// that was taken out can be reused: sleepable read-copy-update with conditional barriers, as in seed 001 §4.2.1.
//
// Definition. A domain has an epoch counter and two reader counters, one for even epochs and one for odd ones. A read
// section belongs to the epoch in which it began. A barrier takes the domain's mutex, takes over the callbacks queued
// so far, increments the epoch, waits until the previous epoch has no reader, runs the callbacks and releases the
// mutex. A conditional barrier does nothing when another barrier is still waiting to increment the epoch: that barrier
// will run the caller's callbacks, too.
//
// Invariants:
//   - A callback runs after every read section that began before it was queued has ended, and runs once.
//   - A read section belongs to the current epoch or, while a barrier waits, to the previous one: two counters suffice.
//   - A callback is in the queue, or held by the barrier that holds the mutex, or has run. A callback that panics has
//     run; the callbacks after it are in the queue again.
package rcu

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Domain is a set of readers and the barriers that wait for them. Make one with New. All methods may be called from
// any goroutine.
type Domain struct {
	epoch   atomic.Uint64
	_       [56]byte // keeps the counters, which readers write, off the cache line of epoch, which they only read
	readers [2]counter
	waiting atomic.Int32 // barriers that have yet to take over the callbacks and increment the epoch
	parked  atomic.Bool  // the barrier that holds the mutex sleeps until wake
	wake    chan struct{}
	mutex   sync.Mutex // held by one barrier at a time
	queue   queue
	spent   []func() // room for the next queue; guarded by mutex
}

type counter struct {
	atomic.Int64
	_ [56]byte
}

// queue holds the callbacks that no barrier has taken over. Its mutex is held for a few instructions, never while a
// thread waits.
type queue struct {
	mutex sync.Mutex
	calls []func()
}

// Reader is a read section that has begun, for Exit.
type Reader struct{ epoch uint64 }

// New returns a domain without readers.
func New() *Domain { return &Domain{wake: make(chan struct{}, 1)} }

// Enter begins a read section: what the caller can reach from now on stays as it is until Exit. Sections may nest and
// may block, but not for a barrier. Enter retries once for each barrier that increments the epoch meanwhile.
func (d *Domain) Enter() Reader {
	for {
		if r, ok := d.joinEpoch(d.epoch.Load()); ok {
			return r
		}
	}
}

// joinEpoch counts a reader in an epoch that the reader has read before, and reports whether that epoch is still current.
//
// Between reading the epoch and counting itself, a reader can lose the processor while several barriers run. The next
// barrier may then not wait for the counter of the old epoch, and would run callbacks while the reader is inside.
// McKenney's SRCU lets each barrier flip twice and wait for both counters. Here the reader reads the epoch again. If
// the epoch has not changed, the barrier that increments it comes later in the one order of all atomic operations, and
// so sees the count. Otherwise the reader has read nothing yet and starts over; its short stay in the wrong counter can
// only delay a barrier. So one flip per barrier is enough, as the seed describes.
func (d *Domain) joinEpoch(epoch uint64) (Reader, bool) {
	r := Reader{epoch}
	d.readers[epoch&1].Add(1)
	if d.epoch.Load() == epoch {
		return r, true
	}
	d.Exit(r)
	return Reader{}, false
}

// Exit ends the read section r. It panics when more sections end than began.
func (d *Domain) Exit(r Reader) {
	left := d.readers[r.epoch&1].Add(-1)
	if left < 0 {
		panic("rcu: more read sections ended than began")
	}
	// The barrier sets parked before it reads the counter for the last time; a reader changes the counter before it
	// reads parked. So one of the two sees what the other has written.
	if left == 0 && d.parked.Load() {
		select {
		case d.wake <- struct{}{}:
		default: // it has been woken
		}
	}
}

// Defer queues a callback for the next barrier. The caller first unlinks the element that the callback reclaims, and
// afterwards calls Barrier or TryBarrier. Callbacks run one at a time, in the order in which they were queued. They
// must not call Barrier or TryBarrier of the same domain. A callback that panics does so in the barrier that runs it.
// The callbacks after it are left to the next barrier, even if another thread has waited for them or delegated them.
func (d *Domain) Defer(call func()) {
	d.queue.mutex.Lock()
	defer d.queue.mutex.Unlock()
	d.queue.calls = append(d.queue.calls, call)
}

// Barrier returns when all read sections that began before the call have ended and all callbacks queued before it
// have run. The caller must not be in a read section.
func (d *Domain) Barrier() {
	d.waiting.Add(1)
	d.barrier()
}

// TryBarrier makes sure that the callbacks queued before the call will run. If another barrier is waiting to increment
// the epoch, that barrier runs them, and TryBarrier returns false at once: the callbacks may not have run yet.
// Otherwise it does what Barrier does, and returns true. The caller must not be in a read section.
func (d *Domain) TryBarrier() bool {
	// A barrier that waits has not taken over the queue yet, so it will find the caller's callbacks there.
	if !d.waiting.CompareAndSwap(0, 1) {
		return false
	}
	d.barrier()
	return true
}

func (d *Domain) barrier() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	calls, previous := d.advanceEpoch()
	d.waitForReaders(previous)
	d.runCallbacks(calls)
}

// runCallbacks runs callbacks. If one panics, the callbacks after it are the first that the next barrier runs.
func (d *Domain) runCallbacks(calls []func()) {
	ran := 0
	defer func() {
		if ran < len(calls) {
			d.queue.mutex.Lock()
			defer d.queue.mutex.Unlock()
			d.queue.calls = slices.Concat(calls[ran:], d.queue.calls)
			return
		}
		clear(calls)
		d.spent = calls[:0]
	}()
	for ran < len(calls) {
		ran++
		calls[ran-1]()
	}
}

// advanceEpoch takes over the callbacks and increments the epoch. Before that it ends the barrier's waiting: a thread that saw
// the barrier wait had queued its callbacks earlier, so they are taken over. The elements of these callbacks were
// unlinked before the increment, so readers of the new epoch cannot reach them.
func (d *Domain) advanceEpoch() (calls []func(), previous uint64) {
	d.waiting.Add(-1)
	d.queue.mutex.Lock()
	calls, d.queue.calls, d.spent = d.queue.calls, d.spent, nil
	d.queue.mutex.Unlock()
	return calls, d.epoch.Add(1) - 1
}

// hasNoReaders reports whether a past epoch has no readers left.
func (d *Domain) hasNoReaders(epoch uint64) bool { return d.readers[epoch&1].Load() == 0 }

// waitForReaders waits until a past epoch has no readers left. Most read sections are short, so it looks several times
// before it sleeps.
func (d *Domain) waitForReaders(epoch uint64) {
	for i := range 64 {
		if d.hasNoReaders(epoch) {
			return
		}
		if i >= 32 {
			runtime.Gosched()
		}
	}
	d.parked.Store(true)
	for !d.hasNoReaders(epoch) {
		<-d.wake // may be left over from an earlier sleep: look again
	}
	d.parked.Store(false)
}
