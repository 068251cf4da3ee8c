package stats

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// spill reports something about a buffer of 100 bytes, and what the process has afterwards.
func (s *stream) spill(what wire.Spill, object, resident, spilled uint64) {
	s.feed(wire.SpillFields{Spill: what, Object: object, Bytes: 100, Duration: 4, Tag: 1, Resident: resident, Spilled: spilled}.Event())
}

// TestSpillIsOfAllProcesses: figures of --spill are those of all processes, and end with these.
func TestSpillIsOfAllProcesses(t *testing.T) {
	s := newStream(Options{})
	s.spill(wire.SpillFirst, 1, 100, 0)
	s.spill(wire.SpillFirst, 2, 200, 0)
	if s.Snapshot().Spill != nil {
		t.Error("figures before anything left the device")
	}
	s.spill(wire.SpillOut, 1, 100, 100)
	s.spill(wire.SpillFirst, 3, 200, 100)
	s.spill(wire.SpillClean, 2, 100, 200)
	s.spill(wire.SpillIn, 1, 200, 100)
	s.spill(wire.SpillStall, 1, 200, 100)
	s.process = 2
	s.spill(wire.SpillFirst, 1, 50, 0)
	got := s.Snapshot().Spill
	want := &Spill{
		Resident: 250, PeakResident: 250, Spilled: 100, PeakSpilled: 200,
		Out: Moves{1, 100, 4}, In: Moves{1, 100, 4}, Clean: Moves{1, 100, 4}, Stalls: Moves{1, 0, 4},
		WorkingSet: 300, // 200 with itself, and the 100 that left after it
		Needed:     100, NeededSite: "(untagged)", Sites: []SpillSite{{"(untagged)", Moves{1, 100, 4}, Moves{1, 100, 4}}},
	}
	want.Thrashing = got.Thrashing
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	s.process = 1
	s.NoteProcessEnded(1, End{Status: 0, Signal: 0}, s.time+1)
	s.AdvanceTime(s.time + 1e12)
	if got := s.Snapshot().Spill; got.Resident != 50 || got.Spilled != 0 || got.Thrashing {
		t.Errorf("after the first process: %+v", got)
	}
}

// TestWaitingForATenthIsThrashing: a program that waits for moves for a tenth of the time since the first is thrashing.
func TestWaitingForATenthIsThrashing(t *testing.T) {
	for _, test := range []struct {
		stalled uint32
		want    bool
	}{{99_000, false}, {110_000, true}} {
		s := newStream(Options{})
		s.spill(wire.SpillOut, 1, 0, 100)
		began := s.time
		s.spill(wire.SpillIn, 1, 100, 0)
		s.feed(wire.SpillFields{Spill: wire.SpillStall, Duration: test.stalled, Resident: 100}.Event())
		s.AdvanceTime(began + 1_000_000)
		if got := s.Snapshot().Spill; got.Thrashing != test.want {
			t.Errorf("waited %d of 1 ms: %+v", test.stalled, got)
		}
		s.NoteProcessEnded(s.process, End{Status: 0, Signal: 0}, began+1_000_000)
		s.AdvanceTime(began + 1e12) // what is looked at after the end
		if got := s.Snapshot().Spill; got.Thrashing != test.want {
			t.Errorf("waited %d of 1 ms, and ended: %+v", test.stalled, got)
		}
	}
}

// TestPostMortemWhileSpilling: what the device has is what got memory there, and what cannot leave it.
func TestPostMortemWhileSpilling(t *testing.T) {
	s := newStream(Options{})
	s.card()
	for i := range uint64(4) { // the last is never used
		s.miss(i+1, i+1, 400*kib, 400*kib, 1)
	}
	s.feed(wire.CreateFields{Outcome: wire.OutcomeDriver, Memory: wire.MemorySVM, Object: 5, Requested: 100 * kib, Granted: 100 * kib}.Event())
	s.feed(wire.CreateFields{Outcome: wire.OutcomeDriver, Access: wire.UseHostPtr, Object: 6, Requested: 50 * kib, Granted: 50 * kib}.Event())
	s.spill(wire.SpillOut, 1, 400*kib, 800*kib)
	s.process = 2
	s.miss(1, 1, 300*kib, 300*kib, 1)
	s.spill(wire.SpillOut, 1, 0, 200*kib)
	s.process = 1
	s.commandFails(-4)
	p := s.Snapshot().PostMortems[0]
	if p.Resident != 550*kib || p.BytesOnDevice() != p.Resident || p.Spilled != 800*kib || p.Others != 100*kib || p.Verdict != VerdictFull {
		t.Errorf("%d KiB on the device, %d KiB spilled, others %d KiB, %v", p.BytesOnDevice()/kib, p.Spilled/kib, p.Others/kib, p.Verdict)
	}
}
