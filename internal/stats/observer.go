package stats

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// observer gives the changes in the heap to the observers of a model. It calls them by their concrete types, as an interface call
// for each of them and each event would take long.
type observer struct{ *Model }

// ObjectAllocated implements heap.Observer.
func (m observer) ObjectAllocated(hp *heap.Process, o *heap.Object, b *heap.Block) {
	p := m.processes.processOfHeap(hp)
	s := m.sites.countCreated(p, o, b)
	m.totals.countCreated(p, o)
	p.shortage.noteCreated(o)
	m.misses.noteCreated(p, s, o)
	m.shares.countCreated(p, o, b)
	m.transfers.countCopiedByCreate(p, o)
	m.objects.countSharingObject(p, o, false)
	m.totals.raiseHeldPeaks(p, o)
}

// ObjectReleased implements heap.Observer.
func (m observer) ObjectReleased(hp *heap.Process, o *heap.Object, how heap.How) {
	p := m.processes.processOfHeap(hp)
	m.sites.countReleased(o)
	m.pairs.noteMemoryEnded(p, o, how)
	if how == heap.Released || how == heap.Unknown {
		m.objects.countSharingObject(p, o, true)
	}
	m.totals.countReleased(p, o, how)
	if e := m.totals.release.exposed; how == heap.Released && e != wire.ExposedNo && e != wire.ExposedCleared {
		m.sites.countExposed(o)
	}
}

// MemoryFreed implements heap.Observer.
func (m observer) MemoryFreed(hp *heap.Process, o *heap.Object, how heap.How) {
	m.countIfReleasedInFlight(m.processes.processOfHeap(hp), o, how)
	if !o.Owns {
		return
	}
	m.shares.removeObject(o)
	m.kernels.removeObject(o)
	m.sites.removeObject(o)
	m.totals.countFreed(m.processes.processOfHeap(hp), o, how)
}

// BlockPooled implements heap.Observer.
func (m observer) BlockPooled(hp *heap.Process, b *heap.Block) {
	p := m.processes.processOfHeap(hp)
	if b.State != heap.Slab {
		m.sites.addFreeBlock(b)
		m.shares.changePooledOfShares(b, 1)
	}
	p.free.addBlock(b)
	m.totals.raisePeaks(p)
	if b.State == heap.Slab {
		p.free.noteSlabRoom(b, m.heap.Now(), &m.clock)
	}
}

// BlockUnpooled implements heap.Observer.
func (m observer) BlockUnpooled(hp *heap.Process, b *heap.Block, _ heap.How) {
	if b.State != heap.Slab {
		m.sites.removeFreeBlock(b)
		m.shares.changePooledOfShares(b, -1)
	}
	m.processes.processOfHeap(hp).free.removeBlock(b)
}

// BlockCooled implements heap.Observer.
func (m observer) BlockCooled(hp *heap.Process, b *heap.Block) {
	p := m.processes.processOfHeap(hp)
	m.sites.noteBlockCooled(b)
	m.shares.noteBlockCooled(b)
	p.free.addBlock(b)
	m.totals.raisePeaks(p)
}

// BlockGone implements heap.Observer: the bytes of a sub-allocation are free in its slab.
func (m observer) BlockGone(hp *heap.Process, b *heap.Block) {
	if b.SubAllocation {
		p := m.processes.processOfHeap(hp)
		p.free.noteSlabRoom(b, m.heap.Now(), &m.clock)
		m.totals.raisePeaks(p)
	}
}

// ProcessLeaving implements heap.Observer: what the process is shown with stays.
func (m observer) ProcessLeaving(hp *heap.Process) {
	p := m.processes.processOfHeap(hp)
	m.findIdleBlocks(m.heap.Now())
	m.totals.copySharedAccount(p)
	m.totals.subtractProcess(p)
	p.kept.sites, p.kept.spread = m.sites.saveSiteFigures(p), p.free.freeSpread()
	p.free.saveSlabRow()
}

// ProcessLeft implements heap.Observer.
func (m observer) ProcessLeft(hp *heap.Process) {
	p := m.processes.processOfHeap(hp)
	m.machine.subtractProcess(&p.machine)
	m.spill.subtractProcess(&p.spill)
	m.sites.restoreSiteFigures(p, p.kept.sites)
	p.kept.sites = nil
	p.free.reset(m.processes.seed)
	p.kernels, p.placed = callsite.Kernels{}, placedKernels{}
	p.shown.DeviceMemory = m.processes.deviceMemoryOf(p)
	p.shown.Totals = p.ownAccount().makeTotals(p.kept.spread)
	p.ownAccount().workings = &m.totals.spent
	p.changed = true
}

// ProcessesFolded implements heap.Observer: the figures of processes that make room go into one row.
func (m observer) ProcessesFolded(list []*heap.Process) {
	folded := make([]*process, len(list))
	for i, hp := range list {
		p := m.processes.processOfHeap(hp)
		folded[i] = p
		m.spill.foldMoves(p)
		m.processes.foldProcess(p)
	}
	m.sites.dropProcessSites(folded)
	m.processes.dropFolded()
	m.objects.joinFoldedEntries()
	m.transfers.joinFlows()
}
