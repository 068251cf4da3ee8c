package semaphore

import (
	"fmt"
	"sync/atomic"
)

// Counting is the counting semaphore for units that can grow of seed 001 §3.2. Whoever finds too few units grows, and
// while anyone does, whoever else finds too few waits: that is what Bulk does better.
//
// The seed keeps one number and writes -1 while somebody grows. A unit given back meanwhile would make 0 of it, and a
// second thread would grow without need: here the growers are counted apart from the units. Make one with NewCounting;
// it must not be copied.
type Counting struct {
	word atomic.Uint64 // units, and above them the threads that grow
	lot  lot
}

const (
	countedBits = 40
	maxCounted  = 1<<countedBits - 1
	maxGrowers  = 1<<(64-countedBits) - 1
)

// NewCounting returns a semaphore with that many units, 0 to 2^40-1; otherwise it panics.
func NewCounting(units int) *Counting {
	c := &Counting{}
	c.word.Store(packCounting(units, 0))
	c.lot.init()
	return c
}

// Value returns the seed's S: the units that are there, or -1 when there are none and somebody grows.
func (c *Counting) Value() int {
	units, growers := unpackCounting(c.word.Load())
	if growers > 0 && units == 0 {
		return -1
	}
	return units
}

// Growing reports whether somebody grows.
func (c *Counting) Growing() bool {
	_, growers := unpackCounting(c.word.Load())
	return growers > 0
}

// Wait takes units for a caller that needs n, at least 1; otherwise it panics.
//
// It returns n: they are the caller's. It returns less, perhaps 0: that many are the caller's, and it must get the rest
// by growing. When it has got a batch it keeps what it lacks and calls Grown with the rest of the batch; when it cannot,
// it calls Grown with what Wait returned. While it grows, others that find fewer units than they need wait.
func (c *Counting) Wait(n int) (got int) {
	atLeast(n, 1)
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

func (c *Counting) idle(n int) {
	c.lot.idle(n, func() bool {
		units, growers := unpackCounting(c.word.Load())
		return units < n && growers > 0
	})
}

// TryWait takes n units if they are there. It never waits.
func (c *Counting) TryWait(n int) bool {
	atLeast(n, 0)
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
func (c *Counting) Signal(n int) {
	atLeast(n, 0)
	c.change(n, 0)
	c.lot.wake(n)
}

// Grow makes the caller a grower although it needs nothing, so that others wait for the units that it brings; it calls
// Grown.
func (c *Counting) Grow() { c.change(0, 1) }

// Grown adds n units and says that the caller, whom Wait told to grow, has done so or has failed. It panics if nobody
// grows.
func (c *Counting) Grown(n int) {
	atLeast(n, 0)
	c.change(n, -1)
	c.lot.wakeAll()
}

func (c *Counting) change(units, growers int) {
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
