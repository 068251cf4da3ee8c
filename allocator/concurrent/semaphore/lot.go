package semaphore

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// How often a thread looks before it sleeps: first it spins, then it yields. Most growers are done within that time. A
// thread that waits longer should not cost a core.
const (
	spins  = 32
	yields = 8
)

// lot is where threads sleep that wait for a semaphore. The semaphore's word says whether a thread must wait. The lot
// makes sure that no thread sleeps through a change:
//
//	sleeper: parked++, read the word, sleep, all holding mu     waker: write the word, read parked, wake holding mu
//
// Either the sleeper reads what the waker wrote, or the waker reads what the sleeper wrote, and then waits for mu until
// the sleeper sleeps.
type lot struct {
	parked atomic.Int32
	mu     sync.Mutex
	wide   int // parked threads that need more than one unit
	cond   sync.Cond
}

func (l *lot) initCondition() { l.cond.L = &l.mu }

// waitWhile waits while mustWait holds, for a thread that needs n units: it spins first, then lets others run, then sleeps.
// It may return early.
func (l *lot) waitWhile(n int, mustWait func() bool) {
	for i := range spins + yields {
		if !mustWait() {
			return
		}
		if i >= spins {
			runtime.Gosched()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.countParked(n, 1)
	defer l.countParked(n, -1)
	for mustWait() {
		l.cond.Wait()
	}
}

// countParked adds by, 1 or -1, to the parked threads that need n units. The caller holds mu.
func (l *lot) countParked(n, by int) {
	l.parked.Add(int32(by))
	if n > 1 {
		l.wide += by
	}
}

// wakeEnough wakes threads that may take the n units that have just come. If each parked thread needs one unit, n threads are
// enough: a thread that finds its unit gone knows that another thread has taken it. If some threads need more, all must
// look, because n units may not be enough for the thread that wakes first.
func (l *lot) wakeEnough(n int) {
	parked := int(l.parked.Load())
	if parked == 0 || n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if needsWakeAll(n, int(l.parked.Load()), l.wide) {
		l.cond.Broadcast()
		return
	}
	for range n {
		l.cond.Signal()
	}
}

func needsWakeAll(n, parked, wide int) bool { return wide > 0 || n >= parked }

// wakeAll wakes all threads.
func (l *lot) wakeAll() {
	if l.parked.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cond.Broadcast()
}
