// Package rcu lets readers walk a linked structure while others take elements out of it, and says when an element
// that was taken out can be reused: sleepable read-copy-update with conditional barriers, as in seed 001 §4.2.1.
//
// Definition. A domain has an epoch counter and two reader counters, one for even epochs and one for odd ones. A read
// section belongs to the epoch in which it began. A barrier takes the domain's mutex, takes over the callbacks queued
// so far, increments the epoch, waits until the previous epoch has no reader, runs the callbacks and releases the
// mutex. A conditional barrier does nothing when another barrier is still waiting to increment the epoch: that one
// will run the caller's callbacks, too.
//
// Invariants:
//   - A callback runs after every read section that began before it was queued has ended, and runs once.
//   - Read sections have their epoch or, for as long as one barrier waits, the one before: two counters suffice.
//   - A callback is in the queue, or with the one barrier that holds the mutex, or has run. One that panics has run, and
//     what it kept from running is in the queue again.
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
	_       [56]byte // what readers write stands apart from what they only read
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

// queue is what barriers have yet to run. Its mutex is held for a few instructions, never while a thread waits.
type queue struct {
	mutex sync.Mutex
	calls []func()
}

// Reader is a read section that has begun. It is a ticket for Exit and has no other use.
type Reader struct{ epoch uint64 }

// New returns a domain without readers.
func New() *Domain { return &Domain{wake: make(chan struct{}, 1)} }

// Enter begins a read section: what the caller can reach from now on stays as it is until Exit. Sections may nest and
// may block, but not for a barrier. It repeats itself once for each barrier that increments the epoch meanwhile.
func (d *Domain) Enter() Reader {
	for {
		if r, ok := d.join(d.epoch.Load()); ok {
			return r
		}
	}
}

// join counts a reader in under an epoch that it has read before, and says whether that holds.
//
// Between reading the epoch and counting itself a reader can lose the processor for as long as several barriers take.
// The counter of its old epoch is then the one that the next barrier does not look at, and that barrier would run
// callbacks while the reader is inside. McKenney's SRCU lets each barrier flip twice and wait for both counters. Here
// the reader looks again: when the epoch is still the one it counted itself under, the barrier that increments it comes
// later in the one order of all atomic operations, and so sees the count. Otherwise the reader has seen nothing yet and
// starts over; its short visit to the wrong counter can only delay a barrier. That keeps one flip per barrier, which is
// what the seed describes.
func (d *Domain) join(epoch uint64) (Reader, bool) {
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
	// The barrier says that it sleeps before it looks at the counter for the last time, we count before we look
	// whether it sleeps: one of the two sees the other.
	if left == 0 && d.parked.Load() {
		select {
		case d.wake <- struct{}{}:
		default: // it has been woken
		}
	}
}

// Defer queues a callback for the next barrier. The caller has made unreachable what the callback reclaims, and then
// calls Barrier or TryBarrier. Callbacks run in the order of their queueing, one at a time; they must not call Barrier
// or TryBarrier of the same domain. A callback that panics does so in the barrier that runs it, and has run; those
// behind it are left to the next barrier, even if another thread has waited for them or delegated them.
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

// TryBarrier sees to it that the callbacks queued before will run, and waits only if it must do that itself: it
// returns false at once when another barrier is waiting to increment the epoch, and is a Barrier otherwise. After
// false the callbacks may not have run yet. The caller must not be in a read section.
func (d *Domain) TryBarrier() bool {
	// Who is waiting has not yet taken over the queue, so it will find our callbacks there.
	if !d.waiting.CompareAndSwap(0, 1) {
		return false
	}
	d.barrier()
	return true
}

func (d *Domain) barrier() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	calls, previous := d.flip()
	d.drain(previous)
	d.run(calls)
}

// run runs callbacks. When one panics, those behind it are the first of the next barrier.
func (d *Domain) run(calls []func()) {
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

// flip ends the waiting of one barrier: it takes over the callbacks and increments the epoch. The order is the whole
// of delegation: who saw this barrier waiting queued before, and what was queued before this increment was unlinked
// before it, so that readers of the new epoch cannot reach it.
func (d *Domain) flip() (calls []func(), previous uint64) {
	d.waiting.Add(-1)
	d.queue.mutex.Lock()
	calls, d.queue.calls, d.spent = d.queue.calls, d.spent, nil
	d.queue.mutex.Unlock()
	return calls, d.epoch.Add(1) - 1
}

// drained says whether an epoch that is over has no reader any more.
func (d *Domain) drained(epoch uint64) bool { return d.readers[epoch&1].Load() == 0 }

// drain waits until an epoch that is over has no reader any more. Most read sections are short, so it tries a little
// before it sleeps.
func (d *Domain) drain(epoch uint64) {
	for i := range 64 {
		if d.drained(epoch) {
			return
		}
		if i >= 32 {
			runtime.Gosched()
		}
	}
	d.parked.Store(true)
	for !d.drained(epoch) {
		<-d.wake // may be left over from an earlier sleep: look again
	}
	d.parked.Store(false)
}
