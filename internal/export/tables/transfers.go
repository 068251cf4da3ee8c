package tables

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// transfer takes a record before the heap does: it counts what is moved, and makes the row of a command that moves memory.
func (w *walk) transfer(p *process, r *wire.Record) {
	if v := r.AsTransfer(); r.Kind == wire.KindTransfer && v.Profiled() != wire.CommandOther {
		w.profiled(p, r)
		return
	}
	if r.Kind == wire.KindTransfer {
		w.sides.Note(r)
		return
	}
	u := r.AsUse()
	direction, moves := stats.DirectionOf(u.Command())
	if r.Kind != wire.KindUse || !moves || w.sides.Again(r) {
		return
	}
	if direction <= stats.ToHost {
		p.times.moved[direction] += clamp(u.Bytes())
	}
	if w.sink.Transfer == nil || w.err != nil {
		return
	}
	since, names := w.run.since(r.Time), w.run.names.Process(p.Number)
	row := Transfer{
		Recording: p.Recording, Number: int32(p.Original), Time: w.run.sinceEpoch(since), TimeNS: since, Command: u.Command().String(),
		Direction: direction.String(), Thread: int64(r.Thread), Context: int32(u.Scope()), Queue: int64(u.Queue()), Object: int64(u.Object()),
		Bytes: clamp(u.Bytes()),
	}
	if l := w.heap.Lookup(r.Process); l != nil {
		if o := l.Object(u.Object()); o != nil && o.Tag > 0 {
			row.MemorySite = names.Site(o.Tag).Name
		}
	}
	tag := u.Tag()
	if u.Command() != wire.CommandCopy {
		tag = 0
	}
	if !u.Scattered() {
		row.Offset = optional(clamp(u.Offset()))
	}
	if u.Duration() > 0 {
		row.Duration = optional(int64(u.Duration()))
	}
	if more, known := w.sides.Of(r); known {
		tag = more.Site()
		row.hostSide(more)
	}
	if tag > 0 {
		row.Site = names.Site(tag).Name
	}
	w.noteError(w.sink.Transfer(p.Number, &row))
}

// profiled makes the row of a command that the device timed. Its bytes are in an earlier row, too, of the same call site.
func (w *walk) profiled(p *process, r *wire.Record) {
	v, since := r.AsTransfer(), w.run.since(r.Time)
	direction, moves := stats.DirectionOf(v.Profiled())
	if !moves || w.sink.Transfer == nil || w.err != nil {
		return
	}
	row := Transfer{
		Recording: p.Recording, Number: int32(p.Original), Time: w.run.sinceEpoch(since), TimeNS: since, Command: v.Profiled().String(),
		Direction: direction.String(), Thread: int64(r.Thread), Profiled: optional(clamp(v.Took())), ProfiledBytes: optional(clamp(v.Moved())),
	}
	if v.Site() > 0 {
		row.Site = w.run.names.Process(p.Number).Site(v.Site()).Name
	}
	w.noteError(w.sink.Transfer(p.Number, &row))
}

// hostSide adds what is known of the program's side.
func (row *Transfer) hostSide(more wire.TransferView) {
	switch {
	case more.Pinned():
		row.Host = "pinned"
	case more.Pageable():
		row.Host = "pageable"
	default: // there is none
	}
	if more.Pages() > 0 {
		row.Pages, row.Cold = optional(int64(more.Pages())), optional(int64(more.Cold()))
	}
	if more.Hashed() > 0 {
		row.Hash, row.Hashed = optional(int64(more.Hash())), optional(clamp(more.Hashed()))
	}
}
