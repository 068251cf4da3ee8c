package recording

import (
	"encoding/binary"
	"errors"
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// A field of an event is written only when it differs from the same field of the last event of its kind in the
// frame; a mask says which are. Numbers are varints, signed differences zigzag.
const (
	hasDuration = 1 << iota
	hasCost
	hasOp
	hasOutcome
	hasReason
	hasFlags
	hasScope
	hasStatus
	hasTag
	hasObject
	hasSize
	hasGranted
	hasLink
	hasThread
	hasProcess
	hasBackwards // time goes back: the difference is negative
	hasAccess    // from version 2 on

	hasAttributes = hasOp | hasOutcome | hasReason | hasFlags | hasScope | hasStatus
)

var errEvent = errors.New("an event is cut off or out of range")

// codecState is the state that the coding of an event depends on. Writer and reader start each frame with an empty one.
type codecState struct {
	time   uint64
	thread uint32
	proc   uint32
	last   [wire.KindGauge + 1]wire.Event
	object uint64 // of the last CREATE: the next is usually one more

	newest wire.Kind // that the version of the recording knows
}

// newState returns the state at the start of a frame.
func newState(version int) codecState {
	if version < 2 {
		return codecState{newest: wire.KindLost}
	}
	return codecState{newest: wire.KindGauge}
}

// lastOfKind returns the last event of a kind. Kinds that the version does not know share one with KindNone: a target may
// write anything, and it must not cost the events around it.
func (s *codecState) lastOfKind(kind wire.Kind) *wire.Event {
	if kind > s.newest {
		kind = wire.KindNone
	}
	return &s.last[kind]
}

// appendRecord adds one record to b. A payload longer than wire.PayloadMax is cut.
func (s *codecState) appendRecord(b []byte, r *wire.Record) []byte {
	last := s.lastOfKind(r.Kind)
	mask, delta := s.changedFieldsOf(r, last)
	b = appendUvarint(b, uint64(r.Kind))
	b = appendUvarint(b, mask)
	b = appendUvarint(b, delta)
	if mask&hasProcess != 0 {
		b = binary.AppendUvarint(b, uint64(r.Process))
	}
	if mask&hasThread != 0 {
		b = binary.AppendUvarint(b, uint64(r.Thread))
	}
	if mask&hasDuration != 0 {
		b = binary.AppendUvarint(b, uint64(r.Duration))
	}
	if mask&hasCost != 0 {
		b = binary.AppendUvarint(b, uint64(r.Cost))
	}
	if mask&hasAttributes != 0 {
		b = appendPresentAttributes(b, mask, r)
	}
	if mask&hasTag != 0 {
		b = binary.AppendUvarint(b, uint64(r.Tag))
	}
	if mask&hasObject != 0 {
		b = binary.AppendVarint(b, int64(r.Object-s.object))
	}
	if mask&hasSize != 0 {
		b = binary.AppendUvarint(b, r.Size)
	}
	if mask&hasGranted != 0 {
		b = binary.AppendVarint(b, int64(r.Granted-r.Size))
	}
	if mask&hasLink != 0 {
		b = binary.AppendVarint(b, int64(r.Link-last.Link))
	}
	if mask&hasAccess != 0 {
		b = binary.AppendUvarint(b, uint64(r.Access))
	}
	if r.Kind.HasPayload() {
		payload := r.Payload[:min(len(r.Payload), wire.PayloadMax)]
		b = binary.AppendUvarint(b, uint64(len(payload)))
		b = append(b, payload...)
	}
	s.rememberRecord(r, last)
	return b
}

func appendPresentAttributes(b []byte, mask uint64, r *wire.Record) []byte {
	b = appendByteIfPresent(b, mask&hasOp, r.Op)
	b = appendByteIfPresent(b, mask&hasOutcome, uint8(r.Outcome))
	b = appendByteIfPresent(b, mask&hasReason, r.Reason)
	b = appendByteIfPresent(b, mask&hasFlags, r.Flags)
	if mask&hasScope != 0 {
		b = binary.AppendUvarint(b, uint64(r.Scope))
	}
	if mask&hasStatus != 0 {
		b = binary.AppendVarint(b, int64(r.Status))
	}
	return b
}

// appendUvarint is binary.AppendUvarint, for numbers that mostly have one byte.
func appendUvarint(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	return binary.AppendUvarint(b, v)
}

func appendByteIfPresent(b []byte, present uint64, v uint8) []byte {
	if present != 0 {
		return append(b, v)
	}
	return b
}

// changedFieldsOf marks the fields that differ from what the reader will expect.
func (s *codecState) changedFieldsOf(r *wire.Record, last *wire.Event) (changedFields, delta uint64) {
	delta = r.Time - s.time
	if int64(delta) < 0 {
		delta = s.time - r.Time
		changedFields |= hasBackwards
	}
	set := func(differs bool, bit uint64) {
		if differs {
			changedFields |= bit
		}
	}
	set(r.Process != s.proc, hasProcess)
	set(r.Thread != s.thread, hasThread)
	set(r.Duration != 0, hasDuration)
	set(r.Cost != 0, hasCost)
	set(r.Tag != last.Tag, hasTag)
	set(r.Object != mostLikelyObject(r.Kind, s.object), hasObject)
	set(r.Size != last.Size, hasSize)
	set(r.Granted != mostLikelyGranted(r.Kind, r.Size), hasGranted)
	set(r.Link != last.Link, hasLink)
	if !sameAttributes(&r.Event, last) {
		set(r.Op != last.Op, hasOp)
		set(r.Outcome != last.Outcome, hasOutcome)
		set(r.Reason != last.Reason, hasReason)
		set(r.Flags != last.Flags, hasFlags)
		set(r.Scope != last.Scope, hasScope)
		set(r.Status != last.Status, hasStatus)
		set(r.Access != last.Access, hasAccess)
	}
	return changedFields, delta
}

// sameAttributes reports whether two events have the same attributes. Those of one kind mostly do, and one branch for all of them
// takes less time than one for each.
func sameAttributes(a, b *wire.Event) bool {
	return a.Op == b.Op && a.Outcome == b.Outcome && a.Reason == b.Reason && a.Flags == b.Flags && a.Scope == b.Scope &&
		a.Status == b.Status && a.Access == b.Access
}

// mostLikelyObject returns the object that costs nothing to write: a create's number is usually one more than the last, and other
// events are often about the latest object.
func mostLikelyObject(kind wire.Kind, latest uint64) uint64 {
	if kind == wire.KindCreate {
		return latest + 1
	}
	return latest
}

func mostLikelyGranted(kind wire.Kind, size uint64) uint64 {
	if kind == wire.KindCreate {
		return size
	}
	return 0
}

func (s *codecState) rememberRecord(r *wire.Record, last *wire.Event) {
	s.time, s.thread, s.proc = r.Time, r.Thread, r.Process
	*last = r.Event
	if r.Kind == wire.KindCreate {
		s.object = r.Object
	}
}

// decoder reads values from the front of a frame. After a missing value it stays bad.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) readUvarint(most uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > most {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) readVarint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) readByte() uint8 {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

const (
	max16 = 1<<16 - 1
	max32 = 1<<32 - 1
	max64 = 1<<64 - 1
)

// decodeRecord reads one record off the front of b and returns the rest. The payload is part of b.
func (s *codecState) decodeRecord(b []byte, r *wire.Record) ([]byte, error) {
	d := decoder{b: b}
	kind := wire.Kind(d.readUvarint(max16))
	last := s.lastOfKind(kind)
	mask := d.readUvarint(hasAccess<<1 - 1)
	delta := d.readUvarint(max64)
	if mask&hasBackwards != 0 {
		delta = -delta
	}
	*r = wire.Record{Event: *last, Process: s.proc, Thread: s.thread}
	r.Kind, r.Time, r.Duration, r.Cost = kind, s.time+delta, 0, 0
	d.readCommonFields(mask, r)
	d.readObjectFields(mask, r, s.object, last.Link)
	if kind.HasPayload() {
		n := int(d.readUvarint(wire.PayloadMax))
		if n > len(d.b) {
			return nil, errEvent
		}
		r.Payload, d.b = d.b[:n:n], d.b[n:]
	}
	if d.bad {
		return nil, errEvent
	}
	s.rememberRecord(r, last)
	return d.b, nil
}

func (d *decoder) readCommonFields(mask uint64, r *wire.Record) {
	if mask&hasProcess != 0 {
		r.Process = uint32(d.readUvarint(max32))
	}
	if mask&hasThread != 0 {
		r.Thread = uint32(d.readUvarint(max32))
	}
	if mask&hasDuration != 0 {
		r.Duration = uint32(d.readUvarint(max32))
	}
	if mask&hasCost != 0 {
		r.Cost = uint32(d.readUvarint(max32))
	}
	if mask&hasOp != 0 {
		r.Op = d.readByte()
	}
	if mask&hasOutcome != 0 {
		r.Outcome = wire.Outcome(d.readByte())
	}
	if mask&hasReason != 0 {
		r.Reason = d.readByte()
	}
	if mask&hasFlags != 0 {
		r.Flags = d.readByte()
	}
	if mask&hasScope != 0 {
		r.Scope = uint16(d.readUvarint(max16))
	}
	if mask&hasStatus != 0 {
		r.Status = int16(max(math.MinInt16, min(d.readVarint(), math.MaxInt16))) // version 1 had 32 bits
	}
	if mask&hasTag != 0 {
		r.Tag = uint32(d.readUvarint(max32))
	}
}

func (d *decoder) readObjectFields(mask uint64, r *wire.Record, latest, link uint64) {
	r.Object = mostLikelyObject(r.Kind, latest)
	if mask&hasObject != 0 {
		r.Object = latest + uint64(d.readVarint())
	}
	if mask&hasSize != 0 {
		r.Size = d.readUvarint(max64)
	}
	r.Granted = mostLikelyGranted(r.Kind, r.Size)
	if mask&hasGranted != 0 {
		r.Granted = r.Size + uint64(d.readVarint())
	}
	if mask&hasLink != 0 {
		r.Link = link + uint64(d.readVarint())
	}
	if mask&hasAccess != 0 {
		r.Access = uint16(d.readUvarint(max16))
	}
}
