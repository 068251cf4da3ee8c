package stack

import (
	"encoding/binary"
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// As many as the shim has, so that both say the same of a program with more.
const (
	tagsMax    = 1 << 15
	modulesMax = 1 << 10
)

const (
	// unknownSite is the SITE of what was there before anybody looked.
	unknownSite = "unknown before attach\t\t\t\n"
	fullText    = "more call sites than can be told apart"
)

// Tags gives the tags of one process: a distinct stack, caller, size class or thread gets a small number once. It is
// for one goroutine at a time.
type Tags struct {
	mode    wire.TagMode
	walker  *Walker
	put     func(*wire.Record)
	numbers map[string]uint32 // by what makes the tag, 8 bytes for each number of it
	modules map[moduleID]uint64
	last    uint32 // number given out last
	unknown uint32
	full    bool // told
	time    uint64
	thread  uint32
	frames  []uint64
	key     []byte
	payload []byte
}

type moduleID struct {
	base uint64
	path string
}

// NewTags returns tags of a mode; those of stacks have depth frames, 1 to wire.StackMax, at most. put takes the TAG and
// MODULE records when something is seen for the first time, the SITE of Unknown, and a DIAG when there are too many
// tags. Their Process is 0; their payload is valid until put returns.
func NewTags(mode wire.TagMode, depth int, walker *Walker, put func(*wire.Record)) *Tags {
	return &Tags{
		mode: mode, walker: walker, put: put,
		numbers: map[string]uint32{}, modules: map[moduleID]uint64{},
		frames: make([]uint64, 0, min(max(depth, 1), wire.StackMax)),
	}
}

// See says which sample is being dealt with: records have its time and its thread. Tag sees its sample itself.
func (t *Tags) See(s *wire.Sample) { t.time, t.thread = s.Time, s.Tid }

// Tag returns the number of the tag of a call that asked for size bytes: 0 in mode none, and when there are too many.
func (t *Tags) Tag(s *wire.Sample, size uint64) uint32 {
	t.See(s)
	frames, value := t.frames[:0], uint64(0)
	switch t.mode {
	case wire.TagsCaller:
		frames = append(frames, s.Ip)
	case wire.TagsStack:
		frames = t.walker.Walk(s, frames)
	case wire.TagsSize:
		value = sizeClass(size)
	case wire.TagsThread:
		value = uint64(s.Tid)
	default:
		return 0
	}
	t.key = t.key[:0]
	for _, address := range frames {
		t.key = binary.LittleEndian.AppendUint64(t.key, address)
	}
	if len(frames) == 0 {
		t.key = binary.LittleEndian.AppendUint64(t.key, value)
	}
	if number, ok := t.numbers[string(t.key)]; ok {
		return number
	}
	number := t.next()
	if number > 0 {
		t.numbers[string(t.key)] = number
		t.define(number, t.mode, frames, value)
	}
	return number
}

// Unknown returns the tag of what was created before anybody looked, which it defines when it is first asked for.
func (t *Tags) Unknown() uint32 {
	if t.unknown == 0 {
		if t.unknown = t.next(); t.unknown > 0 {
			t.define(t.unknown, wire.TagsNone, nil, 0)
			t.tell(wire.Event{Kind: wire.KindSite, Tag: t.unknown}, []byte(unknownSite))
		}
	}
	return t.unknown
}

// sizeClass is the power of two that holds size bytes.
func sizeClass(size uint64) uint64 {
	if size <= 1 {
		return 1
	}
	return 1 << bits.Len64(size-1)
}

// next returns a number that is free, 0 when there is none, which it says once.
func (t *Tags) next() uint32 {
	if t.last < tagsMax {
		t.last++
		return t.last
	}
	if !t.full {
		t.full = true
		t.tell(wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagTagsFull)}, []byte(fullText))
	}
	return 0
}

// define tells what a number stands for.
func (t *Tags) define(number uint32, mode wire.TagMode, frames []uint64, value uint64) {
	t.payload = t.payload[:0]
	for _, address := range frames {
		f := t.locate(address)
		t.payload = binary.LittleEndian.AppendUint64(t.payload, f.Module)
		t.payload = binary.LittleEndian.AppendUint64(t.payload, f.Offset)
	}
	t.tell(wire.Event{Kind: wire.KindTag, Op: uint8(mode), Tag: number, Link: value}, t.payload)
}

// locate returns an address as what it is in its module, which is told of the first time.
func (t *Tags) locate(address uint64) wire.Frame {
	path, base, ok := t.walker.Locate(address)
	if !ok {
		return wire.Frame{Offset: address}
	}
	id := moduleID{base, path}
	number, known := t.modules[id]
	if !known && len(t.modules) < modulesMax {
		number = uint64(len(t.modules)) + 1
		t.modules[id] = number
		t.tell(wire.Event{Kind: wire.KindModule, Object: number}, []byte(path[:min(len(path), wire.PayloadMax)]))
	}
	if number == 0 {
		return wire.Frame{Offset: address}
	}
	return wire.Frame{Module: number, Offset: address - base}
}

func (t *Tags) tell(e wire.Event, payload []byte) {
	e.Time, e.Size = t.time, uint64(len(payload))
	t.put(&wire.Record{Event: e, Thread: t.thread, Payload: payload})
}
