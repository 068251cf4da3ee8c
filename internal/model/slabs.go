package model

import (
	"math"
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// The names of rows without a call site of their own, here and in everything that is made from recordings.
const (
	SlabsName    = "(slabs)"    // what is free in slabs
	UntaggedName = "(untagged)" // requests without a tag
)

// slabsID is the number of the row for what is free in slabs; no tag has it.
const slabsID = math.MaxUint32

// slab handles SLAB: the driver made a block whose parts will serve requests. Nothing of it is in use yet.
func (m *Model) slab(p *process, e *wire.Event) {
	if e.Status != 0 {
		return
	}
	if !carried(e) {
		m.countSlab(p, e)
	}
	if place := p.blocks.get(e.Link); place >= 0 {
		m.unknown++
		m.vacate(p, place)
		m.forget(p, place)
	}
	place := m.blocks.take(block{number: e.Link, size: e.Granted, key: classKey(e), state: carved})
	p.blocks.put(e.Link, place)
	m.carve(p, m.blocks.at(place), 1)
}

// countSlab counts a slab that the driver created.
func (m *Model) countSlab(p *process, e *wire.Event) {
	for _, l := range m.ledgers(p) {
		l.allocated(e.Granted, e)
	}
	p.window.current().DriverCreates++
	m.window.current().DriverCreates++
	m.spend(p, e)
}

// carve adds a slab to the gauges, or takes it off.
func (m *Model) carve(p *process, b *block, sign int64) {
	for _, l := range m.ledgers(p) {
		l.slabs += sign
		l.slabBytes += sign * int64(b.size)
	}
	p.carved[b.key] += int(sign)
	if sign > 0 {
		p.slabs.add(b.size)
	} else {
		b.state = refused
		p.slabs.remove(b.size)
	}
	m.room(p, sign*int64(b.size))
}

// endParts ends the cooling parts of a class whose last slab went back to the driver: of some it is never known that
// they have cooled.
func (m *Model) endParts(p *process, key uint32) {
	var parts []int32
	p.blocks.all(func(_ uint64, place int32) {
		if b := m.blocks.at(place); b.part && b.state == cooling && b.key == key {
			parts = append(parts, place)
		}
	})
	for _, place := range parts {
		m.forget(p, place)
	}
}

// room changes what is free in slabs.
func (m *Model) room(p *process, bytes int64) {
	for _, l := range m.ledgers(p) {
		l.carve(bytes, m.now)
	}
}

// told is what the policy said last of the free ranges in its slabs.
type told struct {
	largest, ranges uint64
	squares         float64
}

// toldOf reads a GAUGE.
func toldOf(e *wire.Event) told {
	t := told{largest: e.Size, ranges: e.Object, squares: math.Float64frombits(e.Link)}
	if !(t.squares >= 0) {
		t.squares = 0
	}
	return t
}

// spread says how free memory is divided.
type spread struct {
	largest uint64 // block or range
	ranges  uint64 // in slabs
	squares float64
}

// spread of a process. What the policy said of its slabs may be a moment older than what is free now; of a policy that
// has said nothing yet all that is free counts as one range.
func (p *process) spread() spread {
	s := spread{largest: p.sizes.largest(), squares: p.squares.value()}
	free := gauge(p.ledger.room)
	if free == 0 || p.removed { // a process that was removed keeps what it shows
		return s
	}
	t := p.told
	if t.ranges == 0 || t.largest == 0 {
		t = told{largest: free, ranges: 1, squares: float64(free) * float64(free)}
	}
	t.largest = min(t.largest, free)
	s.largest = max(s.largest, t.largest)
	s.ranges = t.ranges
	s.squares += min(t.squares, float64(t.largest)*float64(free))
	return s
}

// spread of all processes: no free block serves another one.
func (m *Model) spread() spread {
	var all spread
	for _, p := range m.processes {
		s := p.spread()
		all.largest = max(all.largest, s.largest)
		all.ranges += s.ranges
		all.squares += s.squares
	}
	return all
}

func (s *spread) addTo(t *Totals) {
	t.LargestCached, t.Squares = s.largest, s.squares
	t.CachedBlocks += s.ranges
}

// squares is a sum of squares that things are taken off again, which floating point would not survive. Sizes that no
// memory has may take it around; then it is wrong, and rates made of it are bounded.
type squares struct{ high, low uint64 }

func (s *squares) add(size uint64) {
	high, low := bits.Mul64(size, size)
	var carry uint64
	s.low, carry = bits.Add64(s.low, low, 0)
	s.high, _ = bits.Add64(s.high, high, carry)
}

func (s *squares) remove(size uint64) {
	high, low := bits.Mul64(size, size)
	var borrow uint64
	s.low, borrow = bits.Sub64(s.low, low, 0)
	s.high, _ = bits.Sub64(s.high, high, borrow)
}

func (s *squares) value() float64 { return math.Ldexp(float64(s.high), 64) + float64(s.low) }

// slabTag returns the row of a process's slabs, false when it has none.
func (p *process) slabTag() (Tag, bool) {
	if p.left != nil {
		return *p.left, true
	}
	t := newSlabTag(&p.ledger, p.spread().ranges)
	p.slabs.list(&t.Free)
	sortClasses(t.Free)
	return t, len(t.Free) > 0 || t.Cached > 0
}

// slabTag returns the row of all slabs.
func (m *Model) slabTag() (Tag, bool) {
	t := newSlabTag(&m.ledger, m.spread().ranges)
	for _, p := range m.processes {
		p.slabs.list(&t.Free)
	}
	sortClasses(t.Free)
	t.Free = joinClasses(t.Free)
	return t, len(t.Free) > 0 || t.Cached > 0
}

func newSlabTag(l *ledger, ranges uint64) Tag {
	return Tag{
		ID: slabsID, Name: SlabsName, Slabs: true, Cached: gauge(l.room), CachedCount: ranges,
		Trend: []uint64{}, Free: []FreeClass{},
	}
}
