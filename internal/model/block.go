package model

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// state of a block.
const (
	inUse = iota
	cached
	cooling
	refused // let go by the application; its EVICT is on the way
)

// block is what the allocator holds: known from the create that made it to its eviction.
type block struct {
	number uint64
	size   uint64
	owner  uint64 // object that has it, or had it last
	freed  uint64 // time, when cached or cooling
	state  uint8
	cooled bool // its COOLED came before the RELEASE that made it cool

	row            *row // whose free list it is in, and where
	class          int32
	previous, next int32
}

func (b *block) free() bool { return b.state == cached || b.state == cooling }

// acquire gives a block to an object: out of the free list for a hit, or new. A block that another object still has
// means that its release is late: that object's memory is over now, and only its counters are left to come.
func (m *Model) acquire(p *process, number, object, size uint64) {
	place := p.blocks.get(number)
	if place < 0 {
		place = m.blocks.take(block{number: number})
		p.blocks.put(number, place)
	} else if b := m.blocks.at(place); b.free() {
		m.unpool(p, place)
	} else if b.state == inUse {
		m.disown(p, b)
	}
	b := m.blocks.at(place)
	b.owner, b.size, b.state, b.cooled = object, size, inUse, false
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

// pool puts a block that the application let go into the free list of its tag.
func (m *Model) pool(p *process, place int32, w *row, cools bool) {
	b := m.blocks.at(place)
	b.freed, b.state = m.now, cached
	if cools && !b.cooled {
		b.state = cooling
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
		if b.state == cooling {
			l.cooling += bytes
			continue
		}
		l.cached += bytes
		l.blocks += sign
	}
	switch {
	case b.state == cooling:
	case sign > 0:
		p.sizes.add(b.size)
	default:
		p.sizes.remove(b.size)
	}
}

// forget ends a block.
func (m *Model) forget(p *process, place int32) {
	if m.blocks.at(place).free() {
		m.unpool(p, place)
	}
	p.blocks.remove(m.blocks.at(place).number)
	m.blocks.give(place)
}

// cool handles COOLED.
func (m *Model) cool(p *process, e *wire.Event) {
	place := p.blocks.get(e.Link)
	if place < 0 {
		m.unknown++
		return
	}
	b := m.blocks.at(place)
	switch b.state {
	case inUse:
		b.cooled = true
	case cooling:
		c, w := m.classes.at(b.class), b.row.final()
		b.weigh(w, c, -1)
		m.count(p, b, -1)
		b.state = cached
		b.weigh(w, c, 1)
		m.count(p, b, 1)
		w.stale()
	}
}

// evict handles EVICT.
func (m *Model) evict(p *process, e *wire.Event) {
	for _, l := range m.ledgers(p) {
		l.evicted(e)
	}
	m.spend(p, e)
	place := p.blocks.get(e.Link)
	if place < 0 {
		m.unknown++
		return
	}
	m.forget(p, place)
}
