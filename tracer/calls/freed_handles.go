package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// freedMax is how many freed handles are remembered: the latest of those that share a slot, as in
// shim/registry/freed_handles.c. That is enough to tell a second release from an object that existed before.
const freedMax = 1024

// freedHandle is what we remember of memory that was freed.
type freedHandle struct {
	handle, object, size uint64
	freedAt              uint64
	tag                  uint32
	kind                 wire.Memory
	mayLive              bool // the memory itself, or another whose create we missed, may live under the handle
	heldByKernel         bool // it lives: it has become an argument of a kernel since
}

func slotForFreed(handle uint64) uint64 { return (handle * 0x9e3779b97f4a7c15) >> 54 }

func (ms *memories) rememberFreedHandle(s *wire.Sample, m *memory) {
	if ms.freedHandles == nil {
		ms.freedHandles = new([freedMax]freedHandle)
	}
	g := &ms.freedHandles[slotForFreed(m.handle)]
	*g = freedHandle{handle: m.handle, freedAt: s.Time, mayLive: true}
	if ms.areReferencesKnown(m) && s.Time < ms.settledAt {
		return // other memory may live under its handle
	}
	g.object, g.size, g.tag, g.kind, g.mayLive = m.number, m.size, m.tag, m.kind, !ms.areReferencesKnown(m)
}

// findFreedHandle returns what we remember of a freed handle, nil if nothing.
func (ms *memories) findFreedHandle(handle uint64) *freedHandle {
	if ms.freedHandles == nil || handle == 0 {
		return nil
	}
	if g := &ms.freedHandles[slotForFreed(handle)]; g.handle == handle {
		return g
	}
	return nil
}

// findUseAfterFree reports whether a handle's memory has certainly ended, and writes a finding since the program names it. If it
// ended while the call ran there is no finding: the driver may have seen it alive.
func (ms *memories) findUseAfterFree(s *wire.Sample, handle uint64, code wire.Diag) bool {
	g := ms.findFreedHandle(handle)
	if g == nil || g.mayLive && g.freedAt <= s.Entered {
		return false
	}
	if g.freedAt <= s.Entered {
		ms.writeRecord(s, wire.DiagFields{Diag: code, Tag: g.tag, Object: g.object, Bytes: g.size}.Record([]byte(ms.function)))
	}
	return true
}
