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
	Reserved int // R: of those, promised to threads that wait
}

// Spare returns the expected availability, C + E - R: what a newcomer could still be promised. Below 0 some waiting
// thread must grow: that lasts from the failure of a grower until one that waits has seen it.
func (c Counts) Spare() int { return c.Units + c.Expected - c.Reserved }

// outcome is what one look at the counters means for a thread in Wait.
type outcome uint8

const (
	took     outcome = iota // the units are the thread's
	grows                   // the thread must grow
	reserves                // the thread now waits for units that are on their way
	stays                   // the thread has reserved, and still has to wait; nothing changed
)

// wait is one step of Wait: Algorithm 1, but that a thread with a reservation gives it up and decides anew in the
// same step. So no thread sees a reservation vanish for a moment and promises its unit to another.
func (c Counts) wait(n, batch int, reserved bool) (Counts, outcome) {
	switch {
	case reserved && c.Units >= n:
		c.Units -= n
		c.Reserved -= n
		return c, took
	case reserved && c.Spare() < 0:
		c.Reserved -= n
		c.Expected += batch - n
		return c, grows
	case reserved:
		return c, stays
	case c.Spare() < n:
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
	if c.Units < n || c.Spare() < n {
		return c, false
	}
	c.Units -= n
	return c, true
}

// signal is Algorithm 2: n units came, and batch that were expected are not expected any more.
func (c Counts) signal(n, batch int) Counts {
	c.Units += n
	c.Expected -= batch
	return c
}

// pack makes the word. A counter that does not fit would spill into its neighbour, so it panics.
func (c Counts) pack() uint64 {
	within("units", c.Units, MaxUnits)
	within("expected units", c.Expected, MaxExpected)
	within("reserved units", c.Reserved, MaxReserved)
	return uint64(c.Units) | uint64(c.Expected)<<unitBits | uint64(c.Reserved)<<(unitBits+expectedBits)
}

func unpack(word uint64) Counts {
	return Counts{
		Units:    int(word & MaxUnits),
		Expected: int(word >> unitBits & MaxExpected),
		Reserved: int(word >> (unitBits + expectedBits)),
	}
}

func within(what string, value, most int) {
	if value < 0 || value > most {
		panic(fmt.Sprintf("semaphore: %s: %d is outside 0 to %d", what, value, most))
	}
}
