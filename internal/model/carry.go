package model

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// carried reports whether a record stands for what was there before a recording begins: it changes gauges and counts
// as nothing that happened.
func carried(e *wire.Event) bool {
	if e.Flags&wire.FlagCarried == 0 {
		return false
	}
	switch e.Kind {
	case wire.KindCreate, wire.KindRelease, wire.KindSlab:
		return true
	default: // the bit means nothing there
		return false
	}
}

// carrying is what carried records have touched. Its peaks wait: what is carried was there at once, and a free block
// comes as a create with its release.
type carrying struct {
	ledgers []*ledger
	samples []*Sample // pending, of the ledger at the same place
	rows    []*row
}

// carry begins to change a process's gauges without its peaks.
func (m *Model) carry(p *process) {
	m.carryIn(&m.ledger, &m.history.pending)
	m.carryIn(&p.ledger, &p.history.pending)
}

func (m *Model) carryIn(l *ledger, pending *Sample) {
	if !l.carrying {
		l.carrying = true
		m.carrying.ledgers = append(m.carrying.ledgers, l)
		m.carrying.samples = append(m.carrying.samples, pending)
	}
}

// carryRow does the same for a row.
func (m *Model) carryRow(w *row) {
	for _, w := range w.both() {
		if !w.carrying {
			w.carrying = true
			m.carrying.rows = append(m.carrying.rows, w)
		}
	}
}

// carriedAll ends a run of carried records: peaks start from what is there now.
func (m *Model) carriedAll() {
	if len(m.carrying.ledgers) == 0 {
		return
	}
	for i, l := range m.carrying.ledgers {
		l.carrying = false
		l.raise(m.now)
		m.carrying.samples[i].raise(l)
	}
	for _, w := range m.carrying.rows {
		w.carrying = false
		w.raise()
	}
	m.carrying = carrying{}
}

// carryCreate takes an object in that was there before.
func (m *Model) carryCreate(p *process, w *row) {
	m.carryRow(w)
	for _, l := range m.ledgers(p) {
		l.live++
	}
	for _, w := range w.both() {
		w.unseen = false
		w.live++
	}
}

// dated is when something came to be: a carried record says when that was.
func (m *Model) dated(e *wire.Event) uint64 {
	if carried(e) {
		return min(e.Time, m.now)
	}
	return m.now
}
