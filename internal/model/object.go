package model

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// object is one memory object of a process, from its create to the end of its memory.
type object struct {
	block    uint64 // number, 0 when it is not pooled
	granted  uint64
	size     uint64
	used     uint64 // time of the last command that used it, 0 when none did
	share    int32  // place of its class in shares.classes
	row      *row
	owns     bool // has memory of its own in the gauges
	released bool // the application holds no reference: only sub-objects keep it
}

// owns reports whether a create gives an object memory of its own: sub-buffers and images of buffers share their
// parent's, and external objects show memory that somebody else allocated.
func owns(e *wire.Event) bool {
	switch wire.Memory(e.Op) {
	case wire.MemorySubBuffer, wire.MemoryExternal:
		return pooled(e)
	case wire.MemoryImage:
		return pooled(e) || e.Link == 0
	default:
		return true
	}
}

// pooled reports whether a create was served by the pool, so that its link is a block.
func pooled(e *wire.Event) bool {
	return e.Outcome == wire.OutcomeHit || e.Outcome == wire.OutcomeMiss
}

// create handles a CREATE that succeeded.
func (m *Model) create(p *process, e *wire.Event) {
	own, w, was := owns(e), m.row(p, e.Tag), carried(e)
	if was {
		m.carryCreate(p, w)
	} else {
		m.countCreate(p, w, e, own)
	}
	if old := p.objects.get(e.Object); old >= 0 {
		if !was { // else more has become known of it
			m.unknown++
		}
		m.end(p, e.Object, old)
	}
	o := object{row: w, owns: own, size: e.Size, granted: e.Served()}
	if own {
		o.share = m.shares.class(e)
		if !was {
			m.shares.create(&o, e)
		}
	}
	if pooled(e) && e.Link != 0 {
		o.block = e.Link
		m.acquire(p, &o, e)
	}
	p.objects.put(e.Object, m.objects.take(o))
	m.hold(p, &o, 1)
	if !was {
		m.history.pending.raise(&m.ledger)
		p.history.pending.raise(&p.ledger)
	}
	m.since.most.raise(&m.ledger)
	p.since.most.raise(&p.ledger)
}

// fail handles a CREATE that failed.
func (m *Model) fail(p *process, e *wire.Event) {
	if carried(e) {
		return
	}
	for _, l := range m.ledgers(p) {
		l.failed(e)
	}
}

// countCreate adds a create to ledgers, rows, windows and histories.
func (m *Model) countCreate(p *process, w *row, e *wire.Event, own bool) {
	for _, l := range m.ledgers(p) {
		l.create(e, own)
	}
	w.created(e, m.window.slot)
	countCreate(p.window.current(), &p.history.pending, e, own)
	countCreate(m.window.current(), &m.history.pending, e, own)
}

func countCreate(now *Rates, sample *Sample, e *wire.Event, own bool) {
	now.Creates++
	sample.Creates++
	switch {
	case e.Outcome == wire.OutcomeHit:
		now.Hits++
		sample.Hits++
		return
	case e.Outcome == wire.OutcomeMiss:
		now.Misses++
		sample.Misses++
		if e.Flags&wire.FlagPart != 0 { // the driver create was the slab's
			return
		}
	case !own:
		return
	}
	now.DriverCreates++
	now.DriverNanos += uint64(e.Cost)
}

// hold adds an object's memory to the gauges, or takes it off.
func (m *Model) hold(p *process, o *object, sign int64) {
	if !o.owns {
		return
	}
	granted, requested := sign*int64(o.granted), sign*int64(o.size)
	for _, l := range m.ledgers(p) {
		l.hold(granted, requested, m.now)
	}
	for _, s := range m.shares.of(o.granted, o.share) {
		s.inUse += granted
	}
	o.row.final().held(granted, requested, m.second)
}

// release handles RELEASE. Its granted are the references that are left: the object's life ends at 0.
func (m *Model) release(p *process, e *wire.Event) {
	place := p.objects.get(e.Object)
	if place < 0 {
		m.unknown++
		return
	}
	if e.Granted > 0 {
		return
	}
	o := m.objects.at(place)
	if !o.released {
		o.released = true
		o.row.final().released()
		m.countRelease(p, e)
	}
	if e.Outcome == wire.OutcomePinned {
		return
	}
	if o.owns {
		m.letGo(p, o, e)
	}
	p.objects.remove(e.Object)
	m.objects.give(place)
}

// countRelease adds the end of a buffer to ledgers and windows.
func (m *Model) countRelease(p *process, e *wire.Event) {
	if carried(e) {
		for _, l := range m.ledgers(p) {
			l.live--
		}
		return
	}
	p.window.current().Releases++
	m.window.current().Releases++
	for _, l := range m.ledgers(p) {
		l.released(e)
	}
}

// letGo ends an object's hold on its memory, which goes where the outcome says. A block that is not known any more
// was evicted before this release arrived.
func (m *Model) letGo(p *process, o *object, e *wire.Event) {
	m.hold(p, o, -1)
	place := m.heldBy(p, o, e.Object)
	switch e.Outcome {
	case wire.OutcomeCached, wire.OutcomeCooling:
		if place >= 0 {
			m.pool(p, place, o.row.final(), e.Outcome == wire.OutcomeCooling, m.dated(e))
		}
	case wire.OutcomeRefused:
		if place >= 0 {
			m.blocks.at(place).state = refused
		}
	default:
		if place >= 0 {
			m.forget(p, place)
		}
		if e.Flags&wire.FlagPart != 0 || carried(e) {
			return
		}
		for _, l := range m.ledgers(p) {
			l.driverRelease(e)
		}
		m.spend(p, e)
	}
}

// end removes an object without a word from the target: its process ended, or its number was used again.
func (m *Model) end(p *process, number uint64, place int32) {
	o := m.objects.at(place)
	m.hold(p, o, -1)
	if !o.released {
		o.row.final().released()
		for _, l := range m.ledgers(p) {
			l.live--
		}
	}
	if o.owns {
		if place := m.heldBy(p, o, number); place >= 0 {
			m.forget(p, place)
		}
	}
	p.objects.remove(number)
	m.objects.give(place)
}

// use handles USE.
func (m *Model) use(p *process, e *wire.Event) {
	for _, l := range m.ledgers(p) {
		l.counters.Uses++
	}
	if e.Object == 0 {
		return
	}
	place := p.objects.get(e.Object)
	if place < 0 {
		m.unknown++
		return
	}
	m.objects.at(place).used = m.now
}
