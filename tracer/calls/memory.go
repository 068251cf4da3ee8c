package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// memory is one memory object, or one allocation of shared memory.
type memory struct {
	handle, number uint64
	size           uint64
	birth          birth
	parent         *memory  // whose memory it shares; of a free entry the next one
	context        *context // nil: not surely known
	tag            uint32
	references     uint32
	children       uint32 // that keep its memory
	losses         uint32 // of calls before it was seen made: with more since, a retain may be among them
	maps           uint32 // mappings, since so many losses:
	mapLosses      uint32
	scope          uint16
	access         uint16
	kind           wire.Memory
	depth          uint8 // parents above it
	element        uint8 // bytes of one element of an image; 0: unknown
	carried        bool  // it was there before, and its size is what its uses have shown
	gone           bool  // its end was concluded while children kept it
}

// depthMax bounds parents of parents: an image of a part of a buffer has two.
const depthMax = 8

// add enters memory under a handle. Nil when there is no room.
func (b *Book) add(s *wire.Sample, handle uint64) *memory {
	if len(b.memories) >= memoriesMax {
		return nil
	}
	m := b.free
	if m != nil {
		b.free = m.parent
	} else {
		m = new(memory)
	}
	b.numbers.memory++
	*m = memory{handle: handle, number: b.numbers.memory, references: 1, birth: birthOf(s), losses: b.losses, mapLosses: b.losses}
	b.memories[handle] = m
	return m
}

// adopt makes memory share that of a parent.
func (m *memory) adopt(parent *memory) {
	m.parent, m.depth = parent, parent.depth+1
	parent.children++
}

// sure reports whether all references of memory were seen.
func (b *Book) sure(m *memory) bool { return !m.carried && m.losses == b.losses }

// root returns whose memory it is.
func (m *memory) root() *memory {
	for m.parent != nil {
		m = m.parent
	}
	return m
}

// pointer reports whether a kind is shared memory, which is known by its address and has no references.
func pointer(kind wire.Memory) bool { return kind >= wire.MemorySVM && kind <= wire.MemoryUSMShared }

// about is what records of releases and retains say of memory.
func about(m *memory, kind wire.Kind) wire.Event {
	return wire.Event{Kind: kind, Op: uint8(m.kind), Scope: m.scope, Tag: m.tag, Object: m.number, Size: m.size}
}

func (b *Book) writeRelease(s *wire.Sample, m *memory, left uint32, outcome wire.Outcome, flags uint8) {
	e := about(m, wire.KindRelease)
	e.Granted, e.Outcome, e.Flags = uint64(left), outcome, flags
	b.write(s, e)
}

func (b *Book) retainMemory(s *wire.Sample) {
	handle := s.Argument[0]
	m := b.memories[handle]
	if m == nil {
		if handle == 0 || b.dead(s, handle, wire.DiagUseAfterRelease) {
			return
		}
		if m = b.learn(s, handle, sighting{kind: wire.MemoryBuffer}); m == nil {
			return
		}
	}
	m.references++
	e := about(m, wire.KindRetain)
	e.Granted = uint64(m.references)
	b.write(s, e)
}

func (b *Book) releaseMemory(s *wire.Sample) {
	m := b.memories[s.Argument[0]]
	switch {
	case m == nil:
		b.releaseStranger(s)
	case m.references > 1:
		m.references--
		b.writeRelease(s, m, m.references, wire.OutcomeDriver, 0)
	case m.references == 1:
		b.releaseLast(s, m)
	default:
		if b.sure(m) {
			b.finding(s, wire.DiagDoubleRelease, m, 0, 0)
			b.write(s, wire.Event{Kind: wire.KindRelease})
		}
	}
}

// releaseStranger is a release of something that is not alive: one too many, or the last one of what was there before.
func (b *Book) releaseStranger(s *wire.Sample) {
	handle := s.Argument[0]
	if handle == 0 || b.dead(s, handle, wire.DiagDoubleRelease) {
		b.write(s, wire.Event{Kind: wire.KindRelease})
		return
	}
	if g := b.ghost(handle); g != nil { // one more reference than was thought; its release was written
		g.held = false
		return
	}
	if m := b.learn(s, handle, sighting{kind: wire.MemoryBuffer}); m != nil {
		b.releaseLast(s, m)
	}
}

// releaseLast takes the last reference. The memory goes, too, unless parts of it are left.
func (b *Book) releaseLast(s *wire.Sample, m *memory) {
	m.references = 0
	if m.children > 0 {
		b.writeRelease(s, m, 0, wire.OutcomePinned, 0)
		return
	}
	if m.maps > 0 && m.mapLosses == b.losses {
		b.finding(s, wire.DiagStillMapped, m, 0, 0)
	}
	b.writeRelease(s, m, 0, wire.OutcomeDriver, 0)
	b.end(s, m)
}

// end forgets memory whose end was written, and whatever that alone kept.
func (b *Book) end(s *wire.Sample, m *memory) {
	for {
		parent := m.parent
		b.bury(s, m)
		b.remove(m)
		if parent == nil {
			return
		}
		parent.children--
		if parent.gone || parent.references > 0 || parent.children > 0 {
			return
		}
		b.writeRelease(s, parent, 0, wire.OutcomeDriver, 0)
		m = parent
	}
}

// remove takes memory out of the book. An entry that children still point to is left to the garbage collector.
func (b *Book) remove(m *memory) {
	if b.memories[m.handle] == m {
		delete(b.memories, m.handle)
	}
	if m.children == 0 {
		m.context = nil
		m.parent, b.free = b.free, m
	}
}

// displace ends what was known under a handle that a create has returned: its release was not seen. With the memory of a
// buffer that of its parts has gone. What was only learned while the create ran is the very object that it made.
func (b *Book) displace(s *wire.Sample, handle uint64) {
	m := b.memories[handle]
	if m == nil {
		return
	}
	var flags uint8
	if m.carried && m.birth.during(s) {
		flags = wire.FlagCarried
	}
	m.references, m.gone = 0, true
	b.writeRelease(s, m, 0, wire.OutcomeDriver, flags)
	b.end(s, m)
}

// freePointer ends shared memory.
func (b *Book) freePointer(s *wire.Sample, address uint64, in *context) {
	m := b.memories[address]
	if m == nil {
		if address == 0 || b.ghost(address) != nil {
			return
		}
		if m = b.learn(s, address, sighting{kind: wire.MemorySVM, context: in}); m == nil {
			return
		}
	}
	if pointer(m.kind) {
		m.references = 0
		b.writeRelease(s, m, 0, wire.OutcomeDriver, 0)
		b.end(s, m)
	}
}

func (b *Book) freeOne(s *wire.Sample) { b.freePointer(s, s.Argument[1], b.contexts[s.Argument[0]]) }

// freeAll is clEnqueueSVMFree. Its list may be gone when it returns. With a callback the program frees them itself.
func (b *Book) freeAll(s *wire.Sample) {
	if s.Argument[3] != 0 {
		return
	}
	var in *context
	if q := b.queues[s.Argument[0]]; q != nil {
		in = q.likely
	}
	addresses := s.Copy(0)
	for i := range handles(addresses, uint32(s.Argument[1])) {
		b.freePointer(s, word(addresses, i), in)
	}
}
