package model

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// state of a block.
const (
	inUse = iota
	cached
	cooling
	refused // let go by the application; its EVICT is on the way
	carved  // a slab: its parts are blocks of their own
)

// block is what the allocator holds: known from the create that made it to its eviction.
type block struct {
	number uint64
	size   uint64
	owner  uint64 // object that has it, or had it last
	freed  uint64 // time, when cached or cooling
	state  uint8
	cooled bool // its COOLED came before the RELEASE that made it cool
	part   bool // of a slab: its bytes are missing there

	key   uint32 // of its class
	share int32  // place of that in shares.classes

	row            *row // whose free list it is in, and where
	class          int32
	previous, next int32
}

func (b *block) free() bool { return b.state == cached || b.state == cooling }

// acquire gives a block to an object: out of the free list for a hit, or new. A block that another object still has
// means that its release is late: that object's memory is over now, and only its counters are left to come.
func (m *Model) acquire(p *process, o *object, e *wire.Event) {
	place := p.blocks.get(o.block)
	if place < 0 {
		place = m.blocks.take(block{number: o.block})
		p.blocks.put(o.block, place)
	} else {
		m.vacate(p, place)
	}
	b := m.blocks.at(place)
	b.owner, b.size, b.key, b.share, b.state, b.cooled = e.Object, o.granted, classKey(e), o.share, inUse, false
	if e.Flags&wire.FlagPart != 0 {
		b.part = true
		m.room(p, -int64(b.size))
	}
}

// vacate ends what a block was so far.
func (m *Model) vacate(p *process, place int32) {
	if b := m.blocks.at(place); b.state == inUse {
		m.disown(p, b)
	}
	m.leave(p, place)
}

// leave takes a block off all gauges but those of an object that has it.
func (m *Model) leave(p *process, place int32) {
	b := m.blocks.at(place)
	switch {
	case b.free():
		m.unpool(p, place)
	case b.state == carved:
		m.carve(p, b, -1)
	}
	if b.part {
		b.part = false
		m.room(p, int64(b.size))
	}
}

// heldBy returns the place of the block that an object has, -1 when it is not known any more or somebody else's.
func (m *Model) heldBy(p *process, o *object, number uint64) int32 {
	if o.block == 0 {
		return -1
	}
	place := p.blocks.get(o.block)
	if place >= 0 {
		if b := m.blocks.at(place); b.state != inUse || b.owner != number {
			return -1
		}
	}
	return place
}

// disown ends the memory of the object that has a block.
func (m *Model) disown(p *process, b *block) {
	if place := p.objects.get(b.owner); place >= 0 {
		if o := m.objects.at(place); o.owns && o.block == b.number {
			m.hold(p, o, -1)
			o.owns = false
		}
	}
}

// pool puts a block that the application let go into the free list of its tag. A part that is not in use any more is
// no block: its bytes are free in its slab.
func (m *Model) pool(p *process, place int32, w *row, cools bool, since uint64) {
	b := m.blocks.at(place)
	b.freed, b.state = since, cached
	if cools && !b.cooled {
		b.state = cooling
	} else if b.part {
		b.state = inUse
		m.forget(p, place)
		return
	}
	m.list(place, w)
	m.count(p, b, 1)
}

// unpool takes a block out of the free list.
func (m *Model) unpool(p *process, place int32) {
	m.unlist(place)
	b := m.blocks.at(place)
	m.count(p, b, -1)
	b.state = inUse
	b.owner = 0
}

// count adds a free block to the gauges of its process and of all, or takes it off.
func (m *Model) count(p *process, b *block, sign int64) {
	bytes := sign * int64(b.size)
	for _, l := range m.ledgers(p) {
		l.count(b.state == cooling, bytes, sign, m.now)
	}
	for _, s := range m.shares.of(b.size, b.share) {
		s.count(b.state == cooling, bytes, sign)
	}
	switch {
	case b.state == cooling:
	case sign > 0:
		p.sizes.add(b.size)
		p.squares.add(b.size)
	default:
		p.sizes.remove(b.size)
		p.squares.remove(b.size)
	}
}

// forget ends a block.
func (m *Model) forget(p *process, place int32) {
	m.leave(p, place)
	p.blocks.remove(m.blocks.at(place).number)
	m.blocks.give(place)
}

// cool handles COOLED.
func (m *Model) cool(p *process, e *wire.Event) {
	place := p.blocks.get(e.Link)
	if place < 0 {
		if e.Flags&wire.FlagPart == 0 { // a part may have ended with its slab
			m.unknown++
		}
		return
	}
	b := m.blocks.at(place)
	switch b.state {
	case inUse:
		b.cooled = true
	case cooling:
		m.cooled(p, place)
	}
}

// cooled makes a cooling block free.
func (m *Model) cooled(p *process, place int32) {
	b := m.blocks.at(place)
	if b.part {
		m.forget(p, place)
		return
	}
	c, w := m.classes.at(b.class), b.row.final()
	b.weigh(w, c, -1)
	m.count(p, b, -1)
	b.state = cached
	b.weigh(w, c, 1)
	m.count(p, b, 1)
	w.stale()
}

// evict handles EVICT. A part that is given up goes back into its slab: the driver gets nothing.
func (m *Model) evict(p *process, e *wire.Event) {
	place := p.blocks.get(e.Link)
	if e.Flags&wire.FlagPart == 0 && (place < 0 || !m.blocks.at(place).part) {
		for _, l := range m.ledgers(p) {
			l.evicted(e)
		}
		m.spend(p, e)
	}
	if place < 0 {
		m.unknown++
		return
	}
	b := m.blocks.at(place)
	slab, key := b.state == carved, b.key
	m.forget(p, place)
	if slab && p.carved[key] == 0 {
		m.endParts(p, key)
	}
}
