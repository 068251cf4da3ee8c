package stats

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
)

// books keep what is counted of one process, or of all together. Those of the first process are those of all until there is
// a difference: what happens in the only process is counted once.
type books struct {
	ledger  ledger
	window  window
	history history
}

// openBooks gives a new process the books that its events go into.
func (m *Model) openBooks(p *process) {
	if !m.opened {
		m.opened, m.sharer = true, p
		p.books = []*books{&m.books}
		return
	}
	m.part(m.sharer)
	own := &books{}
	own.ledger.Gauges, own.ledger.Population, own.ledger.workings = &p.heap.Gauges, &p.heap.Population, &workings{}
	own.window.advance(m.window.slot)
	own.history.born, own.history.most = m.window.slot, processHistoryMax
	p.books = []*books{own, &m.books}
}

// part gives a process that shares the books of all a copy, before something happens in only one of the two.
func (m *Model) part(p *process) {
	if p == nil || p != m.sharer {
		return
	}
	m.sharer = nil
	own := m.books
	own.ledger.Gauges, own.ledger.Population = &p.heap.Gauges, &p.heap.Population
	own.ledger.workings = clone(own.ledger.workings)
	own.history.apart(processHistoryMax)
	p.books = []*books{&own, &m.books}
}

// own returns the books of a process.
func (p *process) own() *books { return p.books[0] }

// turn begins a slot.
func (b *books) turn(slot uint64) {
	b.window.advance(slot)
	b.ledger.held.turn(slot, heap.Amount(b.ledger.InUse))
}

// spend adds ns in the driver to the last second and the whole run.
func (b *books) spend(cost uint32) {
	b.window.current().DriverNanos += uint64(cost)
	b.history.pending.DriverNS += uint64(cost)
}

// apart makes a history independent of the one that it is a copy of, and bounds its samples.
func (h *history) apart(most uint64) {
	h.samples, h.most = slices.Clone(h.samples), most
	for uint64(len(h.samples)) > most {
		h.halve()
	}
}
