package tables

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Begin implements life.Watcher.
func (w *walk) Begin(*life.Process, *life.Object) {}

// Pool implements life.Watcher.
func (w *walk) Pool(*life.Process, *life.Block) {}

// End implements life.Watcher: it makes the row of a buffer.
func (w *walk) End(l *life.Process, o *life.Object, how life.How) {
	p := w.process(l.Number)
	if w.notAnEnd(o) {
		return
	}
	used := p.uses[o.Number]
	delete(p.uses, o.Number)
	if w.sink.Buffer == nil || w.err != nil {
		return
	}
	site := w.run.site(p.Number, o.Tag)
	if site == nil {
		return
	}
	row := &w.buffer
	created := w.run.since(o.Started)
	*row = Buffer{
		Recording: p.Recording, Number: int32(p.Original), Object: int64(o.Number), Memory: o.Kind.String(),
		Owns: o.Owns, Tag: int64(o.Tag), Site: site.Name, Stack: site.Stack, Thread: int64(o.Thread),
		Context: int32(o.Scope), Access: int32(o.Access), Flags: flagWords[o.Flags], Carried: o.Carried(),
		Size: clamp(o.Size), Granted: clamp(o.Granted), Block: int64(o.Block), Parent: int64(o.Parent),
		Outcome: o.Outcome.String(), Created: w.run.at(created), CreatedNS: created, Uses: used.count,
		Duration: int64(o.Duration), Cost: int64(o.Cost), Ending: how.String(), Leaked: how == life.Leaked,
	}
	if o.Outcome == wire.OutcomeMiss {
		row.Reason = wire.Miss(o.Reason).String()
	}
	if used.count > 0 {
		row.FirstUse, row.LastUse = optional(w.run.since(used.first)), optional(w.run.since(o.Used))
	}
	if how == life.Released {
		w.released(row, o)
	}
	w.keep(w.sink.Buffer(p.Number, row))
}

// notAnEnd reports whether a carried object ends with a record that is carried, too. Either it tells of a block in the pool,
// and never lived in this part of the run; or it goes on with the size that has become known of it.
func (w *walk) notAnEnd(o *life.Object) bool {
	return o.Carried() && w.record.Kind == wire.KindRelease && w.record.Flags&wire.FlagCarried != 0
}

func (w *walk) released(row *Buffer, o *life.Object) {
	end := w.run.since(w.fold.Now)
	row.Released, row.ReleasedNS = optional(w.run.at(end)), optional(end)
	row.Lifetime = optional(end - row.CreatedNS)
	if r := &w.record; r.Kind == wire.KindRelease && r.Object == o.Number {
		row.ReleaseCost = int64(r.Cost)
	}
}

// Unpool implements life.Watcher: it makes the row of a stay.
func (w *walk) Unpool(l *life.Process, b *life.Block, how life.How) {
	if w.sink.Stay == nil || w.err != nil {
		return
	}
	p := w.process(l.Number)
	site := w.run.site(p.Number, b.Tag)
	if site == nil {
		return
	}
	row := &w.stay
	began := w.run.since(b.Freed)
	*row = Stay{
		Recording: p.Recording, Number: int32(p.Original), Block: int64(b.Number), State: states[b.State], Part: b.Part,
		Tag: int64(b.Tag), Site: site.Name, Thread: int64(b.Thread), Context: int32(b.Scope), Access: int32(b.Access),
		Owner: int64(b.Owner), Size: clamp(b.Size), Began: w.run.at(began), BeganNS: began, Ending: how.String(),
	}
	if how != life.Open && how != life.Unknown {
		end := w.run.since(w.fold.Now)
		row.Ended, row.EndedNS, row.Stayed = optional(w.run.at(end)), optional(end), optional(end-began)
	}
	if r := &w.record; how == life.Evicted && r.Kind == wire.KindEvict && r.Link == b.Number {
		row.Reason = wire.Evict(r.Reason).String()
	}
	w.keep(w.sink.Stay(p.Number, row))
}

// states are the words for the last state of a block before its stay ends.
var states = [...]string{life.InUse: "in use", life.Cached: "cached", life.Cooling: "cooling", life.Slab: "slab"}
