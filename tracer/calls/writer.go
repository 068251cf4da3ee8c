package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// writer writes the records of the current call. The other parts of a tracker share it.
type writer struct {
	tags     Tagger
	put      func(*wire.Record)
	record   wire.Record // passed to put
	function string      // name of the current call's function
}

// writeEvent passes on an event of a call.
func (w *writer) writeEvent(s *wire.Sample, e wire.Event) { w.writeRecord(s, wire.Record{Event: e}) }

// writeRecord passes on a record of a call.
func (w *writer) writeRecord(s *wire.Sample, r wire.Record) {
	w.record = r
	w.record.Time, w.record.Thread = s.Time, s.Tid
	w.put(&w.record)
}

// writeFinding writes a mistake that concerns known memory.
func (w *writer) writeFinding(s *wire.Sample, code wire.Diag, m *memory, kernel uint64, err int32) {
	w.writeRecord(s, wire.DiagFields{
		Diag: code, Scope: m.scope, Tag: m.tag, Object: m.number, Bytes: m.size, Kernel: kernel, Status: clampStatus(err),
	}.Record([]byte(w.function)))
}
