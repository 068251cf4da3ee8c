package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// samplers are those of a process, by handle. They look like memory where they are kernel arguments.
type samplers struct {
	ledger   *ledger
	memories *memories

	byHandle map[uint64]*object
}

func (ss *samplers) handleCreate(s *wire.Sample) {
	if s.Result == 0 {
		return
	}
	ss.memories.endPreviousOfHandle(s, s.Result)
	if old := ss.byHandle[s.Result]; old != nil {
		ss.ledger.countEnded(old)
		delete(ss.byHandle, s.Result)
	}
	if o := ss.addSampler(s.Result, newObject(s, 0)); o != nil {
		ss.ledger.countCreated(s, o, wire.HeldSampler)
	}
}

func (ss *samplers) addSampler(handle uint64, o object) *object {
	if handle == 0 || len(ss.byHandle) >= objectsMax {
		return nil
	}
	ss.byHandle[handle] = &o
	return &o
}

func (ss *samplers) samplerOfCall(s *wire.Sample) *object {
	if o := ss.byHandle[s.Argument[0]]; o != nil {
		return o
	}
	return ss.addSampler(s.Argument[0], carriedObject(s, 0))
}

func (ss *samplers) handleRetain(s *wire.Sample) {
	if o := ss.samplerOfCall(s); o != nil {
		o.references++
	}
}

func (ss *samplers) handleRelease(s *wire.Sample) {
	if o := ss.samplerOfCall(s); o != nil && o.dropReference() {
		delete(ss.byHandle, s.Argument[0])
		ss.ledger.countEnded(o)
	}
}
