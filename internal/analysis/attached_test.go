package analysis

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestBeforeAttach: what was there before is counted once, has no lifetime, and is no leak of a process that goes on.
func TestBeforeAttach(t *testing.T) {
	s := newTape()
	s.put(wire.Event{Kind: wire.KindSite, Tag: 1}, wire.BeforeAttach+"\t\t\t\n")
	carry := func(object, size uint64) {
		s.put(wire.Event{
			Kind: wire.KindCreate, Flags: wire.FlagCarried, Object: object, Tag: 1, Size: size, Granted: size,
		}, "")
	}
	carry(101, mib)
	mine := s.driver(2, mib)
	carry(101, 3*mib) // a larger part of it was used
	carry(102, mib)
	s.release(102, wire.OutcomeDriver)
	s.release(mine, wire.OutcomeDriver)
	s.Part = true
	a := s.analyse(t)
	if a.Run.Before != 2 {
		t.Errorf("%d buffers from before attach, want 2", a.Run.Before)
	}
	if len(a.Lifetimes) != 1 || a.Lifetimes[0].Count != 1 {
		t.Errorf("lifetimes %+v, want that of the buffer whose create was seen", a.Lifetimes)
	}
	if len(a.Leaks) != 0 {
		t.Errorf("leaks %+v of a process that goes on", a.Leaks)
	}
	if a.Peak.InUse != 5*mib || a.Snapshot.Totals.InUse != 3*mib || a.Snapshot.Unknown != 0 {
		t.Errorf("peak %d, in use %d, %d unknown", a.Peak.InUse, a.Snapshot.Totals.InUse, a.Snapshot.Unknown)
	}
	s.exit()
	s.Part = false
	if a := s.analyse(t); len(a.Leaks) != 1 || a.Leaks[0].Name != wire.BeforeAttach || a.Leaks[0].Bytes != 3*mib {
		t.Errorf("leaks %+v of a process that ended", a.Leaks)
	}
}
