package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// programs are those of a process, by handle. They are only counted.
type programs struct {
	ledger   *ledger
	byHandle map[uint64]*object
}

func (ps *programs) handleCreate(s *wire.Sample) {
	old := ps.byHandle[s.Result]
	if s.Result == 0 || old != nil && old.isFromNestedCall(s) || old == nil && len(ps.byHandle) >= objectsMax {
		return
	}
	if old != nil {
		ps.ledger.countEnded(old)
	}
	o := newObject(s, 0)
	ps.byHandle[s.Result] = &o
	ps.ledger.countCreated(s, &o, wire.HeldProgram)
}

func (ps *programs) handleRetain(s *wire.Sample) {
	if o := ps.byHandle[s.Argument[0]]; o != nil {
		o.references++
	}
}

func (ps *programs) handleRelease(s *wire.Sample) {
	if o := ps.byHandle[s.Argument[0]]; o != nil && o.dropReference() {
		delete(ps.byHandle, s.Argument[0])
		ps.ledger.countEnded(o)
	}
}
