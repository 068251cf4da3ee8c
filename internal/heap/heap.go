// Package heap turns the records of a run into changes of memory: objects are allocated and released, blocks are pooled, cool,
// are reused and evicted, slabs come and go, processes end and leave memory. Counting, history, exports, extracts and analysis
// are Observers of these changes. The package reads no clock.
package heap

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap/table"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Observer sees each change. Its arguments are valid and up to date during the call only: the places of objects and
// blocks are used again. Embed Base and implement the methods that you need.
type Observer interface {
	// ObjectAllocated reports an object that the program got, and the block that serves it, nil when it is not pooled.
	ObjectAllocated(p *Process, o *Object, b *Block)
	// ObjectReleased reports that the program gave up its last reference (Released), or that it never will (all others). It
	// comes once for each Allocated.
	ObjectReleased(p *Process, o *Object, how How)
	// MemoryFreed reports that the memory of an object is no longer the program's. It comes once for each Allocated: after
	// Released when sub-objects kept the memory, before it when the block was reused while the release was on its way.
	MemoryFreed(p *Process, o *Object, how How)
	// BlockPooled reports a block that has become free in the pool, cached or cooling, or a new slab.
	BlockPooled(p *Process, b *Block)
	// BlockCooled reports a block in the pool that was cooling and is now cached.
	BlockCooled(p *Process, b *Block)
	// BlockUnpooled ends what Pooled began.
	BlockUnpooled(p *Process, b *Block, how How)
	// BlockGone reports the end of a block. Unpooled and Freed come before it, where they apply.
	BlockGone(p *Process, b *Block)
	// ProcessLeaving reports that all memory of a process that ended leaves the heap now, and Left that it has left. Between the two,
	// objects and blocks end as Leaked. The process keeps its gauges, see Process.
	ProcessLeaving(p *Process)
	ProcessLeft(p *Process)
	// ProcessesFolded reports processes that have left and make room for others, see Options.ProcessesMax. After the call the
	// places of the others move up.
	ProcessesFolded(list []*Process)
}

// Base is an Observer that ignores everything.
type Base struct{}

// ObjectAllocated implements Observer.
func (Base) ObjectAllocated(*Process, *Object, *Block) {}

// ObjectReleased implements Observer.
func (Base) ObjectReleased(*Process, *Object, How) {}

// MemoryFreed implements Observer.
func (Base) MemoryFreed(*Process, *Object, How) {}

// BlockPooled implements Observer.
func (Base) BlockPooled(*Process, *Block) {}

// BlockCooled implements Observer.
func (Base) BlockCooled(*Process, *Block) {}

// BlockUnpooled implements Observer.
func (Base) BlockUnpooled(*Process, *Block, How) {}

// BlockGone implements Observer.
func (Base) BlockGone(*Process, *Block) {}

// ProcessLeaving implements Observer.
func (Base) ProcessLeaving(*Process) {}

// ProcessLeft implements Observer.
func (Base) ProcessLeft(*Process) {}

// ProcessesFolded implements Observer.
func (Base) ProcessesFolded([]*Process) {}

// How says why something ended.
type How uint8

// Objects end as Released, Unknown, Leaked, Held or Cut; blocks in the pool as any of the others, or Unknown.
const (
	Released How = iota // by the program
	Unknown             // the recording lacks its end
	Leaked              // its process ended before it did
	Held                // as Leaked, but the process was aborted, see Exit
	Cut                 // it lives on after the last record that was asked for, or its process does
	Reused              // the block serves a request again
	Evicted             // the block went back to the driver
	Cooled              // a sub-allocation that cooled down is free space in its slab
	Open                // the block is in the pool at the end
)

var hows = [...]string{"released", "unknown", "leaked", "held at exit", "cut", "hit", "evicted", "cooled", "end"}

// String returns the word that exports use.
func (h How) String() string { return hows[h] }

// State of a block.
type State uint8

// The states of a block.
const (
	InUse State = iota
	Cached
	Cooling
	Refused // released, but the pool did not take it: its eviction follows
	Slab    // its sub-allocations are blocks of their own
)

// Object is a memory object that the program holds, or whose memory outlives its references. Sizes are bytes, times
// CLOCK_MONOTONIC ns.
type Object struct {
	ID       uint64 // in its process, never reused
	Block    uint64 // that serves it, 0 when it is not pooled
	Parent   uint64 // object whose memory it shares, 0 when none
	Size     uint64 // requested
	Granted  uint64
	Started  uint64 // when the create took effect
	Used     uint64 // when the last command that uses it or a part of it was enqueued; 0: none was, or uses were not recorded
	Queue    uint64 // of that command
	First    uint64 // when the first was; 0: as above
	Note     uint64 // for one observer
	Tag      uint32
	Thread   uint32 // that created it
	Duration uint32 // ns of the create
	Cost     uint32 // ns of these in the driver
	Place    int32  // among the live objects: an index for observers that keep more
	Scope    uint16 // context
	Access   uint16 // the lowest 16 bits of its cl_mem_flags
	Shape    int16  // of its class, see wire.Class

	Memory        wire.Memory
	Outcome       wire.Outcome // Driver, Hit or Miss
	Alternative   bool         // that of an experiment decided, not the present configuration
	Reason        wire.Miss
	Route         wire.Route
	NeedsBlock    bool  // no sub-allocation could have served it
	SubAllocation bool  // its block is a piece of a slab
	CarriedOver   bool  // it was there before the first record
	Owns          bool  // has memory of its own, not that of a parent or of another API
	Released      bool  // the program has no reference: only sub-objects keep its memory
	Retained      bool  // the program retained it
	Shown         bool  // for one observer
	freed         bool  // Freed was reported
	at            int32 // place of Block

	ended   uint64 // when the last of the commands that are known to have ended was known to have
	running int32  // commands that may not have ended
	maps    int32  // mappings of the host that are open
}

// PresentOutcome returns the outcome where it says something of the present configuration, else that of memory that no pool
// serves: see wire.CreateView.PresentOutcome.
func (o *Object) PresentOutcome() wire.Outcome {
	if o.Alternative {
		return wire.OutcomeDriver
	}
	return o.Outcome
}

// Block is a block of the allocator.
type Block struct {
	ID     uint64 // in its process
	Size   uint64
	Owner  uint64 // id of the object that has it, or had it last
	Serial uint64 // of this stay in the pool, in all processes from 1
	Freed  uint64 // when that began
	Tag    uint32 // of Owner
	Thread uint32
	Place  int32 // among the blocks: an index for observers that keep more
	Scope  uint16
	Access uint16
	Shape  int16
	Memory wire.Memory // what it serves

	State         State
	SubAllocation bool // a piece of a slab, which has its bytes less
	Cooled        bool // its COOLED came before the RELEASE that makes it cool
	Shown         bool // for one observer
	gone          bool
	process       uint32 // its Number
}

// classKey returns context and flags in one number: blocks of one class cannot serve another.
func (b *Block) classKey() uint32 { return uint32(b.Scope)<<16 | uint32(b.Access) }

// Gauges are the bytes that there are now. They are signed because late records may take one below 0 for a moment.
type Gauges struct {
	InUse, Requested int64
	Cached           int64 // in whole blocks
	Cooling          int64
	Room             int64 // free in slabs
}

// Population is how many of each there are now, signed for the same reason.
type Population struct {
	Live             int64 // objects that the program holds
	CachedBlocks     int64
	Slabs, SlabBytes int64
}

// FreeBytes returns the bytes that are free in the pool. Blocks and slabs count at least 0 each, because records of either may be
// missing or late.
func (g *Gauges) FreeBytes() uint64 { return NonNegative(g.Cached) + NonNegative(g.Room) }

// ReservedBytes returns the bytes that the driver has given out.
func (g *Gauges) ReservedBytes() int64 { return g.InUse + g.Cached + g.Cooling + g.Room }

// NonNegative returns a gauge as it is shown: at least 0.
func NonNegative(v int64) uint64 { return uint64(max(v, 0)) }

// Process is one process as far as the records have come. Once its memory has left the heap, the gauges remain as they
// were.
type Process struct {
	Number uint32
	Place  int // in the order of first mention, from 0, until others before it are folded: an index for observers that keep more
	Gauges
	Population
	Hits, Misses uint64
	Ended        bool // it began to exit
	Left         bool // its memory has left the heap
	Exit

	heap    *Heap
	largest uint64 // bytes of one allocation at most, on any of its devices; 0: unknown
	watched bool   // its end is recorded: imported recordings have no ends of processes
	gone    bool   // it no longer does anything
	ended   uint64 // when it began to exit
	objects table.Table
	blocks  table.Table
	slabs   map[uint32]int // by class
	work    work
}

// BlockAt returns the block at a place.
func (h *Heap) BlockAt(place int32) *Block { return h.blocks.At(place) }

// Object returns a live object by its id, nil when there is none.
func (p *Process) Object(id uint64) *Object {
	if place := p.objects.PlaceOf(id); place >= 0 {
		return p.heap.objects.At(place)
	}
	return nil
}

// Block returns a block by its id, nil when there is none.
func (p *Process) Block(id uint64) *Block {
	if place := p.blocks.PlaceOf(id); place >= 0 {
		return p.heap.blocks.At(place)
	}
	return nil
}

// Objects returns the live objects by their ids, until the next Apply.
func (p *Process) Objects() []*Object {
	list := make([]*Object, 0, p.objects.Len())
	p.objects.EachKey(func(_ uint64, place int32) { list = append(list, p.heap.objects.At(place)) })
	slices.SortFunc(list, func(a, b *Object) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Blocks returns the blocks by their ids, those of live objects too, until the next Apply.
func (p *Process) Blocks() []*Block {
	list := make([]*Block, 0, p.blocks.Len())
	p.blocks.EachKey(func(_ uint64, place int32) { list = append(list, p.heap.blocks.At(place)) })
	slices.SortFunc(list, func(a, b *Block) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// HasMemory reports whether a create gives an object memory of its own: sub-buffers and images of buffers share that of
// their parent, and external objects show memory of another API.
func HasMemory(c wire.CreateView) bool {
	switch c.Memory() {
	case wire.MemorySubBuffer, wire.MemoryExternal:
		return c.WasPooled()
	case wire.MemoryImage:
		return c.WasPooled() || c.Parent() == 0
	}
	return true
}
