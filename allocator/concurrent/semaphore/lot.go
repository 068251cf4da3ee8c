package semaphore

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// How long a thread waits awake. Most growers are done within a few steps of others; a thread that takes longer than
// that should not cost a core.
const (
	spins  = 32
	yields = 8
)

// lot is where threads sleep that wait for a semaphore. The semaphore's word says whether they must; the lot sees to
// it that none sleeps through a change:
//
//	sleeper: parked++, read the word, sleep, all holding mu     waker: write the word, read parked, wake holding mu
//
// Either the sleeper reads what the waker wrote, or the waker reads what the sleeper wrote, and then waits for mu until
// the sleeper sleeps.
type lot struct {
	parked atomic.Int32
	mu     sync.Mutex
	wide   int // of the parked, those that need more than one unit
	cond   sync.Cond
}

func (l *lot) init() { l.cond.L = &l.mu }

// idle waits while must holds, for a thread that needs n units: spinning first, then letting others run, then asleep.
// It may return early.
func (l *lot) idle(n int, must func() bool) {
	for i := range spins + yields {
		if !must() {
			return
		}
		if i >= spins {
			runtime.Gosched()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(n, 1)
	defer l.count(n, -1)
	for must() {
		l.cond.Wait()
	}
}

// count notes a thread that parks, or that parks no more. The caller holds mu.
func (l *lot) count(n, by int) {
	l.parked.Add(int32(by))
	if n > 1 {
		l.wide += by
	}
}

// wake lets those look again who may take the n units that have just come. Of threads that need one unit each, as many
// as there are units are enough: one that finds its unit gone sees that another thread has taken it. Threads of
// different needs must all look, because the first may not be one that n units are enough for.
func (l *lot) wake(n int) {
	parked := int(l.parked.Load())
	if parked == 0 || n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if wakesAll(n, int(l.parked.Load()), l.wide) {
		l.cond.Broadcast()
		return
	}
	for range n {
		l.cond.Signal()
	}
}

func wakesAll(n, parked, wide int) bool { return wide > 0 || n >= parked }

// wakeAll lets all look again.
func (l *lot) wakeAll() {
	if l.parked.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cond.Broadcast()
}
