// Package twostage manages units of a resource that many threads take and give back, and that grows by batches: first a
// thread makes sure that there is a unit for it (accounting), then it finds one (tracking); seed 001 §3.2. It is pure:
// no device, no clock, no I/O, no goroutine of its own. All methods may be called from any thread.
//
// # Definition
//
// A Pool has an Accounting, which counts the units that its Tracker holds or is about to, and a way to grow. Get takes a
// unit from the accounts and then looks for it in the tracker, or is told to grow, and then adds a batch but for the
// unit that it keeps.
//
// # Invariants
//
//   - The tracker holds at least as many units as the accounts, and as the threads that still look: a look succeeds in
//     the end.
//   - Units are conserved: each is with one caller or in the tracker.
//   - Get fails only if growing has failed in that call, and no unit was there afterwards: never because others have the units in their hands and are
//     about to add them (false resource starvation, §3.1).
//   - A thread waits only while another one grows. When that one fails, the thread that waited grows itself.
//
// Naive is what goes wrong without the first stage, for comparison.
package twostage

import (
	"fmt"
	"runtime"

	"codeberg.org/gpumemtop/gpumemtop/allocator/semaphore"
)

// Accounting counts units, for threads that take one at a time.
type Accounting interface {
	// Take takes a unit, or returns false: the caller grows, and calls Grown. It waits while units are on their way.
	Take() bool
	// TryTake takes a unit if there is one that is promised to nobody. It does not wait, and nobody grows.
	TryTake() bool
	// Grown adds n units, those that a grower does not keep; 0 if it failed.
	Grown(n int)
	// Give adds a unit that a caller gives back.
	Give()
}

type bulk struct {
	sem   *semaphore.Bulk
	batch int
}

// NewBulk returns accounts without a unit, by a bulk semaphore: as many threads grow at a time as batches are needed. A
// batch, at least 1 unit, may turn out smaller or larger when it comes.
func NewBulk(batch int) Accounting {
	if batch < 1 {
		panic(fmt.Sprintf("twostage: a batch of %d units", batch))
	}
	return bulk{semaphore.NewBulk(0), batch}
}

func (b bulk) Take() bool    { return b.sem.Wait(1, b.batch) }
func (b bulk) TryTake() bool { return b.sem.TryWait(1) }
func (b bulk) Grown(n int)   { b.sem.Signal(n, b.batch-1) }
func (b bulk) Give()         { b.sem.Signal(1, 0) }

type counting struct{ sem *semaphore.Counting }

// NewCounting returns accounts without a unit, by a counting semaphore: one thread grows at a time.
func NewCounting() Accounting { return counting{semaphore.NewCounting(0)} }

func (c counting) Take() bool    { return c.sem.Wait(1) == 1 }
func (c counting) TryTake() bool { return c.sem.TryWait(1) }
func (c counting) Grown(n int)   { c.sem.Grown(n) }
func (c counting) Give()         { c.sem.Signal(1) }

// Tracker holds units.
type Tracker[T any] interface {
	// Put adds a unit.
	Put(unit T)
	// Take takes a unit. It may miss one that others are just moving, but not for ever.
	Take() (unit T, ok bool)
}

// Pool is a two-stage pool. Make one with New.
type Pool[T any] struct {
	accounts Accounting
	tracker  Tracker[T]
	grow     func() ([]T, error)
}

// New returns a pool without a unit. Nobody else may use the accounts and the tracker, which hold none. Grow is called
// by the threads that Get tells to, several at a time if the accounts allow it; it returns a batch of new units, or an
// error.
func New[T any](accounts Accounting, tracker Tracker[T], grow func() ([]T, error)) *Pool[T] {
	return &Pool[T]{accounts: accounts, tracker: tracker, grow: grow}
}

// Get returns a unit, which is the caller's until Put. It fails if this thread had to grow the pool and could not, and
// nobody has put a unit back by then.
func (p *Pool[T]) Get() (unit T, ok bool) {
	if !p.accounts.Take() {
		if unit, ok = p.add(); ok || !p.accounts.TryTake() {
			return unit, ok
		}
	}
	for {
		if unit, ok = p.tracker.Take(); ok {
			return unit, true
		}
		runtime.Gosched()
	}
}

// add grows the pool and keeps one unit. Others wait for the result, so it is reported even if grow panics.
func (p *Pool[T]) add() (unit T, ok bool) {
	more := 0
	defer func() { p.accounts.Grown(more) }()
	batch, err := p.grow()
	if err != nil || len(batch) == 0 {
		return unit, false
	}
	for _, u := range batch[1:] {
		p.tracker.Put(u)
	}
	more = len(batch) - 1
	return batch[0], true
}

// Put gives a unit back that Get returned.
func (p *Pool[T]) Put(unit T) {
	p.tracker.Put(unit)
	p.accounts.Give()
}
