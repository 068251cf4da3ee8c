package stats

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// observer gives the changes in the heap to the observers of a model. It calls them by their concrete types, as an interface call
// for each of them and each event would take long.
type observer struct{ *Model }

// Allocated implements heap.Observer.
func (m observer) Allocated(hp *heap.Process, o *heap.Object, b *heap.Block) {
	p := m.processes.stateOf(hp)
	s := m.sites.created(p, o, b)
	m.totals.created(p, o)
	p.shortage.created(o)
	m.misses.created(p, s, o)
	m.shares.created(p, o, b)
	m.transfers.created(p, o)
	m.objects.countShared(p, o, false)
	m.totals.held(p, o)
}

// Released implements heap.Observer.
func (m observer) Released(hp *heap.Process, o *heap.Object, how heap.How) {
	p := m.processes.stateOf(hp)
	m.sites.released(o)
	m.pairs.released(p, o, how)
	if how == heap.Released || how == heap.Unknown {
		m.objects.countShared(p, o, true)
	}
	m.totals.released(p, o, how)
	if e := m.totals.release.exposed; how == heap.Released && e != wire.ExposedNo && e != wire.ExposedCleared {
		m.sites.expose(o)
	}
}

// Freed implements heap.Observer.
func (m observer) Freed(hp *heap.Process, o *heap.Object, how heap.How) {
	m.freed(m.processes.stateOf(hp), o, how)
	if !o.Owns {
		return
	}
	m.shares.freed(o)
	m.kernels.freed(o)
	m.sites.freed(o)
	m.totals.freed(m.processes.stateOf(hp), o, how)
}

// Pooled implements heap.Observer.
func (m observer) Pooled(hp *heap.Process, b *heap.Block) {
	p := m.processes.stateOf(hp)
	if b.State != heap.Slab {
		m.sites.pooled(b)
		m.shares.pooled(b, 1)
	}
	p.free.add(b)
	m.totals.raise(p)
	if b.State == heap.Slab {
		p.free.grow(b, m.heap.Now(), &m.clock)
	}
}

// Unpooled implements heap.Observer.
func (m observer) Unpooled(hp *heap.Process, b *heap.Block, _ heap.How) {
	if b.State != heap.Slab {
		m.sites.unpooled(b)
		m.shares.pooled(b, -1)
	}
	m.processes.stateOf(hp).free.remove(b)
}

// Cooled implements heap.Observer.
func (m observer) Cooled(hp *heap.Process, b *heap.Block) {
	p := m.processes.stateOf(hp)
	m.sites.cooled(b)
	m.shares.cooled(b)
	p.free.add(b)
	m.totals.raise(p)
}

// Gone implements heap.Observer: the bytes of a sub-allocation are free in its slab.
func (m observer) Gone(hp *heap.Process, b *heap.Block) {
	if b.SubAllocation {
		p := m.processes.stateOf(hp)
		p.free.grow(b, m.heap.Now(), &m.clock)
		m.totals.raise(p)
	}
}

// Leaving implements heap.Observer: what the process is shown with stays.
func (m observer) Leaving(hp *heap.Process) {
	p := m.processes.stateOf(hp)
	m.settle(m.heap.Now())
	m.totals.separate(p)
	m.totals.leave(p)
	p.kept.sites, p.kept.spread = m.sites.saveFigures(p), p.free.spread()
	p.free.keepSlabs()
}

// Left implements heap.Observer.
func (m observer) Left(hp *heap.Process) {
	p := m.processes.stateOf(hp)
	m.machine.leave(&p.machine)
	m.spill.end(&p.spill)
	m.sites.restoreFigures(p, p.kept.sites)
	p.kept.sites = nil
	p.free.reset(m.processes.seed)
	p.kernels, p.placed = callsite.Kernels{}, placedKernels{}
	p.shown.DeviceMemory = m.processes.memoryOf(p)
	p.shown.Totals = p.own().totals(p.kept.spread)
	p.own().workings = &m.totals.spent
	p.changed = true
}

// Folded implements heap.Observer: the figures of processes that make room go into one row.
func (m observer) Folded(list []*heap.Process) {
	folded := make([]*process, len(list))
	for i, hp := range list {
		p := m.processes.stateOf(hp)
		folded[i] = p
		m.spill.fold(p)
		m.processes.fold(p)
	}
	m.sites.dropProcessSites(folded)
	m.processes.dropFolded()
	m.objects.fold()
	m.transfers.compact()
}
