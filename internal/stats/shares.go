package stats

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ClassesMax is the largest number of classes that are counted separately, and of threads and devices.
const ClassesMax = 64

// others is the name of the share that all further ones have together.
const others = "others"

// Share is the part of the counters and gauges that one size range, kind, class, thread, device or kernel has. Free memory in
// slabs is in no share.
type Share struct {
	Hits, Misses uint64
	Creates      uint64 // of objects with memory of their own
	Window       uint64 // of these, in the last second
	Live         uint64 // objects
	InUse        uint64
	Requested    uint64
	Held         uint64 // the most in use in the last full second and since
	PeakInUse    uint64
	Cached       uint64
	Cooling      uint64
	Blocks       uint64 // cached
}

// HitRate returns hits / (hits + misses).
func (s *Share) HitRate() float64 { return ratioOf(s.Hits, s.Hits+s.Misses) }

// Bucket is a range of granted sizes: from a power of two up to the next.
type Bucket struct {
	Smallest, Largest uint64 // bytes
	Share
}

// Kind is one kind of memory.
type Kind struct {
	Memory wire.Memory
	Share
}

// Class is a context with a kind of memory and its flags. Contexts of the same number in several processes are one class.
type Class struct {
	Name    string // "context 1, READ_WRITE", "context 1, image, READ_WRITE", or "others"
	Context uint16
	Flags   uint16 // the lowest 16 bits of cl_mem_flags
	Share
}

// Named is a thread that creates memory, a device that has it, or a kernel that has used it. Free memory counts for the thread that
// used it last.
type Named struct {
	Name string // "thread 4711", the device's name, or "others"
	Share
}

// share is a Share with signed gauges, for the reason given at heap.Gauges.
type share struct {
	hits, misses, creates          uint64
	pace                           pace // of creates
	inUse, cached, cooling, blocks int64
	live, requested                int64
	peak                           int64
	most                           [2]int64 // in use in second, and in the second before
	second                         uint64
}

// changeHeld adds the memory of an object, or takes it off.
func (s *share) changeHeld(granted, requested, sign int64, second uint64) {
	s.beginSecond(second)
	s.inUse += sign * granted
	s.requested += sign * requested
	s.live += sign
	s.most[0] = max(s.most[0], s.inUse)
	s.peak = max(s.peak, s.inUse)
}

// beginSecond begins a second.
func (s *share) beginSecond(second uint64) {
	switch second {
	case s.second:
		return
	case s.second + 1:
		s.most[1] = s.most[0]
	default:
		s.most[1] = s.inUse
	}
	s.most[0], s.second = s.inUse, second
}

// changeFreeBlocks adds free blocks, or takes them off.
func (s *share) changeFreeBlocks(cools bool, bytes, blocks int64) {
	if cools {
		s.cooling += bytes
		return
	}
	s.cached += bytes
	s.blocks += blocks
}

func (s *share) shareForSnapshot(now *clock) Share {
	s.beginSecond(now.second)
	return Share{
		Hits: s.hits, Misses: s.misses, Creates: s.creates, Window: s.pace.countInFullSlots(now.slot), Live: heap.NonNegative(s.live),
		InUse: heap.NonNegative(s.inUse), Requested: heap.NonNegative(s.requested), Held: heap.NonNegative(max(s.most[0], s.most[1])),
		PeakInUse: heap.NonNegative(s.peak), Cached: heap.NonNegative(s.cached), Cooling: heap.NonNegative(s.cooling),
		Blocks: heap.NonNegative(s.blocks),
	}
}

// countCreate counts the create of an object.
func (s *share) countCreate(outcome wire.Outcome, slot uint64) {
	s.creates++
	s.pace.countAt(slot)
	switch outcome {
	case wire.OutcomeHit:
		s.hits++
	case wire.OutcomeMiss:
		s.misses++
	default: // never eligible for the pool
	}
}
