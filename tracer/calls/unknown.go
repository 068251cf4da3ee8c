package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// evidence is what a call implies about memory that existed before we attached.
type evidence struct {
	kind    wire.Memory
	context *context // the context that it must belong to; nil: unknown
	size    uint64   // at least
}

// addCarriedOver adds memory that existed before we attached. The call suggests its context, which is too uncertain for
// findings. addCarriedOver returns nil if there is no room.
func (ms *memories) addCarriedOver(s *wire.Sample, handle uint64, seen evidence) *memory {
	m := ms.addMemory(s, handle)
	if m == nil {
		return nil
	}
	m.kind, m.size, m.scope, m.carried = seen.kind, seen.size, seen.context.scopeNumber(), true
	if g := ms.findFreedHandle(handle); g != nil && g.mayLive { // it lives after all
		m.kind, m.size = max(g.kind, m.kind), max(g.size, m.size) // MemoryBuffer is the weakest guess
	}
	m.tag = ms.tags.UnknownTag()
	ms.writeCarriedCreate(s, m)
	return m
}

func (ms *memories) writeCarriedCreate(s *wire.Sample, m *memory) {
	ms.writeEvent(s, wire.CreateFields{
		Memory: m.kind, Outcome: wire.OutcomeDriver, CarriedOver: true, Scope: m.scope, Tag: m.tag, Object: m.number,
		Requested: m.size, Granted: m.size,
	}.Event())
}

// growthParts: carried memory grows by at least 1/growthParts of its size, so that a program that walks through it does not
// grow it with each command.
const growthParts = 16

// raiseCarriedSize notes that memory has at least size bytes. Carried memory is then carried over again with the new size, under the
// same number, so that references to it stay valid.
func (ms *memories) raiseCarriedSize(s *wire.Sample, m *memory, size uint64) {
	if !m.carried || size <= m.size || size-m.size < m.size/growthParts || m.references == 0 {
		return
	}
	ms.writeRelease(s, m, 0, wire.OutcomeDriver, true)
	m.size = size
	ms.writeCarriedCreate(s, m)
}
