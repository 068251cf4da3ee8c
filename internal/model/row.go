package model

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// row is one line of the tag table: a tag, or several that turned out to show the same name. Gauges are signed for
// the reason given at ledger.
type row struct {
	id     uint32
	name   string // empty until it is known
	stack  []string
	into   *row // set once this row was folded into another one; only that one counts from then on, see Snapshot
	unseen bool // only mentioned so far: not shown before something happens in it

	live, inUse, requested, cached, cooling, blocks int64

	creates, hits, misses uint64
	reasons               [wire.MissPolicy + 1]uint64
	peak                  uint64
	pace                  pace
	trend                 trend

	classes table       // block size to place in Model.classes: sizes that have free blocks
	free    []FreeClass // as last shown, nil when that is out of date
	points  []uint64    // the trend as last shown
	shown   uint64      // the second that points ends with
}

// class is a row's free blocks of one size, a list in the order in which they were freed.
type class struct {
	size           uint64
	first, last    int32 // places in Model.blocks, -1 at the ends
	count, cooling uint64
}

// final returns the row that counts for this one.
func (w *row) final() *row {
	for w.into != nil {
		if w.into.into != nil {
			w.into = w.into.into
		}
		w = w.into
	}
	return w
}

// row returns the row of a process's tag, which it makes on first mention.
func (m *Model) row(p *process, tag uint32) *row {
	if tag == 0 {
		return m.untagged
	}
	if w := p.tags[tag]; w != nil {
		return w.final()
	}
	w := m.newRow(tag)
	p.tags[tag] = w
	return w
}

func (m *Model) newRow(id uint32) *row {
	w := &row{id: id, unseen: true}
	w.classes.seed = m.seed
	w.trend.born, w.trend.second = m.second, m.second
	m.rows = append(m.rows, w)
	return w
}

// label gives a tag its name and stack; a row that already has the name takes the tag in. A tag keeps its first name.
func (m *Model) label(p *process, tag uint32, name string, stack []string) {
	w := m.row(p, tag)
	if w.name != "" || name == "" {
		return
	}
	known := m.named[name]
	if known == nil {
		w.name, w.stack = name, stack
		m.named[name] = w
		return
	}
	m.merge(w, known)
	p.tags[tag] = known
}

// merge folds a row into another one.
func (m *Model) merge(from, to *row) {
	for _, w := range [2]*row{from, to} {
		w.trend.advance(m.second, gauge(w.inUse))
	}
	to.trend.merge(&from.trend)
	to.pace.merge(&from.pace)
	to.live += from.live
	to.inUse += from.inUse
	to.requested += from.requested
	to.creates += from.creates
	to.hits += from.hits
	to.misses += from.misses
	for i, n := range from.reasons {
		to.reasons[i] += n
	}
	to.peak = max(to.peak, from.peak, gauge(to.inUse))
	to.unseen = to.unseen && from.unseen
	m.mergeFree(from, to)
	from.into = to
}

// mergeFree moves the free blocks of both rows anew into one of them, in the order in which they were freed.
func (m *Model) mergeFree(from, to *row) {
	var places []int32
	for _, w := range [2]*row{from, to} {
		w.classes.all(func(_ uint64, place int32) {
			for b := m.classes.at(place).first; b >= 0; b = m.blocks.at(b).next {
				places = append(places, b)
			}
		})
	}
	slices.SortFunc(places, func(a, b int32) int {
		x, y := m.blocks.at(a), m.blocks.at(b)
		return cmp.Or(cmp.Compare(x.freed, y.freed), cmp.Compare(x.number, y.number))
	})
	for _, b := range places {
		m.unlist(b)
		m.list(b, to)
	}
}

// list appends a free block to its row's free list.
func (m *Model) list(place int32, w *row) {
	b := m.blocks.at(place)
	at := w.classes.get(b.size)
	if at < 0 {
		at = m.classes.take(class{size: b.size, first: -1, last: -1})
		w.classes.put(b.size, at)
	}
	c := m.classes.at(at)
	b.row, b.class, b.previous, b.next = w, at, c.last, -1
	if c.last < 0 {
		c.first = place
	} else {
		m.blocks.at(c.last).next = place
	}
	c.last = place
	c.count++
	w.free = nil
	b.weigh(w, c, 1)
}

// unlist takes a block out of its row's free list.
func (m *Model) unlist(place int32) {
	b := m.blocks.at(place)
	w, c := b.row.final(), m.classes.at(b.class)
	if b.previous < 0 {
		c.first = b.next
	} else {
		m.blocks.at(b.previous).next = b.next
	}
	if b.next < 0 {
		c.last = b.previous
	} else {
		m.blocks.at(b.next).previous = b.previous
	}
	c.count--
	w.free = nil
	b.weigh(w, c, -1)
	if c.count == 0 {
		w.classes.remove(c.size)
		m.classes.give(b.class)
	}
}

// weigh adds a free block to its row's gauges, or takes it off.
func (b *block) weigh(w *row, c *class, sign int64) {
	if b.state == cooling {
		w.cooling += sign * int64(b.size)
		c.cooling += uint64(sign)
		return
	}
	w.cached += sign * int64(b.size)
	w.blocks += sign
}

// create counts a create that succeeded.
func (w *row) create(e *wire.Event, slot uint64) {
	w.unseen = false
	w.creates++
	w.live++
	w.pace.add(slot)
	switch e.Outcome {
	case wire.OutcomeHit:
		w.hits++
	case wire.OutcomeMiss:
		w.misses++
		w.reasons[reason(e.Reason)]++
	default: // never eligible for the pool
	}
}

// hold changes what the application holds of this tag.
func (w *row) hold(granted, requested int64, second uint64) {
	w.trend.advance(second, gauge(w.inUse))
	w.inUse += granted
	w.requested += requested
	w.peak = max(w.peak, gauge(w.inUse))
}
