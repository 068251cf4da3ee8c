package model

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// processHistoryMax is how many samples the history of one process has at most: there may be thousands.
const processHistoryMax = 150

// view returns the process as it is shown now. Its tags are built anew when an event came, or when their trends went
// on by a second.
func (m *Model) view(p *process) Process {
	if p.changed && !p.removed {
		p.shown.Totals = p.totals()
	}
	if len(m.processes) > 1 {
		if p.changed || p.shown.Tags == nil || !p.ended && p.second != m.second {
			p.rows = slices.DeleteFunc(p.rows, func(w *row) bool { return w.into != nil })
			p.shown.Tags, p.second = m.tags(p.rows), m.second
			if t, ok := p.slabTag(); ok {
				p.shown.Tags = append(p.shown.Tags, t)
			}
		}
		p.shown.Window, p.shown.History = p.window.last(), p.history.list()
	}
	p.changed = false
	return p.shown
}

// turnProcesses closes the slots that have ended, of processes that may still do something.
func (m *Model) turnProcesses(slot uint64) {
	for _, p := range m.processes {
		p.window.advance(slot)
		if !p.removed {
			p.history.advance(m.options.Started+p.born*slotNS, slot-p.born, p.ledger.sample(p.spread()))
		}
	}
}

// sample reads the gauges.
func (l *ledger) sample(s spread) Sample {
	t := Totals{Cached: l.free(), LargestCached: s.largest}
	return Sample{
		InUse: gauge(l.inUse), Cached: t.Cached, Cooling: gauge(l.cooling), Fragmentation: t.ExternalFragmentation(),
	}
}

// spend adds the time that an event spent in the driver to the windows.
func (m *Model) spend(p *process, e *wire.Event) {
	p.window.current().DriverNanos += uint64(e.Cost)
	m.window.current().DriverNanos += uint64(e.Cost)
}

// keepRows copies what a process has of each tag, as it is to be shown when its memory is off the common gauges.
func (m *Model) keepRows(p *process) []row {
	kept := make([]row, len(p.rows))
	for i, w := range p.rows {
		m.show(w)
		kept[i] = *w
	}
	return kept
}

func restoreRows(p *process, kept []row) {
	for i, w := range p.rows {
		k := &kept[i]
		w.live, w.inUse, w.requested = k.live, k.inUse, k.requested
		w.cached, w.cooling, w.blocks = k.cached, k.cooling, k.blocks
		w.trend, w.points, w.shown, w.free = k.trend, k.points, k.shown, k.free
	}
}
