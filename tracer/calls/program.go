package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// programs are those of a process, by handle. They are only counted.
type programs struct {
	ledger   *ledger
	byHandle map[uint64]*object
}

func (ps *programs) create(s *wire.Sample) {
	old := ps.byHandle[s.Result]
	if s.Result == 0 || old != nil && old.reportedWithin(s) || old == nil && len(ps.byHandle) >= objectsMax {
		return
	}
	if old != nil {
		ps.ledger.uncount(old)
	}
	o := newObject(s, 0)
	ps.byHandle[s.Result] = &o
	ps.ledger.count(s, &o, wire.HeldProgram)
}

func (ps *programs) retain(s *wire.Sample) {
	if o := ps.byHandle[s.Argument[0]]; o != nil {
		o.references++
	}
}

func (ps *programs) release(s *wire.Sample) {
	if o := ps.byHandle[s.Argument[0]]; o != nil && o.release() {
		delete(ps.byHandle, s.Argument[0])
		ps.ledger.uncount(o)
	}
}
