package stats

import (
	"cmp"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap/table"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// whole is one line of the tag table: a tag, or several that turned out to show the same name, with the figures of all
// processes.
type whole struct {
	figures
	parts []*row

	id      uint32
	awaited bool // it was defined without a name
	folded  bool // into another one; only that one counts from then on, see Snapshot

	name   string // empty until it is known
	stack  []string
	module string
	born   uint64 // changes of the journal before awaited
}

// row is a part of a whole: what one process has of it, with the free lists.
type row struct {
	figures
	whole   *whole
	owner   *process    // nil once that was folded
	into    *row        // set once this row was folded into another one; only that one counts from then on
	classes table.Table // block size to place in Model.classes, sizes that have free blocks
}

// figures are what a whole or a part of it shows. Gauges are signed for the reason given at heap.Gauges.
type figures struct {
	unseen  bool // only mentioned so far: not shown before something happens in it
	quiet   bool // the peak waits, see Model.carryCreate
	touched bool // replayed has begun to go along

	live, inUse, requested, cached, cooling, blocks int64

	creates, hits uint64
	misses        reasonCounts
	peak          uint64
	replayed      int64 // inUse as journal.settle goes along
	pace          pace
	trend         trend

	points []uint64    // the trend as last shown
	shown  uint64      // the second that points ends with
	free   []FreeClass // as last shown, nil when that is out of date
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

// title is how a whole shows: by its name, or by its number before that is known.
func (w *whole) title() string {
	if w.name == "" {
		return fmt.Sprintf("tag %d", w.id)
	}
	return w.name
}

// both are the figures that something in a part counts in.
func (w *row) both() [2]*figures { return [2]*figures{&w.figures, &w.whole.figures} }

// stale says that the free lists have changed since they were shown.
func (w *row) stale() { w.free, w.whole.free = nil, nil }

// partOf returns the part that a process has of a whole, nil when it has none.
func (w *whole) partOf(p *process) *row {
	if len(p.rows) < len(w.parts) {
		return find(p.rows, func(part *row) bool { return part.whole == w && part.into == nil })
	}
	return find(w.parts, func(part *row) bool { return part.owner == p })
}

func find(parts []*row, is func(*row) bool) *row {
	if at := slices.IndexFunc(parts, is); at >= 0 {
		return parts[at]
	}
	return nil
}

// row returns a process's part of the row of a tag, which it makes on first mention. Tags beyond a bound share that of none.
func (m *Model) row(p *process, tag uint32) *row {
	if w := p.tags[tag]; w != nil {
		return w.final()
	}
	if tag != 0 && m.parts >= partsMax {
		m.exceeded = true
		return m.row(p, 0)
	}
	m.parts++
	all := m.untagged
	if tag != 0 {
		all = m.newWhole(tag)
	}
	w := &row{figures: m.newFigures(), whole: all, owner: p, classes: table.Table{Seed: m.seed}}
	all.parts = append(all.parts, w)
	p.rows = append(p.rows, w)
	p.tags[tag] = w
	return w
}

func (m *Model) newWhole(id uint32) *whole {
	w := &whole{id: id, figures: m.newFigures()}
	m.wholes = append(m.wholes, w)
	return w
}

func (m *Model) newFigures() figures {
	return figures{unseen: true, trend: trend{kept: !m.options.NoTrends, born: m.second, second: m.second}}
}

// label gives a tag its name and its call stack, as SITE has it; a row that already has the name takes the tag in. A tag
// keeps its first name.
func (m *Model) label(p *process, tag uint32, name string, site []byte) {
	w := m.row(p, tag)
	if w.whole.name != "" || name == "" {
		return
	}
	m.findings.renamed()
	defer m.journal.named()
	known := m.named[name]
	if known == nil {
		w.whole.name, w.whole.stack, w.whole.module = name, callsite.Stack(site), callsite.Module(site)
		m.named[name] = w.whole
		return
	}
	if known.unseen && !w.whole.unseen {
		known.stack, known.module = callsite.Stack(site), callsite.Module(site) // of a site that has memory, rather than one of other objects
	}
	m.journal.folded = true
	// A whole without a name has one part.
	m.merge(&w.whole.figures, &known.figures)
	w.whole.folded = true
	known.free = nil
	same := known.partOf(p)
	w.whole = known
	if same == nil {
		known.parts = append(known.parts, w)
		return
	}
	m.mergeFree(w, same)
	m.merge(&w.figures, &same.figures)
	w.into = same
	p.tags[tag] = same
}

// merge adds figures to others, except for the free lists. The journal knows the peak of their sum.
func (m *Model) merge(from, to *figures) {
	for _, f := range [2]*figures{from, to} {
		f.trend.advance(m.second, heap.Amount(f.inUse))
	}
	to.trend.merge(&from.trend)
	to.pace.merge(&from.pace)
	to.live += from.live
	to.inUse += from.inUse
	to.requested += from.requested
	to.cached += from.cached
	to.cooling += from.cooling
	to.blocks += from.blocks
	to.creates += from.creates
	to.hits += from.hits
	for i, n := range from.misses.list() {
		to.misses.add(uint8(i), n)
	}
	to.peak = max(to.peak, from.peak)
	if !m.quiet {
		to.raise()
	}
	to.points = nil
	to.unseen = to.unseen && from.unseen
}

// mergeFree moves the free blocks of two parts anew into one of them, in the order in which they were freed.
func (m *Model) mergeFree(from, to *row) {
	var places []int32
	for _, w := range [2]*row{from, to} {
		w.classes.All(func(_ uint64, place int32) {
			for b := m.classes.At(place).first; b >= 0; b = m.blocks[b].next {
				places = append(places, b)
			}
		})
	}
	slices.SortFunc(places, func(a, b int32) int {
		x, y := m.heap.BlockAt(a), m.heap.BlockAt(b)
		return cmp.Or(cmp.Compare(x.Freed, y.Freed), cmp.Compare(x.ID, y.ID))
	})
	for _, place := range places {
		b := m.heap.BlockAt(place)
		m.unlist(b)
		m.list(b, to)
	}
}

// list appends a free block to the free list of a row.
func (m *Model) list(b *heap.Block, w *row) {
	at := w.classes.Get(b.Size)
	if at < 0 {
		var c *class
		at, c = m.classes.Take()
		*c = class{size: b.Size, first: -1, last: -1}
		w.classes.Put(b.Size, at)
	}
	c, n := m.classes.At(at), &m.blocks[b.Place]
	n.row, n.class, n.previous, n.next = w, at, c.last, -1
	if c.last < 0 {
		c.first = b.Place
	} else {
		m.blocks[c.last].next = b.Place
	}
	c.last = b.Place
	c.count++
	w.stale()
	weigh(b, w, c, 1)
}

// unlist takes a block out of its free list.
func (m *Model) unlist(b *heap.Block) {
	n := &m.blocks[b.Place]
	w, c := n.row.final(), m.classes.At(n.class)
	if n.previous < 0 {
		c.first = n.next
	} else {
		m.blocks[n.previous].next = n.next
	}
	if n.next < 0 {
		c.last = n.previous
	} else {
		m.blocks[n.next].previous = n.previous
	}
	c.count--
	w.stale()
	weigh(b, w, c, -1)
	if c.count == 0 {
		w.classes.Remove(c.size)
		m.classes.Give(n.class)
	}
}

// weigh adds a free block to the gauges of its row, or takes it off.
func weigh(b *heap.Block, w *row, c *class, sign int64) {
	bytes := sign * int64(b.Size)
	if b.State == heap.Cooling {
		w.cooling += bytes
		w.whole.cooling += bytes
		c.cooling += uint64(sign)
		return
	}
	for _, f := range w.both() {
		f.cached += bytes
		f.blocks += sign
	}
}

// created counts a create that succeeded.
func (w *row) created(o *heap.Object, slot uint64) {
	w.create(o, slot)
	w.whole.create(o, slot)
}

// released counts the end of a buffer.
func (w *row) released() {
	w.live--
	w.whole.live--
}

// held changes what the application holds of this tag.
func (w *row) held(granted, requested int64, second uint64) {
	w.hold(granted, requested, second)
	w.whole.hold(granted, requested, second)
}

func (f *figures) create(o *heap.Object, slot uint64) {
	f.unseen = false
	f.creates++
	f.live++
	f.pace.add(slot)
	switch o.Outcome {
	case wire.OutcomeHit:
		f.hits++
	case wire.OutcomeMiss:
		f.misses.add(reason(uint8(o.Reason)), 1)
	default: // never eligible for the pool
	}
}

func (f *figures) hold(granted, requested int64, second uint64) {
	f.trend.advance(second, heap.Amount(f.inUse))
	f.inUse += granted
	f.requested += requested
	f.raise()
	f.trend.raise(heap.Amount(f.inUse))
}

// raise notes a new peak.
func (f *figures) raise() {
	if !f.quiet {
		f.peak = max(f.peak, heap.Amount(f.inUse))
	}
}
