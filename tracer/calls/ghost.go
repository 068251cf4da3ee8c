package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// graves is how many ended objects are remembered: the latest of those whose handles fall on the same place, as in
// shim/finding.c. Enough to tell a second release from something that was there before.
const graves = 1024

// grave is what is remembered of memory that has ended.
type grave struct {
	handle, object, size uint64
	died                 uint64
	tag                  uint32
	kind                 wire.Memory
	unsure               bool // something may live under its handle: itself, or another whose create was not seen
	held                 bool // it is one: it became an argument of a kernel since
}

func place(handle uint64) uint64 { return (handle * 0x9e3779b97f4a7c15) >> 54 }

func (b *Book) bury(s *wire.Sample, m *memory) {
	if b.graves == nil {
		b.graves = new([graves]grave)
	}
	g := &b.graves[place(m.handle)]
	*g = grave{handle: m.handle, died: s.Time, unsure: true}
	if b.sure(m) && s.Time < b.settled {
		return // what may live under its handle is another
	}
	g.object, g.size, g.tag, g.kind, g.unsure = m.number, m.size, m.tag, m.kind, !b.sure(m)
}

// ghost returns what is remembered of a handle whose memory has ended, nil when there is none.
func (b *Book) ghost(handle uint64) *grave {
	if b.graves == nil || handle == 0 {
		return nil
	}
	if g := &b.graves[place(handle)]; g.handle == handle {
		return g
	}
	return nil
}

// dead reports whether a handle's memory has surely ended, and writes a finding when the program names it nevertheless:
// but not when it ended while the call ran, for it may have been alive when the driver looked at it.
func (b *Book) dead(s *wire.Sample, handle uint64, code wire.Diag) bool {
	g := b.ghost(handle)
	if g == nil || g.unsure && g.died <= s.Entered {
		return false
	}
	if g.died <= s.Entered {
		b.tell(s, wire.Event{
			Kind: wire.KindDiag, Op: uint8(code), Tag: g.tag, Object: g.object, Granted: g.size,
		}, []byte(b.function))
	}
	return true
}

// finding writes a mistake about memory that is known.
func (b *Book) finding(s *wire.Sample, code wire.Diag, m *memory, kernel uint64, err int32) {
	b.tell(s, wire.Event{
		Kind: wire.KindDiag, Op: uint8(code), Scope: m.scope, Tag: m.tag, Object: m.number, Granted: m.size,
		Link: kernel, Status: status(err),
	}, []byte(b.function))
}
