// Package labtest writes tapes for tests: a test reads as the program whose calls they hold.
package labtest

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// The context and flags of Create's buffers: the first context, for kernels that read and write.
const (
	Scope     = 1
	ReadWrite = 1
)

// usualStep is the time between two events, ns.
const usualStep = 1000

// Tape is a tape that a test writes call by call, and the source that plays it. Its methods that add an event return the record,
// for what they leave open, until the next one is added. One goroutine may use it at a time.
type Tape struct {
	records.Tape
	Process uint32 // of the events that follow
	Step    uint64 // ns from one event to the next; 0: 1000

	thread  uint32
	buffers uint64 // created by Buffer
}

// NewTape returns a tape with one process, a device of 1 GiB and a context on it.
func NewTape() *Tape {
	t := NewEmptyTape(1)
	t.AddDevice(1<<30, 1<<28, 128)
	t.AddContext(Scope)
	return t
}

// NewEmptyTape returns a tape without records.
func NewEmptyTape(process uint32) *Tape { return &Tape{Process: process} }

// AddEvent adds an event after the others, in time, too.
func (t *Tape) AddEvent(e wire.Event) *wire.Record {
	step := t.Step
	if step == 0 {
		step = usualStep
	}
	e.Time = step * uint64(len(t.Records)+1)
	t.Records = append(t.Records, wire.Record{Event: e, Process: t.Process, Thread: t.thread})
	return t.LastRecord()
}

// LastRecord returns the latest record.
func (t *Tape) LastRecord() *wire.Record { return &t.Records[len(t.Records)-1] }

// SetThread sets the thread of the events that follow; without it, thread 0.
func (t *Tape) SetThread(thread uint32) *Tape {
	t.thread = thread
	return t
}

// AddDevice adds the device: its memory, its largest buffer and the alignment of sub-buffers, in bytes.
func (t *Tape) AddDevice(memory, largest uint64, align uint32) *wire.Record {
	return t.AddEvent(wire.Event{Kind: wire.KindDevice, Object: 7, Granted: memory, Link: largest, Tag: align})
}

// AddContext makes a context on the device.
func (t *Tape) AddContext(number uint64) *wire.Record {
	return t.AddEvent(wire.Event{Kind: wire.KindContext, Op: uint8(wire.LifeCreate), Object: number, Link: 7})
}

// EndContext ends a context.
func (t *Tape) EndContext(context uint64) *wire.Record {
	return t.AddEvent(wire.Event{Kind: wire.KindContext, Op: uint8(wire.LifeEnd), Object: context})
}

// AddCreate asks for a buffer and gets a new block, which has the buffer's number.
func (t *Tape) AddCreate(object, size uint64) *wire.Record {
	return t.AddEvent(wire.Event{
		Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: object, Link: object, Size: size, Granted: size, Scope: Scope,
		Access: ReadWrite,
	})
}

// CreateBuffer asks for a buffer at a call site and returns its number, which counts up from 1.
func (t *Tape) CreateBuffer(size uint64, site uint32) uint64 {
	t.buffers++
	t.AddCreate(t.buffers, size).Tag = site
	return t.buffers
}

// AddServedCreate asks for a buffer of 4096 bytes and gets a block.
func (t *Tape) AddServedCreate(object, block uint64, outcome wire.Outcome, reason wire.Miss) *wire.Record {
	r := t.AddCreate(object, 4096)
	r.Link, r.Outcome, r.Reason = block, outcome, uint8(reason)
	return r
}

// AddRelease gives a buffer back, whose block has its number.
func (t *Tape) AddRelease(object uint64, outcome wire.Outcome) *wire.Record {
	return t.AddEvent(wire.Event{Kind: wire.KindRelease, Object: object, Link: object, Outcome: outcome})
}

// AddCooled adds that the last command that used a released block has completed.
func (t *Tape) AddCooled(block, bytes uint64) *wire.Record {
	return t.AddEvent(wire.Event{Kind: wire.KindCooled, Link: block, Granted: bytes})
}

// AddEvict gives a block back to the driver.
func (t *Tape) AddEvict(block, bytes uint64, reason wire.Evict) *wire.Record {
	return t.AddEvent(wire.Event{Kind: wire.KindEvict, Link: block, Granted: bytes, Reason: uint8(reason)})
}

// AddSync waits for commands.
func (t *Tape) AddSync(op wire.Sync) *wire.Record {
	return t.AddEvent(wire.Event{Kind: wire.KindSync, Op: uint8(op)})
}

// AddLimit adds a control message and its status.
func (t *Tape) AddLimit(text string, status int16) *wire.Record {
	r := t.AddEvent(wire.Event{Kind: wire.KindLimit, Status: status, Size: uint64(len(text))})
	r.Payload = []byte(text)
	return r
}

// AddOrder adds that the decision after link has a number.
func (t *Tape) AddOrder(op wire.Order, link, number uint64) *wire.Record {
	return t.AddEvent(wire.Event{Kind: wire.KindOrder, Op: uint8(op), Object: number, Link: link})
}

// AddLost adds that events were lost here.
func (t *Tape) AddLost(events uint64) *wire.Record {
	return t.AddEvent(wire.Event{Kind: wire.KindLost, Size: events})
}
