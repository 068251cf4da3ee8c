package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// sighting is what a call says of memory that was there before.
type sighting struct {
	kind    wire.Memory
	context *context // that it must belong to; nil: unknown
	size    uint64   // it has at least so many bytes
}

// learn takes memory in that was there before. Its context is what the call suggests: enough to show, not to conclude a
// mistake from. Nil when there is no room.
func (b *Book) learn(s *wire.Sample, handle uint64, seen sighting) *memory {
	m := b.add(s, handle)
	if m == nil {
		return nil
	}
	m.kind, m.size, m.scope, m.carried = seen.kind, seen.size, seen.context.scope(), true
	if g := b.ghost(handle); g != nil && g.unsure { // it lives after all
		m.kind, m.size = max(g.kind, m.kind), max(g.size, m.size) // that it is a buffer says least
	}
	m.tag = b.tags.Unknown()
	b.carry(s, m)
	return m
}

// carry writes that memory was there before.
func (b *Book) carry(s *wire.Sample, m *memory) {
	e := about(m, wire.KindCreate)
	e.Flags, e.Outcome, e.Granted = wire.FlagCarried, wire.OutcomeDriver, m.size
	b.write(s, e)
}

// growthParts keeps a program that walks through memory from having it grow with each of its commands: it grows when it
// is larger by one such part of what was told.
const growthParts = 16

// grow notes that memory has at least so many bytes. Of what was there before more may be learned with each use: then the
// object is carried over anew, under its number, which leaves everything right that refers to it.
func (b *Book) grow(s *wire.Sample, m *memory, size uint64) {
	if !m.carried || size <= m.size || size-m.size < m.size/growthParts || m.references == 0 {
		return
	}
	b.writeRelease(s, m, 0, wire.OutcomeDriver, wire.FlagCarried)
	m.size = size
	b.carry(s, m)
}

// known reports whether a handle is surely none of memory.
func (b *Book) known(handle uint64) bool {
	return b.samplers[handle] != nil || b.queues[handle] != nil || b.kernels[handle] != nil || b.contexts[handle] != nil
}
