package tables

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MemoryFreed implements heap.Observer: it makes the row of a buffer.
func (w *walk) MemoryFreed(l *heap.Process, o *heap.Object, how heap.How) {
	p := w.process(l.Number)
	if w.isReleaseCarriedOver(o) {
		return
	}
	used := p.uses[o.ID]
	delete(p.uses, o.ID)
	if w.sink.Buffer == nil || w.err != nil {
		return
	}
	site := w.run.siteIfWanted(p.Number, o.Tag)
	if site == nil {
		return
	}
	row := &w.buffer
	created := w.run.sinceStart(o.Started)
	*row = Buffer{
		Recording: p.Recording, Number: int32(p.Original), Object: int64(o.ID), Memory: o.Memory.String(),
		Owns: o.Owns, Tag: int64(o.Tag), Site: site.Name, Stack: site.Stack, Thread: int64(o.Thread),
		Context: int32(o.Scope), Access: int32(o.Access), Flags: flagWords()[flagsOfCreate(o)], Carried: o.CarriedOver,
		Size: clampToSigned(o.Size), Granted: clampToSigned(o.Granted), Block: int64(o.Block), Parent: int64(o.Parent),
		Outcome: o.Outcome.String(), Created: w.run.sinceEpoch(created), CreatedNS: created, Uses: used,
		Duration: int64(o.Duration), Cost: int64(o.Cost), Ending: how.String(), Leaked: how == heap.Leaked,
	}
	if o.Outcome == wire.OutcomeMiss {
		row.Reason = o.Reason.String()
	}
	if used > 0 {
		row.FirstUse, row.LastUse = pointerTo(max(created, w.run.sinceStart(o.First))), pointerTo(w.run.sinceStart(o.Used))
	}
	if time, known := l.ObjectIdleSince(o); known {
		row.IdleSince = pointerTo(w.run.sinceStart(time))
	} else if l.IsUntouched(o) {
		row.IdleSince = pointerTo(created)
	}
	row.EndedNS = w.run.sinceStart(p.endTime(w.run))
	if how == heap.Released {
		w.fillReleaseColumns(row, o)
		row.EndedNS = *row.ReleasedNS
	}
	w.noteError(w.sink.Buffer(p.Number, row))
}

// isReleaseCarriedOver reports whether the release of a carried object was carried over, too. Then the object stands for a block
// in the pool, and did not live in this part of the run; or it is carried over again, with a size that has become known.
func (w *walk) isReleaseCarriedOver(o *heap.Object) bool {
	return o.CarriedOver && w.record.Kind == wire.KindRelease && w.record.CarriedOver()
}

func (w *walk) fillReleaseColumns(row *Buffer, o *heap.Object) {
	end := w.run.sinceStart(w.heap.Now())
	row.Released, row.ReleasedNS = pointerTo(w.run.sinceEpoch(end)), pointerTo(end)
	row.Lifetime = pointerTo(end - row.CreatedNS)
	if e := w.record.AsRelease(); w.record.Kind == wire.KindRelease && e.Object() == o.ID {
		row.ReleaseCost = int64(e.Cost())
	}
}

// BlockUnpooled implements heap.Observer: it makes the row of a stay.
func (w *walk) BlockUnpooled(l *heap.Process, b *heap.Block, how heap.How) {
	if w.sink.Stay == nil || w.err != nil {
		return
	}
	p := w.process(l.Number)
	site := w.run.siteIfWanted(p.Number, b.Tag)
	if site == nil {
		return
	}
	row := &w.stay
	began := w.run.sinceStart(b.Freed)
	*row = Stay{
		Recording: p.Recording, Number: int32(p.Original), Block: int64(b.ID), State: states[b.State], Part: b.SubAllocation,
		Tag: int64(b.Tag), Site: site.Name, Thread: int64(b.Thread), Context: int32(b.Scope), Access: int32(b.Access),
		Owner: int64(b.Owner), Size: clampToSigned(b.Size), Began: w.run.sinceEpoch(began), BeganNS: began, Ending: how.String(),
	}
	if how != heap.Open && how != heap.Unknown {
		end := w.run.sinceStart(w.heap.Now())
		row.Ended, row.EndedNS, row.Stayed = pointerTo(w.run.sinceEpoch(end)), pointerTo(end), pointerTo(end-began)
	}
	if e := w.record.AsEvict(); how == heap.Evicted && w.record.Kind == wire.KindEvict && e.Block() == b.ID {
		row.Reason = e.Reason().String()
	}
	w.noteError(w.sink.Stay(p.Number, row))
}

// states are the words for the last state of a block before its stay ends.
var states = [...]string{heap.InUse: "in use", heap.Cached: "cached", heap.Cooling: "cooling", heap.Slab: "slab"}
