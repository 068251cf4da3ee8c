package stats

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// outline is observer for a model with Options.Outline.
type outline struct{ observer }

// ObjectAllocated implements heap.Observer.
func (m outline) ObjectAllocated(hp *heap.Process, o *heap.Object, _ *heap.Block) {
	m.objects.countShared(m.processes.processOfHeap(hp), o, false)
}

// ObjectReleased implements heap.Observer.
func (m outline) ObjectReleased(hp *heap.Process, o *heap.Object, how heap.How) {
	m.pairs.noteMemoryEnded(m.processes.processOfHeap(hp), o, how)
}

// MemoryFreed implements heap.Observer.
func (outline) MemoryFreed(*heap.Process, *heap.Object, heap.How) {}

// BlockPooled implements heap.Observer.
func (m outline) BlockPooled(hp *heap.Process, b *heap.Block) {
	m.processes.processOfHeap(hp).free.addBlock(b)
}

// BlockUnpooled implements heap.Observer.
func (m outline) BlockUnpooled(hp *heap.Process, b *heap.Block, _ heap.How) {
	m.processes.processOfHeap(hp).free.removeBlock(b)
}

// BlockCooled implements heap.Observer.
func (m outline) BlockCooled(hp *heap.Process, b *heap.Block) {
	m.processes.processOfHeap(hp).free.addBlock(b)
}

// BlockGone implements heap.Observer.
func (outline) BlockGone(*heap.Process, *heap.Block) {}

// outlineRecord is dispatchRecord for a model with Options.Outline.
func (m *Model) outlineRecord(p *process, r *wire.Record) {
	switch r.Kind {
	case wire.KindTransfer:
		m.transfers.sides.NoteTransfer(r)
		return
	case wire.KindSpill:
		return
	case wire.KindUse:
		m.pairs.handleUse(p, r)
	case wire.KindGauge:
		p.free.reported = rangesOfGauge(r.AsGauge())
	case wire.KindRelease:
		m.pairs.handleRelease(p, r.AsRelease())
	case wire.KindObject:
		m.objects.countObject(p, r.AsObject())
	case wire.KindRetain:
		m.pairs.handleRetain(p, r.AsRetain())
	default:
	}
	m.heap.Apply(r)
}
