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

// depthMax bounds the depth: an image of a sub-buffer has 2.
const depthMax = 8

// addMemory adds memory under a handle. It returns nil if there is no room.
func (t *Tracker) addMemory(s *wire.Sample, handle uint64) *memory {
	if len(t.memories) >= memoriesMax {
		return nil
	}
	m := t.free
	if m != nil {
		t.free = m.parent
	} else {
		m = new(memory)
	}
	t.numbers.memory++
	*m = memory{handle: handle, number: t.numbers.memory, references: 1, firstCall: firstCallOf(s), losses: t.losses, mapLosses: t.losses}
	t.memories[handle] = m
	return m
}

// adopt makes memory a child of a parent, whose memory it shares.
func (m *memory) adopt(parent *memory) {
	m.parent, m.depth = parent, parent.depth+1
	parent.children++
}

// referencesKnown reports whether we have seen all references to memory.
func (t *Tracker) referencesKnown(m *memory) bool { return !m.carried && m.losses == t.losses }

// root returns the object that has the memory which m shares.
func (m *memory) root() *memory {
	for m.parent != nil {
		m = m.parent
	}
	return m
}

// isPointerKind reports whether a kind is shared memory, which has an address and no references.
func isPointerKind(kind wire.Memory) bool {
	return kind >= wire.MemorySVM && kind <= wire.MemoryUSMShared
}

func (t *Tracker) writeRelease(s *wire.Sample, m *memory, left uint32, outcome wire.Outcome, carriedOver bool) {
	t.write(s, wire.ReleaseFields{
		Memory: m.kind, Outcome: outcome, CarriedOver: carriedOver, Scope: m.scope, Tag: m.tag, Object: m.number,
		Requested: m.size, References: uint64(left),
	}.Event())
}

func (t *Tracker) retainMemory(s *wire.Sample) {
	handle := s.Argument[0]
	m := t.memories[handle]
	if m == nil {
		if handle == 0 || t.checkFreed(s, handle, wire.DiagUseAfterRelease) {
			return
		}
		if m = t.carryOver(s, handle, evidence{kind: wire.MemoryBuffer}); m == nil {
			return
		}
	}
	m.references++
	t.write(s, wire.RetainFields{
		Memory: m.kind, Scope: m.scope, Tag: m.tag, Object: m.number, Requested: m.size, References: uint64(m.references),
	}.Event())
}

func (t *Tracker) releaseMemory(s *wire.Sample) {
	m := t.memories[s.Argument[0]]
	switch {
	case m == nil:
		t.releaseUnknown(s)
	case m.references > 1:
		m.references--
		t.writeRelease(s, m, m.references, wire.OutcomeDriver, false)
	case m.references == 1:
		t.releaseLast(s, m)
	default:
		if t.referencesKnown(m) {
			t.finding(s, wire.DiagDoubleRelease, m, 0, 0)
			t.write(s, wire.ReleaseFields{}.Event())
		}
	}
}

// releaseUnknown handles the release of an unknown handle: one release too many, or the last one of carried memory.
func (t *Tracker) releaseUnknown(s *wire.Sample) {
	handle := s.Argument[0]
	if handle == 0 || t.checkFreed(s, handle, wire.DiagDoubleRelease) {
		t.write(s, wire.ReleaseFields{}.Event())
		return
	}
	if g := t.freed(handle); g != nil { // it had another reference; its release was written before
		g.heldByKernel = false
		return
	}
	if m := t.carryOver(s, handle, evidence{kind: wire.MemoryBuffer}); m != nil {
		t.releaseLast(s, m)
	}
}

// releaseLast drops the last reference. The memory ends unless children keep it.
func (t *Tracker) releaseLast(s *wire.Sample, m *memory) {
	m.references = 0
	if m.children > 0 {
		t.writeRelease(s, m, 0, wire.OutcomePinned, false)
		return
	}
	if m.maps > 0 && m.mapLosses == t.losses {
		t.finding(s, wire.DiagStillMapped, m, 0, 0)
	}
	t.writeRelease(s, m, 0, wire.OutcomeDriver, false)
	t.endMemory(s, m)
}

// endMemory forgets memory whose end was written, and the parents that only it kept.
func (t *Tracker) endMemory(s *wire.Sample, m *memory) {
	for {
		parent := m.parent
		t.rememberFreed(s, m)
		t.removeMemory(m)
		if parent == nil {
			return
		}
		parent.children--
		if parent.gone || parent.references > 0 || parent.children > 0 {
			return
		}
		t.writeRelease(s, parent, 0, wire.OutcomeDriver, false)
		m = parent
	}
}

// removeMemory removes memory from the tracker. An entry that children still point to is not reused.
func (t *Tracker) removeMemory(m *memory) {
	if t.memories[m.handle] == m {
		delete(t.memories, m.handle)
	}
	if m.children == 0 {
		m.context = nil
		m.parent, t.free = t.free, m
	}
}

// endPrevious ends the memory that had the handle which a create has returned: we missed its release. Its children have
// ended with it. If we carried it over while the create ran, it is the very object that the create made.
func (t *Tracker) endPrevious(s *wire.Sample, handle uint64) {
	m := t.memories[handle]
	if m == nil {
		return
	}
	learntMeanwhile := m.carried && m.firstCall.during(s)
	m.references, m.gone = 0, true
	t.writeRelease(s, m, 0, wire.OutcomeDriver, learntMeanwhile)
	t.endMemory(s, m)
}

// freePointer ends shared memory.
func (t *Tracker) freePointer(s *wire.Sample, address uint64, in *context) {
	m := t.memories[address]
	if m == nil {
		if address == 0 || t.freed(address) != nil {
			return
		}
		if m = t.carryOver(s, address, evidence{kind: wire.MemorySVM, context: in}); m == nil {
			return
		}
	}
	if isPointerKind(m.kind) {
		m.references = 0
		t.writeRelease(s, m, 0, wire.OutcomeDriver, false)
		t.endMemory(s, m)
	}
}

func (t *Tracker) freeOne(s *wire.Sample) { t.freePointer(s, s.Argument[1], t.contexts[s.Argument[0]]) }

// freeAll handles clEnqueueSVMFree. Its list may be gone when it returns. With a callback the program itself frees the
// memory.
func (t *Tracker) freeAll(s *wire.Sample) {
	if s.Argument[3] != 0 {
		return
	}
	var in *context
	if q := t.queues[s.Argument[0]]; q != nil {
		in = q.likely
	}
	addresses := s.Copy(0)
	for i := range handles(addresses, uint32(s.Argument[1])) {
		t.freePointer(s, word(addresses, i), in)
	}
}
