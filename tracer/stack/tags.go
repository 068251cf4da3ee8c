package stack

import (
	"encoding/binary"
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// The same limits as the shim's.
const (
	tagsMax    = 1 << 15
	modulesMax = 1 << 10
)

const fullText = "too many call sites to distinguish"

// Tags numbers the distinct stacks, callers, size classes or threads of one process. It is for one goroutine at a time.
type Tags struct {
	mode    wire.TagMode
	walker  *Walker
	put     func(*wire.Record)
	numbers map[string]uint32 // by key: 8 bytes per address or value
	modules map[moduleID]uint64
	last    uint32 // number assigned last
	unknown uint32
	full    bool // reported
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

// NewTags returns tags of a mode. Those of stacks have at most depth frames, 1 to wire.StackMax. It passes to put the TAG
// and MODULE records of new tags and modules, the SITE of Unknown, and a DIAG once there are too many tags. Their Process is 0;
// their payload is valid until put returns.
func NewTags(mode wire.TagMode, depth int, walker *Walker, put func(*wire.Record)) *Tags {
	return &Tags{
		mode: mode, walker: walker, put: put,
		numbers: map[string]uint32{}, modules: map[moduleID]uint64{},
		frames: make([]uint64, 0, min(max(depth, 1), wire.StackMax)),
	}
}

// SetTimeFromSample sets the time and thread of the next records to those of a sample. Tag does so itself.
func (t *Tags) SetTimeFromSample(s *wire.Sample) { t.time, t.thread = s.Time, s.Tid }

// SiteTag returns the tag of a call without a size, 0 where sizes make tags.
func (t *Tags) SiteTag(s *wire.Sample) uint32 {
	if t.mode == wire.TagsSize {
		return 0
	}
	return t.Tag(s, 0)
}

// Tag returns the tag of a call that asked for size bytes. It is 0 in mode none, and when there are too many.
func (t *Tags) Tag(s *wire.Sample, size uint64) uint32 {
	t.SetTimeFromSample(s)
	frames, value := t.frames[:0], uint64(0)
	switch t.mode {
	case wire.TagsCaller:
		frames = append(frames, s.Ip)
	case wire.TagsStack:
		frames = t.walker.WalkStack(s, frames)
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
	number := t.nextNumber()
	if number > 0 {
		t.numbers[string(t.key)] = number
		t.writeDefinition(number, t.mode, frames, value)
	}
	return number
}

// UnknownTag returns the tag of objects from before we attached, and defines it at its first use.
func (t *Tags) UnknownTag() uint32 {
	if t.unknown == 0 {
		if t.unknown = t.nextNumber(); t.unknown > 0 {
			t.writeDefinition(t.unknown, wire.TagsNone, nil, 0)
			t.putRecord(wire.SiteFields{Tag: t.unknown}.Record(wire.AppendSiteFrame(nil, wire.SiteFrame{Function: wire.BeforeAttach})))
		}
	}
	return t.unknown
}

// sizeClass returns the smallest power of two that is at least size.
func sizeClass(size uint64) uint64 {
	if size <= 1 {
		return 1
	}
	return 1 << bits.Len64(size-1)
}

// nextNumber returns a free number. When there is none it returns 0, and reports it once.
func (t *Tags) nextNumber() uint32 {
	if t.last < tagsMax {
		t.last++
		return t.last
	}
	if !t.full {
		t.full = true
		t.putRecord(wire.DiagFields{Diag: wire.DiagTagsFull}.Record([]byte(fullText)))
	}
	return 0
}

// writeDefinition writes what a number stands for.
func (t *Tags) writeDefinition(number uint32, mode wire.TagMode, frames []uint64, value uint64) {
	t.payload = t.payload[:0]
	for _, address := range frames {
		t.payload = wire.AppendFrame(t.payload, t.relativeFrame(address))
	}
	t.putRecord(wire.TagFields{Mode: mode, Tag: number, Value: value}.Record(t.payload))
}

// relativeFrame returns an address relative to its module, and writes the MODULE record of a new one.
func (t *Tags) relativeFrame(address uint64) wire.Frame {
	path, base, ok := t.walker.ModuleOfAddress(address)
	if !ok {
		return wire.Frame{Offset: address}
	}
	id := moduleID{base, path}
	number, known := t.modules[id]
	if !known && len(t.modules) < modulesMax {
		number = uint64(len(t.modules)) + 1
		t.modules[id] = number
		t.putRecord(wire.ModuleFields{Module: number}.Record(wire.AppendModule(nil, path)))
	}
	if number == 0 {
		return wire.Frame{Offset: address}
	}
	return wire.Frame{Module: number, Offset: address - base}
}

func (t *Tags) putRecord(r wire.Record) {
	r.Time, r.Thread = t.time, t.thread
	t.put(&r)
}
