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
}

// row is a part of a whole: what one process has of it, with the free lists.
type row struct {
	*figures // those of the whole as long as these are the same, see Model.split
	whole    *whole
	owner    *process    // nil once that was folded
	into     *row        // set once this row was folded into another one; only that one counts from then on
	classes  table.Table // block size to place in Model.classes, sizes that have free blocks
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
	free          []FreeClass // as last shown, nil when that is out of date
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

// shares reports whether a part has the figures of its whole: it is the only one.
func (w *row) shares() bool { return w.figures == &w.whole.figures }

// each yields the figures that something in a part counts in. Those of a whole and its only part, of which there may be
// 100,000, are kept and counted once.
func (w *row) each(yield func(*figures) bool) {
	if yield(&w.whole.figures) && !w.shares() {
		yield(w.figures)
	}
}

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
	w := &row{figures: &all.figures, whole: all, owner: p, classes: table.Table{Seed: m.seed}}
	if len(all.parts) > 0 || all.trend.born != m.second { // untagged is older than its first part
		m.split(all)
		own := m.newFigures()
		w.figures = &own
	}
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

// split gives a part that shares the figures of its whole a copy, before something happens in only one of the two.
func (m *Model) split(w *whole) {
	if len(w.parts) == 0 || !w.parts[0].shares() {
		return
	}
	own := w.figures
	own.trend.apart()
	own.misses.each = clone(own.misses.each)
	w.parts[0].figures = &own
	if own.quiet {
		m.carried.figures = append(m.carried.figures, &own)
	}
}

func clone[T any](of *T) *T {
	if of == nil {
		return nil
	}
	c := *of
	return &c
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
	m.fold(w, known)
	if w.into != nil {
		p.tags[tag] = w.into
	}
}

// fold folds the whole of a part, which has no name and so no other part, into another one.
func (m *Model) fold(w *row, to *whole) {
	m.journal.folded = true
	same := to.partOf(w.owner)
	once := same != nil && same.shares() && w.shares()
	if !once {
		m.split(to)
	}
	m.merge(&w.whole.figures, &to.figures)
	w.whole.folded, w.whole, to.free = true, to, nil
	if same == nil {
		to.parts = append(to.parts, w)
		return
	}
	m.mergeFree(w, same)
	if w.into = same; !once {
		m.merge(w.figures, same.figures)
	}
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
	cools := b.State == heap.Cooling
	if cools {
		c.cooling += uint64(sign)
	}
	for f := range w.each {
		if cools {
			f.cooling += bytes
			continue
		}
		f.cached += bytes
		f.blocks += sign
	}
}

// created counts a create that succeeded.
func (w *row) created(o *heap.Object, slot uint64) {
	for f := range w.each {
		f.create(o, slot)
	}
}

// released counts the end of a buffer.
func (w *row) released() {
	for f := range w.each {
		f.live--
	}
}

// held changes what the application holds of this tag.
func (w *row) held(granted, requested int64, second uint64) {
	for f := range w.each {
		f.hold(granted, requested, second)
	}
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
