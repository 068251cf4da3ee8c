package export

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// What became of a block.
const (
	blockInUse = iota
	blockCached
	blockCooling
	blockSlab // its parts are blocks of their own
)

// object is one memory object that the application holds, or whose memory outlives its references.
type object struct {
	tag           *tag
	block         uint64 // number, 0 when it is not pooled
	size, granted uint64
	started       uint64 // ns, absolute
	tid           uint64
	owns          bool // has memory of its own
	shown         bool // its lifetime was begun in the trace
}

// block is what the allocator holds.
type block struct {
	tag    *tag // of the object that had it last
	size   uint64
	owner  uint64 // object that has it
	serial uint64 // of its stay in the pool, an id in the trace
	tid    uint64
	freed  uint64 // ns, absolute
	state  uint8
	cooled bool // its COOLED came before the RELEASE that made it cool
	key    uint32
	part   bool // of a slab: its bytes are missing there
	shown  bool // its stay in the pool was begun in the trace
}

// gauges are bytes, signed because a late event may take one below 0 for a moment. room is free in slabs.
type gauges struct{ inUse, cached, cooling, room int64 }

// pool adds a free block or a slab to the gauges, or takes it off.
func (g *gauges) pool(b *block, sign int64) {
	switch b.state {
	case blockSlab:
		g.room += sign * int64(b.size)
	case blockCached:
		g.cached += sign * int64(b.size)
	case blockCooling:
		g.cooling += sign * int64(b.size)
	}
}

// rejoin gives the bytes of a part back to its slab.
func (g *gauges) rejoin(b *block) {
	if b.part {
		b.part = false
		g.room += int64(b.size)
	}
}

// held returns the block that an object has, nil when it is not known any more or somebody else's.
func (p *running) held(o *object, number uint64) *block {
	b := p.blocks[o.block]
	if !o.owns || o.block == 0 || b == nil || b.state != blockInUse || b.owner != number {
		return nil
	}
	return b
}

// hasMemory reports whether a create gives an object memory of its own: sub-buffers and images of buffers share their
// parent's, and external objects show what somebody else allocated.
func hasMemory(e *wire.Event) bool {
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

// grantedBytes returns the bytes that serve a create; a source that does not know them grants what was asked for.
func grantedBytes(e *wire.Event) uint64 {
	if e.Granted == 0 {
		return e.Size
	}
	return e.Granted
}
