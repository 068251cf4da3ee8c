package semaphore

import "fmt"

// Widths of the three counters in the word of a bulk semaphore, and the largest value that each can hold.
const (
	unitBits     = 24
	expectedBits = 21
	reservedBits = 64 - unitBits - expectedBits

	// MaxUnits is the most units that a semaphore holds at a time.
	MaxUnits = 1<<unitBits - 1
	// MaxExpected is the most units that growers may owe at a time.
	MaxExpected = 1<<expectedBits - 1
	// MaxReserved is the most units that waiting threads may ask for at a time.
	MaxReserved = 1<<reservedBits - 1
)

// Counts are the three counters of a bulk semaphore, read at one moment (seed 001 §3.3).
type Counts struct {
	Units    int // C: there now
	Expected int // E: promised by growers, on their way
	Reserved int // R: promised to threads that wait
}

// SpareUnits returns C + E - R, the units that can still be promised. It is below 0 from the failure of a grower until a
// waiting thread has seen that it must grow itself.
func (c Counts) SpareUnits() int { return c.Units + c.Expected - c.Reserved }

// outcome says what a thread in Wait does after one look at the counters.
type outcome uint8

const (
	took     outcome = iota // the units are the thread's
	grows                   // the thread must grow
	reserves                // the thread now waits for units that are on their way
	stays                   // the thread has reserved, and still has to wait; nothing changed
)

// wait is one step of Wait: the seed's Algorithm 1, except that a thread with a reservation takes it back and decides
// again in the same step. So no thread sees a reservation vanish for a moment and promises its unit to another thread.
func (c Counts) wait(n, batch int, reserved bool) (Counts, outcome) {
	switch {
	case reserved && c.Units >= n:
		c.Units -= n
		c.Reserved -= n
		return c, took
	case reserved && c.SpareUnits() < 0:
		c.Reserved -= n
		c.Expected += batch - n
		return c, grows
	case reserved:
		return c, stays
	case c.SpareUnits() < n:
		c.Expected += batch - n
		return c, grows
	case c.Units >= n:
		c.Units -= n
		return c, took
	}
	c.Reserved += n
	return c, reserves
}

// tryWait takes n units that are not promised to a waiting thread.
func (c Counts) tryWait(n int) (Counts, bool) {
	if c.Units < n || c.SpareUnits() < n {
		return c, false
	}
	c.Units -= n
	return c, true
}

// signal is the seed's Algorithm 2: n units came, and batch units are no longer expected.
func (c Counts) signal(n, batch int) Counts {
	c.Units += n
	c.Expected -= batch
	return c
}

// pack returns the word. It panics if a counter does not fit, because the counter would spill into its neighbour.
func (c Counts) pack() uint64 {
	mustBeWithin("units", c.Units, MaxUnits)
	mustBeWithin("expected units", c.Expected, MaxExpected)
	mustBeWithin("reserved units", c.Reserved, MaxReserved)
	return uint64(c.Units) | uint64(c.Expected)<<unitBits | uint64(c.Reserved)<<(unitBits+expectedBits)
}

func unpack(word uint64) Counts {
	return Counts{
		Units:    int(word & MaxUnits),
		Expected: int(word >> unitBits & MaxExpected),
		Reserved: int(word >> (unitBits + expectedBits)),
	}
}

func mustBeWithin(what string, value, most int) {
	if value < 0 || value > most {
		panic(fmt.Sprintf("semaphore: %s: %d is outside 0 to %d", what, value, most))
	}
}
