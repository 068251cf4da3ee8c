package extract

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// appendCarriedOver adds records of a process's memory: slabs, then free blocks in the pool, the longest free first, then the program's
// objects. Records with more details of objects come last.
func appendCarriedOver(list []wire.Record, process *heap.Process, since uint64) []wire.Record {
	number, blocks := process.Number, process.Blocks()
	slices.SortFunc(blocks, func(a, b *heap.Block) int { return cmp.Compare(a.Serial, b.Serial) })
	for _, b := range blocks {
		if b.State == heap.Slab {
			list = append(list, slabRecord(number, b))
		}
	}
	for _, b := range blocks {
		if b.State == heap.Cached || b.State == heap.Cooling {
			create := createOfPooledBlock(b)
			list = append(list, newRecord(number, b.Thread, create.Event()), releaseRecord(number, b.Thread, &create, outcomes[b.State]))
		}
	}
	for _, o := range process.Objects() {
		create := createOfObject(o)
		list = append(list, newRecord(number, o.Thread, create.Event()))
		if o.Released {
			list = append(list, releaseRecord(number, o.Thread, &create, wire.OutcomePinned))
		}
	}
	for _, b := range blocks {
		if b.State == heap.InUse && b.Cooled {
			cooled := wire.CooledFields{Time: since, SubAllocation: b.SubAllocation, Bytes: b.Size, Block: b.ID}
			list = append(list, newRecord(number, b.Thread, cooled.Event()))
		}
	}
	return list
}

func newRecord(process, thread uint32, e wire.Event) wire.Record {
	return wire.Record{Process: process, Thread: thread, Event: e}
}

func slabRecord(process uint32, b *heap.Block) wire.Record {
	return newRecord(process, b.Thread, wire.SlabFields{
		Time: b.Freed, CarriedOver: true, Scope: b.Scope, Access: b.Access, Bytes: b.Size, Block: b.ID,
	}.Event())
}

// outcomes are those of the release that puts a block into the pool.
var outcomes = map[heap.State]wire.Outcome{heap.Cached: wire.OutcomeCached, heap.Cooling: wire.OutcomeCooling}

// createOfPooledBlock describes a free block as the create of the object that had it last. A release follows.
func createOfPooledBlock(b *heap.Block) wire.CreateFields {
	return wire.CreateFields{
		Time: b.Freed, Memory: b.Memory, Outcome: wire.OutcomeHit, SubAllocation: b.SubAllocation, CarriedOver: true, Scope: b.Scope,
		Access: b.Access, Shape: b.Shape, Tag: b.Tag, Object: b.Owner, Requested: b.Size, Granted: b.Size, Block: b.ID,
	}
}

func createOfObject(o *heap.Object) wire.CreateFields {
	return wire.CreateFields{
		Time: o.Started, Duration: o.Duration, Cost: o.Cost, Memory: o.Memory, Outcome: o.Outcome, Reason: o.Reason,
		NeedsBlock: o.NeedsBlock, SubAllocation: o.SubAllocation, CarriedOver: true, Scope: o.Scope, Access: o.Access,
		Shape: o.Shape, Tag: o.Tag, Object: o.ID, Requested: o.Size, Granted: o.Granted, Block: o.Block, Parent: o.Parent,
	}
}

// releaseRecord returns the record of the end of an object that create describes.
func releaseRecord(process, thread uint32, create *wire.CreateFields, outcome wire.Outcome) wire.Record {
	return newRecord(process, thread, wire.ReleaseFields{
		Time: create.Time, Outcome: outcome, SubAllocation: create.SubAllocation, CarriedOver: true, Object: create.Object,
		Block: create.Block,
	}.Event())
}
