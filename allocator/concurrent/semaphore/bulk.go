// Package semaphore counts units of something that can grow: pages, blocks, bins. A thread takes units by counting
// first and looks for them afterwards, when it is certain that they are there (two-stage management, seed 001 §3).
// It is pure: no device, no clock, no I/O, no goroutine. All methods may be called from any thread.
//
// A bulk semaphore has three counters in one 64-bit word that changes only by compare-and-swap: C units are there, E
// are expected from threads that grow, R are reserved by threads that wait. C + E - R units are not promised yet.
//
//	Wait(n, batch)    C+E-R < n:  E += batch-n     the caller grows, and signals what it promised
//	                  C >= n:     C -= n           n units are the caller's
//	                  otherwise:  R += n           the caller waits for what others grow
//	Signal(n, batch)  C += n, E -= batch
//
// Invariants, whatever the interleaving:
//
//   - Units are conserved: C is the number of units signalled minus the number taken.
//   - No thread grows while units that are here or expected remain unpromised.
//   - At rest (no thread in a call, none that owes units) E and R are 0. C + E - R is below 0 only between the failure
//     of a grower and the next step of a thread that waits.
//   - A thread waits only for units that some grower owes. When the grower fails, a thread that waited grows itself.
//
// The algorithm differs from the seed's in three places. In the seed a thread waits while R < C+E. So the last thread
// that can get a unit sees R = C+E, and would take back its reservation and reserve again without end. Here threads
// wait while R <= C+E. A thread takes back its reservation and decides again in one step, not in two. And TryWait takes
// no unit that is promised to a waiting thread.
package semaphore

import (
	"fmt"
	"sync/atomic"
)

// Bulk is a bulk semaphore. Make one with NewBulk; it must not be copied.
type Bulk struct {
	word atomic.Uint64
	lot  lot
}

// NewBulk returns a semaphore with that many units, 0 to MaxUnits; otherwise it panics.
func NewBulk(units int) *Bulk {
	b := &Bulk{}
	b.word.Store(Counts{Units: units}.pack())
	b.lot.initCondition()
	return b
}

// Counts returns the three counters as they were at one moment.
func (b *Bulk) Counts() Counts { return unpack(b.word.Load()) }

// Wait takes n units, or makes the caller a grower; it waits while the units are on their way.
//
// True: n units are the caller's. False: the caller gets a batch of units from elsewhere, keeps n and calls
// Signal(batch-n, batch-n); when it cannot get one, it calls Signal(0, batch-n). It must do one or the other, because
// others wait for it.
//
// Wait panics if n is below 1 or batch below n, or if more than MaxExpected units are then owed, or more than
// MaxReserved are waited for.
func (b *Bulk) Wait(n, batch int) (taken bool) {
	if n < 1 || batch < n {
		panic(fmt.Sprintf("semaphore: cannot wait for %d units of a batch of %d", n, batch))
	}
	for reserved := false; ; {
		old := b.word.Load()
		next, what := unpack(old).wait(n, batch, reserved)
		if what == stays {
			b.waitForUnits(n)
			continue
		}
		if !b.word.CompareAndSwap(old, next.pack()) {
			continue
		}
		if what != reserves {
			return what == took
		}
		reserved = true
	}
}

// waitForUnits waits while a thread that has reserved n units must wait. It may return early.
func (b *Bulk) waitForUnits(n int) {
	b.lot.waitWhile(n, func() bool {
		_, what := unpack(b.word.Load()).wait(n, n, true)
		return what == stays
	})
}

// TryWait takes n units if they are there and not promised to threads that wait. It never waits.
func (b *Bulk) TryWait(n int) bool {
	mustBeAtLeast(n, 0)
	for {
		old := b.word.Load()
		next, ok := unpack(old).tryWait(n)
		if !ok {
			return false
		}
		if b.word.CompareAndSwap(old, next.pack()) {
			return true
		}
	}
}

// PromiseUnits promises n units to waiting threads, as a grower does in Wait. The caller signals them later, as
// Signal(n, n), or takes the promise back by Signal(0, n). It panics beyond MaxExpected.
func (b *Bulk) PromiseUnits(n int) {
	mustBeAtLeast(n, 0)
	b.signal(0, -n)
}

// Signal adds n units, and ends the expectation of batch units: they are among the n, or will not come. A thread that
// returns units that it did not promise calls Signal(n, 0). Signal panics if there are then more than MaxUnits units,
// or if fewer than batch are expected.
func (b *Bulk) Signal(n, batch int) {
	mustBeAtLeast(n, 0)
	mustBeAtLeast(batch, 0)
	b.signal(n, batch)
	if batch > n { // some waiting threads must grow
		b.lot.wakeAll()
		return
	}
	b.lot.wakeEnough(n)
}

func (b *Bulk) signal(n, batch int) {
	for {
		old := b.word.Load()
		if b.word.CompareAndSwap(old, unpack(old).signal(n, batch).pack()) {
			return
		}
	}
}

func mustBeAtLeast(n, least int) {
	if n < least {
		panic(fmt.Sprintf("semaphore: %d units", n))
	}
}
