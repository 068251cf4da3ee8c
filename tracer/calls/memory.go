package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// memory is a memory object or an allocation of shared memory.
type memory struct {
	handle, number uint64
	size           uint64
	firstCall      firstCall
	parent         *memory  // whose memory it shares; of a free entry: the next one
	context        *context // nil: uncertain
	tag            uint32
	references     uint32
	children       uint32 // objects that share its memory
	losses         uint32 // losses of calls when it was created: with more since, a retain may be missing
	maps           uint32 // mappings, seen since mapLosses:
	mapLosses      uint32
	scope          uint16
	access         uint16
	kind           wire.Memory
	depth          uint8 // number of parents
	element        uint8 // bytes of one element of an image; 0: unknown
	carried        bool  // it existed before we attached; its size is what its uses imply
	gone           bool  // it has ended, but children keep its entry
}

// memories are those of a process, by handle, shared memory by its address.
type memories struct {
	*writer
	byHandle map[uint64]*memory
	last     uint64  // number of the latest
	free     *memory // list of entries to reuse, linked by parent

	freedHandles *[freedMax]freedHandle // by slot; nil: none
	losses       uint32                 // how often calls were lost
	settledAt    uint64                 // no call that began unseen is still running after this time, ns; 0: unknown
}

// depthMax bounds the depth: an image of a sub-buffer has 2.
const depthMax = 8

// addMemory adds memory under a handle. It returns nil if there is no room.
func (ms *memories) addMemory(s *wire.Sample, handle uint64) *memory {
	if len(ms.byHandle) >= memoriesMax {
		return nil
	}
	m := ms.free
	if m != nil {
		ms.free = m.parent
	} else {
		m = new(memory)
	}
	ms.last++
	*m = memory{handle: handle, number: ms.last, references: 1, firstCall: firstCallOf(s), losses: ms.losses, mapLosses: ms.losses}
	ms.byHandle[handle] = m
	return m
}

// becomeChildOf makes memory a child of a parent, whose memory it shares.
func (m *memory) becomeChildOf(parent *memory) {
	m.parent, m.depth = parent, parent.depth+1
	parent.children++
}

// areReferencesKnown reports whether we have seen all references to memory.
func (ms *memories) areReferencesKnown(m *memory) bool { return !m.carried && m.losses == ms.losses }

// rootMemory returns the object that has the memory which m shares.
func (m *memory) rootMemory() *memory {
	for m.parent != nil {
		m = m.parent
	}
	return m
}

// isPointerKind reports whether a kind is shared memory, which has an address and no references.
func isPointerKind(kind wire.Memory) bool {
	return kind >= wire.MemorySVM && kind <= wire.MemoryUSMShared
}

func (ms *memories) writeRelease(s *wire.Sample, m *memory, left uint32, outcome wire.Outcome, carriedOver bool) {
	ms.writeEvent(s, wire.ReleaseFields{
		Memory: m.kind, Outcome: outcome, CarriedOver: carriedOver, Scope: m.scope, Tag: m.tag, Object: m.number,
		Requested: m.size, References: uint64(left),
	}.Event())
}

func (ms *memories) handleRetain(s *wire.Sample) {
	handle := s.Argument[0]
	m := ms.byHandle[handle]
	if m == nil {
		if handle == 0 || ms.findUseAfterFree(s, handle, wire.DiagUseAfterRelease) {
			return
		}
		if m = ms.addCarriedOver(s, handle, evidence{kind: wire.MemoryBuffer}); m == nil {
			return
		}
	}
	m.references++
	ms.writeEvent(s, wire.RetainFields{
		Memory: m.kind, Scope: m.scope, Tag: m.tag, Object: m.number, Requested: m.size, References: uint64(m.references),
	}.Event())
}

func (ms *memories) handleRelease(s *wire.Sample) {
	m := ms.byHandle[s.Argument[0]]
	switch {
	case m == nil:
		ms.handleUnknownRelease(s)
	case m.references > 1:
		m.references--
		ms.writeRelease(s, m, m.references, wire.OutcomeDriver, false)
	case m.references == 1:
		ms.dropLastReference(s, m)
	default:
		if ms.areReferencesKnown(m) {
			ms.writeFinding(s, wire.DiagDoubleRelease, m, 0, 0)
			ms.writeEvent(s, wire.ReleaseFields{}.Event())
		}
	}
}

// handleUnknownRelease handles the release of an unknown handle: one release too many, or the last one of carried memory.
func (ms *memories) handleUnknownRelease(s *wire.Sample) {
	handle := s.Argument[0]
	if handle == 0 || ms.findUseAfterFree(s, handle, wire.DiagDoubleRelease) {
		ms.writeEvent(s, wire.ReleaseFields{}.Event())
		return
	}
	if g := ms.findFreedHandle(handle); g != nil { // it had another reference; its release was written before
		g.heldByKernel = false
		return
	}
	if m := ms.addCarriedOver(s, handle, evidence{kind: wire.MemoryBuffer}); m != nil {
		ms.dropLastReference(s, m)
	}
}

// dropLastReference drops the last reference. The memory ends unless children keep it.
func (ms *memories) dropLastReference(s *wire.Sample, m *memory) {
	m.references = 0
	if m.children > 0 {
		ms.writeRelease(s, m, 0, wire.OutcomePinned, false)
		return
	}
	if m.maps > 0 && m.mapLosses == ms.losses {
		ms.writeFinding(s, wire.DiagStillMapped, m, 0, 0)
	}
	ms.writeRelease(s, m, 0, wire.OutcomeDriver, false)
	ms.forgetMemory(s, m)
}

// forgetMemory forgets memory whose end was written, and the parents that only it kept.
func (ms *memories) forgetMemory(s *wire.Sample, m *memory) {
	for {
		parent := m.parent
		ms.rememberFreedHandle(s, m)
		ms.removeMemory(m)
		if parent == nil {
			return
		}
		parent.children--
		if parent.gone || parent.references > 0 || parent.children > 0 {
			return
		}
		ms.writeRelease(s, parent, 0, wire.OutcomeDriver, false)
		m = parent
	}
}

// removeMemory removes memory from the tracker. An entry that children still point to is not reused.
func (ms *memories) removeMemory(m *memory) {
	if ms.byHandle[m.handle] == m {
		delete(ms.byHandle, m.handle)
	}
	if m.children == 0 {
		m.context = nil
		m.parent, ms.free = ms.free, m
	}
}

// endPreviousOfHandle ends the memory that had the handle which a create has returned: we missed its release. Its children have
// ended with it. If we carried it over while the create ran, it is the very object that the create made.
func (ms *memories) endPreviousOfHandle(s *wire.Sample, handle uint64) {
	m := ms.byHandle[handle]
	if m == nil {
		return
	}
	learntMeanwhile := m.carried && m.firstCall.wasSeenDuring(s)
	m.references, m.gone = 0, true
	ms.writeRelease(s, m, 0, wire.OutcomeDriver, learntMeanwhile)
	ms.forgetMemory(s, m)
}
