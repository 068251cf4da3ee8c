package semaphore

import (
	"fmt"
	"sync/atomic"
)

// countingSemaphore is the baseline for Bulk: the counting semaphore for units that can grow of seed 001 §3.2. A thread
// that finds too few units grows; meanwhile other such threads wait.
//
// The seed keeps one number and writes -1 while a thread grows. A unit given back meanwhile would turn -1 into 0, and a
// second thread would grow without need. Here the growers are counted apart from the units.
type countingSemaphore struct {
	word atomic.Uint64 // units, and above them the threads that grow
	lot  lot
}

const (
	countedBits = 40
	maxCounted  = 1<<countedBits - 1
	maxGrowers  = 1<<(64-countedBits) - 1
)

// newCounting returns a semaphore with that many units, 0 to 2^40-1; otherwise it panics.
func newCounting(units int) *countingSemaphore {
	c := &countingSemaphore{}
	c.word.Store(packCounting(units, 0))
	c.lot.initCondition()
	return c
}

// Value returns the seed's S: the units that are there, or -1 when there are none and a thread grows.
func (c *countingSemaphore) Value() int {
	units, growers := unpackCounting(c.word.Load())
	if growers > 0 && units == 0 {
		return -1
	}
	return units
}

// Wait takes units for a caller that needs n, at least 1; otherwise it panics.
//
// It returns n: these units are the caller's. It returns less, perhaps 0: that many units are the caller's, which must
// grow to get the rest. With a new batch, the caller keeps the units that it lacks and calls Grown with the others.
// Without one, it calls Grown with the number that Wait returned. While a caller grows, others that find too few units
// wait.
func (c *countingSemaphore) Wait(n int) (got int) {
	mustBeAtLeast(n, 1)
	for {
		old := c.word.Load()
		units, growers := unpackCounting(old)
		switch {
		case units >= n:
			if c.word.CompareAndSwap(old, packCounting(units-n, growers)) {
				return n
			}
		case growers > 0:
			c.idle(n)
		case c.word.CompareAndSwap(old, packCounting(0, 1)):
			return units
		}
	}
}

func (c *countingSemaphore) idle(n int) {
	c.lot.waitWhile(n, func() bool {
		units, growers := unpackCounting(c.word.Load())
		return units < n && growers > 0
	})
}

// TryWait takes n units if they are there. It never waits.
func (c *countingSemaphore) TryWait(n int) bool {
	mustBeAtLeast(n, 0)
	for {
		old := c.word.Load()
		units, growers := unpackCounting(old)
		if units < n {
			return false
		}
		if c.word.CompareAndSwap(old, packCounting(units-n, growers)) {
			return true
		}
	}
}

// Signal gives n units back.
func (c *countingSemaphore) Signal(n int) {
	mustBeAtLeast(n, 0)
	c.change(n, 0)
	c.lot.wakeEnough(n)
}

// Grown adds n units and reports that the caller, which Wait asked to grow, has done so or failed. It panics if no
// thread grows.
func (c *countingSemaphore) Grown(n int) {
	mustBeAtLeast(n, 0)
	c.change(n, -1)
	c.lot.wakeAll()
}

func (c *countingSemaphore) change(units, growers int) {
	for {
		old := c.word.Load()
		u, g := unpackCounting(old)
		if c.word.CompareAndSwap(old, packCounting(u+units, g+growers)) {
			return
		}
	}
}

func packCounting(units, growers int) uint64 {
	if units < 0 || units > maxCounted || growers < 0 || growers > maxGrowers {
		panic(fmt.Sprintf("semaphore: cannot count %d units and %d growers", units, growers))
	}
	return uint64(units) | uint64(growers)<<countedBits
}

func unpackCounting(word uint64) (units, growers int) {
	return int(word & maxCounted), int(word >> countedBits)
}
