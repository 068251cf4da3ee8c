package stats

import (
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// observer counts what happens in the heap of a model.
type observer struct{ *Model }

// objectNote is what the model keeps of an object, at its place in the heap.
type objectNote struct {
	row *row
	in  places

	kernels uint64 // that have used it, by their places
}

// blockNote is what the model keeps of a block, at its place in the heap.
type blockNote struct {
	row            *row // whose free list has it
	in             places
	class          int32 // of that list
	previous, next int32 // blocks there
}

// noteAt returns a place in a list, which grows as needed.
func noteAt[T any](list *[]T, place int32) *T {
	for int(place) >= len(*list) {
		var none T
		*list = append(*list, none)
	}
	return &(*list)[place]
}

// Allocated implements heap.Observer.
func (m observer) Allocated(hp *heap.Process, o *heap.Object, b *heap.Block) {
	p := m.processes[hp.Place]
	w := m.row(p, o.Tag)
	n := noteAt(&m.objects, o.Place)
	n.row, n.in = w, 0
	if o.CarriedOver {
		m.carryCreate(w)
	} else {
		m.countCreate(p, w, o)
	}
	if o.Owns {
		n.in = m.share(p, o)
		m.hold(w, int64(o.Granted), int64(o.Size))
	}
	m.countShared(p, o, false)
	if b != nil {
		held := noteAt(&m.blocks, b.Place)
		held.row, held.in = w, n.in
	}
	m.raise(p)
	if !o.CarriedOver {
		m.minute.most.raise(&m.ledger)
		for _, b := range p.books {
			b.history.pending.raise(&b.ledger)
		}
	}
	m.since.most.raise(&m.ledger)
	p.since.most.raise(&p.own().ledger)
}

// share returns the places of a new object, and counts it and its memory there.
func (m *Model) share(p *process, o *heap.Object) places {
	s := &m.shares
	at := places(bits.Len64(o.Granted))<<(8*bySize) | places(kindOf(o.Memory))<<(8*byKind) |
		places(s.classes.place(classKey(o)))<<(8*byClass) | places(s.threads.place(uint64(o.Thread)))<<(8*byThread) |
		places(m.deviceShare(p, o.Scope))<<(8*byDevice)
	s.divide(at)
	for _, i := range s.divided {
		x := s.in(i, at)
		if !o.CarriedOver {
			x.create(o.Outcome, m.window.slot)
		}
		x.hold(int64(o.Granted), int64(o.Size), 1, m.second)
	}
	return at
}

// countCreate adds a create to books and rows.
func (m *Model) countCreate(p *process, w *row, o *heap.Object) {
	for _, b := range p.books {
		b.ledger.create(o)
		countCreate(b.window.current(), &b.history.pending, o)
	}
	p.created(o)
	w.created(o, m.window.slot)
	if o.Outcome == wire.OutcomeMiss {
		m.misses.add(p, w, o)
	}
}

func countCreate(now *Rates, sample *Sample, o *heap.Object) {
	now.Creates++
	sample.Creates++
	switch {
	case o.Outcome == wire.OutcomeHit:
		now.Hits++
		sample.Hits++
		return
	case o.Outcome == wire.OutcomeMiss:
		now.Misses++
		sample.Misses++
		now.Reasons.add(int(reason(uint8(o.Reason))), 1)
		sample.Reasons.add(int(reason(uint8(o.Reason))), 1)
		if o.SubAllocation { // the driver created the slab
			return
		}
	case !o.Owns:
		return
	}
	now.DriverCreates++
	now.DriverNanos += uint64(o.Cost)
	sample.DriverNS += uint64(o.Cost)
}

// hold adds the memory of an object to its row, or takes it off.
func (m *Model) hold(w *row, granted, requested int64) {
	w.held(granted, requested, m.second)
	m.journal.note(w, granted)
}

// letGo takes the memory of an object off its shares and its row.
func (m *Model) letGo(o *heap.Object) {
	n := &m.objects[o.Place]
	for _, i := range m.shares.divided {
		m.shares.in(i, n.in).hold(int64(o.Granted), int64(o.Size), -1, m.second)
	}
	m.leaveKernels(n, int64(o.Granted), int64(o.Size))
	m.hold(n.row.final(), -int64(o.Granted), -int64(o.Size))
}

// release is what the model needs of a RELEASE when the heap reports what it did.
type release struct {
	hazard bool   // it was held back because the block could have been reused too early
	driver bool   // the driver releases the memory, if the object has any
	cost   uint32 // ns of that
	pool   uint32 // ns of a release into the pool
}

func releaseOf(v wire.ReleaseView) release {
	r := release{cost: v.Cost()}
	switch v.Outcome() {
	case wire.OutcomeCooling:
		r.hazard, r.pool = v.WouldRace(), v.Duration()
	case wire.OutcomeCached:
		r.pool = v.Duration()
	case wire.OutcomeRefused:
	default:
		r.driver = !v.SubAllocation()
	}
	return r
}

// Released implements heap.Observer.
func (m observer) Released(hp *heap.Process, o *heap.Object, how heap.How) {
	m.objects[o.Place].row.final().released()
	if how == heap.Released || how == heap.Unknown {
		m.countShared(m.processes[hp.Place], o, true)
	}
	if how != heap.Released || m.quiet {
		return
	}
	for _, b := range m.processes[hp.Place].books {
		b.window.current().Releases++
		b.ledger.counters.Releases++
		b.ledger.costs.own += uint64(m.release.pool)
		if m.release.hazard {
			b.ledger.counters.HazardsAvoided++
		}
	}
}

// Freed implements heap.Observer.
func (m observer) Freed(hp *heap.Process, o *heap.Object, how heap.How) {
	if !o.Owns {
		return
	}
	m.letGo(o)
	if how != heap.Released || m.quiet || !m.release.driver {
		return
	}
	for _, b := range m.processes[hp.Place].books {
		if o.Block != 0 {
			b.ledger.costs.releases.add(o.Granted, m.release.cost)
		}
		b.ledger.driverRelease(m.release.cost)
		b.spend(m.release.cost)
	}
}

// Pooled implements heap.Observer: a block goes into the free list of the call site that had it.
func (m observer) Pooled(hp *heap.Process, b *heap.Block) {
	p := m.processes[hp.Place]
	if b.State == heap.Slab {
		p.slabs.Add(b.Size)
	} else {
		m.list(b, m.blocks[b.Place].row.final())
		m.count(p, b, 1)
	}
	m.raise(p)
}

// Unpooled implements heap.Observer.
func (m observer) Unpooled(hp *heap.Process, b *heap.Block, _ heap.How) {
	p := m.processes[hp.Place]
	if b.State == heap.Slab {
		p.slabs.Remove(b.Size)
		return
	}
	m.unlist(b)
	m.count(p, b, -1)
}

// Cooled implements heap.Observer.
func (m observer) Cooled(hp *heap.Process, b *heap.Block) {
	p, n := m.processes[hp.Place], &m.blocks[b.Place]
	w, bytes := n.row.final(), int64(b.Size)
	m.classes.At(n.class).cooling--
	for f := range w.each {
		f.cooling -= bytes
		f.cached += bytes
		f.blocks++
	}
	for _, i := range m.shares.divided {
		s := m.shares.in(i, n.in)
		s.cooling -= bytes
	}
	m.count(p, b, 1)
	w.stale()
	m.raise(p)
}

// Gone implements heap.Observer: the bytes of a sub-allocation are free in its slab.
func (m observer) Gone(hp *heap.Process, b *heap.Block) {
	if b.SubAllocation {
		m.raise(m.processes[hp.Place])
	}
}

// count adds a free block to the shares and sizes, or takes it off.
func (m *Model) count(p *process, b *heap.Block, sign int64) {
	cools := b.State == heap.Cooling
	at := m.blocks[b.Place].in
	for _, i := range m.shares.divided {
		m.shares.in(i, at).count(cools, sign*int64(b.Size), sign)
	}
	switch {
	case cools:
	case sign > 0:
		p.sizes.Add(b.Size)
		p.cached.Add(b.Size, 1)
	default:
		p.sizes.Remove(b.Size)
		p.cached.Add(b.Size, -1)
	}
}

// raise notes new peaks.
func (m *Model) raise(p *process) {
	if m.quiet {
		return
	}
	for _, b := range p.books {
		b.ledger.raise(m.heap.Now())
	}
}

// carried is what records that were carried over have touched. Its peaks wait until the last of them: what they describe
// was there at once, and a free block comes as a create with its release.
type carried struct {
	processes []*process
	figures   []*figures
}

// carryOver begins to change a process without its peaks.
func (m *Model) carryOver(p *process) {
	if !m.quiet {
		m.journal.note(nil, 1)
	}
	m.quiet = true
	if !p.quiet {
		p.quiet = true
		m.carried.processes = append(m.carried.processes, p)
	}
}

// carryCreate adds an object that was there before to its row.
func (m *Model) carryCreate(w *row) {
	for f := range w.each {
		if !f.quiet {
			f.quiet = true
			m.carried.figures = append(m.carried.figures, f)
		}
		f.unseen = false
		f.live++
	}
}

// carriedAll ends a run of records that were carried over: peaks start from what is there now.
func (m *Model) carriedAll() {
	if !m.quiet {
		return
	}
	m.quiet = false
	m.journal.note(nil, 0)
	m.minute.most.raise(&m.ledger)
	for _, p := range m.carried.processes {
		p.quiet = false
		for _, b := range p.books {
			b.ledger.raise(m.heap.Now())
			b.history.pending.raise(&b.ledger)
		}
	}
	for _, f := range m.carried.figures {
		f.quiet = false
		f.raise()
	}
	m.carried.processes, m.carried.figures = m.carried.processes[:0], m.carried.figures[:0]
}
