package wire

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// RegionSize is the length in bytes of a target's shared memory.
const RegionSize = ringsOffset + rings*sizeofRing

// Rings is the number of rings in a region.
const Rings = rings

// ErrVersion says that the target speaks another version of this protocol.
var ErrVersion = errors.New("the target's shim speaks another version")

// Region is the consumer's side of a target's shared memory. The target may write anything there at any time, so
// everything is copied before it is looked at. One goroutine uses a Region.
type Region struct {
	mem     []byte
	head    *rawRegion
	posted  uint32 // messages in all
	shift   uint64 // of the target's clock
	cursors [rings]*Cursor
}

// NewRegion checks the head of a mapped region.
func NewRegion(mem []byte) (*Region, error) {
	if len(mem) < RegionSize {
		return nil, fmt.Errorf("region has %d bytes, want %d", len(mem), RegionSize)
	}
	if uintptr(unsafe.Pointer(&mem[0]))%64 != 0 {
		return nil, errors.New("region is not aligned to a cache line")
	}
	head := (*rawRegion)(unsafe.Pointer(&mem[0]))
	if head.Magic != magic {
		return nil, errors.New("region has no magic number")
	}
	if head.Version != Version || head.Rings != rings || head.Ringevents != ringEvents {
		return nil, fmt.Errorf("%w: %d, want %d", ErrVersion, head.Version, Version)
	}
	return &Region{mem: mem, head: head}, nil
}

// UsedRingCount returns how many rings, from the first, have been written to or are about to be. The others have no memory yet: to look
// at them would make the kernel give them some.
func (r *Region) UsedRingCount() int { return int(min(atomic.LoadUint32(&r.head.Used), rings)) }

// Cursor returns the reader of one ring, 0 to Rings-1.
func (r *Region) Cursor(ring int) *Cursor {
	if r.cursors[ring] == nil {
		at := ringsOffset + ring*sizeofRing
		r.cursors[ring] = &Cursor{
			ring:   (*rawRing)(unsafe.Pointer(&r.mem[at])),
			events: (*[ringEvents]Event)(unsafe.Pointer(&r.mem[at+sizeofRing-ringEvents*SizeofEvent])),
			shift:  r.shift,
		}
	}
	return r.cursors[ring]
}

// shiftLeast is the least difference in ns between two clocks that is more than the time between their readings.
const shiftLeast = 1_000_000_000

// SetClockShift translates the times of all events to the reader's CLOCK_MONOTONIC, given both of its clocks at one moment in
// ns: in a time namespace (time_namespaces(7)) the target's is another one. Call it before Cursor.
func (r *Region) SetClockShift(monotonic, realtime uint64) {
	if r.head.Realtime == 0 {
		return
	}
	shift := int64(r.head.Started-r.head.Realtime) - int64(monotonic-realtime)
	if -shiftLeast < shift && shift < shiftLeast {
		return
	}
	r.shift = uint64(shift)
}

// LostAndWaitCounts sums what the producers could not write, and how often they waited for room.
func (r *Region) LostAndWaitCounts() (lost, uses, waits uint64) {
	for i := range r.UsedRingCount() {
		ring := r.Cursor(i).ring
		lost += atomic.LoadUint64(&ring.Lost)
		uses += atomic.LoadUint64(&ring.Lostuses)
		waits += atomic.LoadUint64(&ring.Waits)
	}
	return lost, uses, waits
}

// SetUsesWanted says whether USE and SYNC events are wanted from now on, of a target whose configuration has UsesAsked.
func (r *Region) SetUsesWanted(wanted bool) { atomic.StoreUint32(&r.head.Uses, boolToWord(wanted)) }

// BytesTargetLacks returns how many bytes the target lacks, and the number of its ask, 0 before the first.
func (r *Region) BytesTargetLacks() (bytes uint64, ask uint32) {
	ask = atomic.LoadUint32(&r.head.Asks)
	return atomic.LoadUint64(&r.head.Lacks), ask
}

// AnswerMemoryAsk answers an ask: whether there may be more memory now.
func (r *Region) AnswerMemoryAsk(ask uint32, some bool) {
	atomic.StoreUint32(&r.head.Relieved, boolToWord(some))
	atomic.StoreUint32(&r.head.Answered, ask)
}

// Cursor reads one ring in order.
type Cursor struct {
	ring    *rawRing
	events  *[ringEvents]Event
	next    uint64 // position of the next event to read
	head    uint64 // last seen head
	thread  uint32
	shift   uint64 // of the producer's clock
	payload [PayloadMax]byte
	broken  bool
}

// Next copies the next event into rec, with Thread and Payload but not Process, if its time is at most until. The
// payload stays valid until the following call. THREAD events are consumed silently. A ring whose positions make
// no sense is never read again.
func (c *Cursor) Next(rec *Record, until uint64) bool {
	for {
		if c.next == c.head && !c.findNewEvents() {
			return false
		}
		rec.Event = c.events[c.next%ringEvents]
		if c.shift != 0 {
			rec.Event = rec.shiftedTo(c.shift)
		}
		if rec.Time > until {
			return false
		}
		rec.Payload = nil
		if n := rec.PayloadLen(); n > 0 && !c.readPayload(rec, n) {
			return false
		}
		c.next++
		if rec.Kind == KindThread {
			c.thread = uint32(rec.Object)
			continue
		}
		rec.Thread = c.thread
		return true
	}
}

// shiftedTo returns the event with times of another clock, which is behind by that many ns.
func (e *Event) shiftedTo(by uint64) Event {
	moved := *e
	moved.Time -= by
	if e.Kind == KindAwait && e.Size != 0 {
		moved.Size -= by // AwaitedTime
	}
	return moved
}

// findNewEvents looks for new events behind the last seen head.
func (c *Cursor) findNewEvents() bool {
	if c.broken {
		return false
	}
	head := atomic.LoadUint64(&c.ring.Head)
	if head-c.next > ringEvents {
		c.broken = true
		return false
	}
	c.head = head
	return c.next != head
}

// readPayload copies the n bytes behind the event at next, false when they are not there.
func (c *Cursor) readPayload(rec *Record, n int) bool {
	slots := uint64(n+SizeofEvent-1) / SizeofEvent
	if c.head-c.next < 1+slots {
		c.broken = true
		c.next = c.head
		return false
	}
	out := c.payload[:0]
	for at := c.next + 1; n > 0; at++ {
		slot := (*[SizeofEvent]byte)(unsafe.Pointer(&c.events[at%ringEvents]))
		out = append(out, slot[:min(n, SizeofEvent)]...)
		n -= SizeofEvent
	}
	rec.Payload = out
	c.next += slots
	return true
}

// Release gives the space of everything read so far back to the producer.
func (c *Cursor) Release() { atomic.StoreUint64(&c.ring.Tail, c.next) }

// IsBroken reports whether the producer left the ring in a state that cannot be read.
func (c *Cursor) IsBroken() bool { return c.broken }
