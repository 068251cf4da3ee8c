package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// samplers are those of a process, by handle. They look like memory where they are kernel arguments.
type samplers struct {
	ledger   *ledger
	memories *memories

	byHandle map[uint64]*object
}

func (ss *samplers) create(s *wire.Sample) {
	if s.Result == 0 {
		return
	}
	ss.memories.endPrevious(s, s.Result)
	if old := ss.byHandle[s.Result]; old != nil {
		ss.ledger.uncount(old)
		delete(ss.byHandle, s.Result)
	}
	if o := ss.enter(s.Result, newObject(s, 0)); o != nil {
		ss.ledger.count(s, o, wire.HeldSampler)
	}
}

func (ss *samplers) enter(handle uint64, o object) *object {
	if handle == 0 || len(ss.byHandle) >= objectsMax {
		return nil
	}
	ss.byHandle[handle] = &o
	return &o
}

func (ss *samplers) samplerOf(s *wire.Sample) *object {
	if o := ss.byHandle[s.Argument[0]]; o != nil {
		return o
	}
	return ss.enter(s.Argument[0], carriedObject(s, 0))
}

func (ss *samplers) retain(s *wire.Sample) {
	if o := ss.samplerOf(s); o != nil {
		o.references++
	}
}

func (ss *samplers) release(s *wire.Sample) {
	if o := ss.samplerOf(s); o != nil && o.release() {
		delete(ss.byHandle, s.Argument[0])
		ss.ledger.uncount(o)
	}
}
