// Package life follows memory objects, and the blocks that serve them, from record to record of a run, and tells a
// Watcher what begins and what ends. It holds the rules for that once, for everything that is made from recordings; the
// rules are those of internal/model, which counts instead. It reads no clock.
package life

import (
	"cmp"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Watcher is told what happens. What it is given is valid, and up to date, during the call only: the same Object and
// Block serve another one later.
type Watcher interface {
	// Begin tells of an object that the application got.
	Begin(p *Process, o *Object)
	// End tells that an object's memory is the application's no more. It comes once for each Begin.
	End(p *Process, o *Object, how How)
	// Pool tells that a block is free in the pool, or that a slab was made.
	Pool(p *Process, b *Block)
	// Unpool ends what Pool began.
	Unpool(p *Process, b *Block, how How)
}

// BlockWatcher is a Watcher that is told of the end of every block, too: in the pool or in use.
type BlockWatcher interface {
	Watcher
	// Gone tells that a block is no more. Unpool and End came before, where they were due.
	Gone(p *Process, b *Block)
}

// How says why something ended.
type How uint8

// The ways for objects are Released, Unknown, Leaked and Cut; for blocks all others but these, and Unknown.
const (
	Released How = iota // by the application
	Unknown             // its end is not in the recording
	Leaked              // the records of its process end before it does
	Cut                 // it goes on after the last record that was asked for
	Hit                 // the block serves a request again
	Evicted             // the block went back to the driver
	Cooled              // a part of a slab that cooled down is free space in that slab
	Open                // the block is in the pool at the end
)

var hows = [...]string{"released", "unknown", "leaked", "cut", "hit", "evicted", "cooled", "end"}

// String returns the word that exports use.
func (h How) String() string { return hows[h] }

// State of a block.
type State uint8

// The states of a block.
const (
	InUse State = iota
	Cached
	Cooling
	Slab // its parts are blocks of their own
)

// Object is one memory object that the application holds, or whose memory outlives its references. Sizes are bytes,
// times CLOCK_MONOTONIC ns.
type Object struct {
	Number   uint64 // in its process, never used again
	Kind     wire.Memory
	Outcome  wire.Outcome // Driver, Hit or Miss
	Reason   uint8        // wire.Miss of a miss
	Flags    uint8        // of its CREATE
	Owns     bool         // has memory of its own, not a parent's or somebody else's
	Released bool         // no reference is left: only sub-objects keep its memory
	Shown    bool         // the watcher's own
	Scope    uint16       // context
	Access   uint16       // the lowest 16 bits of its cl_mem_flags
	Tag      uint32
	Thread   uint32 // that created it
	Duration uint32 // ns of the create
	Cost     uint32 // ns of that in the driver
	Block    uint64 // that serves it, 0 when it is not pooled
	Parent   uint64 // object whose memory it shares, 0 when none
	Size     uint64 // asked for
	Granted  uint64 // got
	Started  uint64 // when the create took effect
	Note     uint64 // the watcher's own
	Used     uint64 // when the last command that used it was enqueued; 0: none did, or uses were not recorded
	ended    bool   // End was told
}

// Carried reports whether the create stands for what was before the first record.
func (o *Object) Carried() bool { return o.Flags&wire.FlagCarried != 0 }

// Block is what the allocator holds.
type Block struct {
	Number uint64 // in its process
	State  State
	Part   bool   // of a slab: its bytes are missing there
	Cooled bool   // its COOLED came before the RELEASE that makes it cool
	Shown  bool   // the watcher's own
	Tag    uint32 // of the object that had it last
	Thread uint32
	Scope  uint16
	Access uint16
	Size   uint64
	Owner  uint64 // number of the object that has it, or had it last
	Serial uint64 // of this stay in the pool, in all processes from 1
	Freed  uint64 // when the stay began
}

func (b *Block) class() uint32 { return uint32(b.Scope)<<16 | uint32(b.Access) }

// Gauges are bytes; a late event may take one below 0 for a moment.
type Gauges struct {
	InUse, Requested int64
	Cached           int64 // in whole blocks
	Cooling          int64
	Room             int64 // free in slabs
}

// Free returns what is free in the pool, at least 0 from blocks and slabs each.
func (g *Gauges) Free() uint64 { return uint64(max(g.Cached, 0)) + uint64(max(g.Room, 0)) }

// Process is one process as far as the records have come.
type Process struct {
	Number uint32
	Gauges
	Hits, Misses uint64

	objects map[uint64]*Object
	blocks  map[uint64]*Block
	carved  map[uint32]int // slabs by class
}

// Object returns a live object, nil when there is none of that number.
func (p *Process) Object(number uint64) *Object { return p.objects[number] }

// Block returns a block, nil when there is none of that number.
func (p *Process) Block(number uint64) *Block { return p.blocks[number] }

// Objects returns the live objects by their numbers.
func (p *Process) Objects() []*Object {
	return slices.SortedFunc(maps.Values(p.objects), func(a, b *Object) int { return cmp.Compare(a.Number, b.Number) })
}

// Blocks returns the blocks by their numbers: those of live objects, too.
func (p *Process) Blocks() []*Block {
	return slices.SortedFunc(maps.Values(p.blocks), func(a, b *Block) int { return cmp.Compare(a.Number, b.Number) })
}

// HasMemory reports whether a create gives an object memory of its own: sub-buffers and images of buffers share their
// parent's, and external objects show what somebody else allocated.
func HasMemory(e *wire.Event) bool {
	switch wire.Memory(e.Op) {
	case wire.MemorySubBuffer, wire.MemoryExternal:
		return pooled(e)
	case wire.MemoryImage:
		return pooled(e) || e.Link == 0
	}
	return true
}

// pooled reports whether a create was served by the pool, so that its link is a block.
func pooled(e *wire.Event) bool {
	return e.Outcome == wire.OutcomeHit || e.Outcome == wire.OutcomeMiss
}
