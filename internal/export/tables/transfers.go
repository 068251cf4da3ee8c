package tables

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// handleBeforeHeap handles a record before the heap does: it counts moved bytes, and makes the row of a command that moves memory.
func (w *walk) handleBeforeHeap(p *process, r *wire.Record) {
	if v := r.AsTransfer(); r.Kind == wire.KindTransfer && v.Profiled() != wire.CommandOther {
		w.addProfiledRow(p, r)
		return
	}
	if r.Kind == wire.KindTransfer {
		w.sides.NoteTransfer(r)
		return
	}
	u := r.AsUse()
	direction, moves := stats.DirectionOf(u.Command())
	if r.Kind != wire.KindUse || !moves || w.sides.IsSecondSide(r) {
		return
	}
	if direction <= stats.ToHost {
		p.times.moved[direction] += clampToSigned(u.Bytes())
	}
	if w.sink.Transfer == nil || w.err != nil {
		return
	}
	since, names := w.run.sinceStart(r.Time), w.run.names.Process(p.Number)
	row := Transfer{
		Recording: p.Recording, Number: int32(p.Original), Time: w.run.sinceEpoch(since), TimeNS: since, Command: u.Command().String(),
		Direction: direction.String(), Thread: int64(r.Thread), Context: int32(u.Scope()), Queue: int64(u.Queue()), Object: int64(u.Object()),
		Bytes: clampToSigned(u.Bytes()),
	}
	if l := w.heap.FindProcess(r.Process); l != nil {
		if o := l.Object(u.Object()); o != nil && o.Tag > 0 {
			row.MemorySite = names.Site(o.Tag).Name
		}
	}
	tag := u.Tag()
	if u.Command() != wire.CommandCopy {
		tag = 0
	}
	if !u.Scattered() {
		row.Offset = pointerTo(clampToSigned(u.Offset()))
	}
	if u.Duration() > 0 {
		row.Duration = pointerTo(int64(u.Duration()))
	}
	if more, known := w.sides.TransferOf(r); known {
		tag = more.Site()
		row.fillHostColumns(more)
	}
	if tag > 0 {
		row.Site = names.Site(tag).Name
	}
	w.noteError(w.sink.Transfer(p.Number, &row))
}

// addProfiledRow makes the row of a command that the device timed. An earlier row of the same call site has its bytes, too.
func (w *walk) addProfiledRow(p *process, r *wire.Record) {
	v, since := r.AsTransfer(), w.run.sinceStart(r.Time)
	direction, moves := stats.DirectionOf(v.Profiled())
	if !moves || w.sink.Transfer == nil || w.err != nil {
		return
	}
	row := Transfer{
		Recording: p.Recording, Number: int32(p.Original), Time: w.run.sinceEpoch(since), TimeNS: since, Command: v.Profiled().String(),
		Direction: direction.String(), Thread: int64(r.Thread), Profiled: pointerTo(clampToSigned(v.Took())), ProfiledBytes: pointerTo(clampToSigned(v.Moved())),
	}
	if v.Site() > 0 {
		row.Site = w.run.names.Process(p.Number).Site(v.Site()).Name
	}
	w.noteError(w.sink.Transfer(p.Number, &row))
}

// fillHostColumns adds what is known of the host's side.
func (row *Transfer) fillHostColumns(more wire.TransferView) {
	switch {
	case more.Pinned():
		row.Host = "pinned"
	case more.Pageable():
		row.Host = "pageable"
	default: // unknown
	}
	if more.Pages() > 0 {
		row.Pages, row.Cold = pointerTo(int64(more.Pages())), pointerTo(int64(more.Cold()))
	}
	if more.Hashed() > 0 {
		row.Hash, row.Hashed = pointerTo(int64(more.Hash())), pointerTo(clampToSigned(more.Hashed()))
	}
}
