package stats

import (
	"runtime"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestShortProcesses: what stays of a process that is gone is little, however long the session lasts.
func TestShortProcesses(t *testing.T) {
	s := newStream(Options{})
	bytes := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	run := func(from, to uint32) {
		for n := from; n < to; n++ {
			s.process = n
			s.feed(wire.Event{Kind: wire.KindDevice, Object: 1, Granted: 16 << 30, Link: 4 << 30}, []byte("device\x00v1\x00")...)
			s.miss(1, 1, 64, 64, 1)
			s.release(1, wire.OutcomeDriver)
			s.Apply(&wire.Record{Event: wire.ExitFields{Time: s.time}.Event(), Process: n})
			s.time += slotNS
			s.AdvanceTime(s.time)
			s.PublishSnapshot()
		}
	}
	const processes, most = 300, 9 << 10
	run(1, 100)
	before := bytes()
	run(100, 100+processes)
	if each := (bytes() - before) / processes; each > most {
		t.Errorf("%d bytes for each process, want at most %d", each, most)
	} else {
		t.Logf("%d bytes for each process", each)
	}
	runtime.KeepAlive(s)
}

// TestNothingIsIdleAfterItsEnd: what a process leaves in its pool when it ends does not become idle whether or not another one goes on.
func TestNothingIsIdleAfterItsEnd(t *testing.T) {
	for _, others := range []bool{false, true} {
		s := newStream(Options{})
		if others {
			s.process = 2
			s.miss(1, 1, 50, 50, 0)
			s.process = 1
		}
		s.miss(1, 1, 300, 300, 0)
		s.miss(2, 2, 100, 100, 0)
		const second = 1_000_000_000
		s.feed(wire.Event{Kind: wire.KindRelease, Object: 1, Outcome: wire.OutcomeCached, Time: streamStart + second})
		s.feed(wire.Event{Kind: wire.KindRelease, Object: 2, Outcome: wire.OutcomeCached, Time: streamStart + 7*second})
		s.AdvanceTime(streamStart + 7*second + second/10)
		s.NoteProcessEnded(1, End{}, streamStart+7*second+second/10)
		s.AdvanceTime(streamStart + 60*second)
		run := s.Snapshot()
		got := run.Processes[slices.IndexFunc(run.Processes, func(p Process) bool { return p.Number == 1 })].Totals
		if got.Idle != 300 || got.Cached != 400 {
			t.Errorf("others: %t: %d of %d are idle, want 300 of 400", others, got.Idle, got.Cached)
		}
		if run.Totals.PeakIdle != 300 {
			t.Errorf("others: %t: %d were idle at most, want 300", others, run.Totals.PeakIdle)
		}
	}
}

// TestIdleInExitHandlers: until the process is gone what it has may become idle, however late its exit handlers end.
func TestIdleInExitHandlers(t *testing.T) {
	s := newStream(Options{})
	const second = 1_000_000_000
	s.miss(1, 1, 300, 300, 0)
	s.feed(wire.Event{Kind: wire.KindRelease, Object: 1, Outcome: wire.OutcomeCached, Time: streamStart + 7*second})
	exit := wire.ExitFields{Time: streamStart + 7*second}.Event()
	s.feed(exit)
	s.AdvanceTime(streamStart + 10*second)
	s.NoteProcessEnded(1, End{}, streamStart+12*second)
	s.AdvanceTime(streamStart + 60*second)
	if got := s.Snapshot().Totals.Idle; got != 300 {
		t.Errorf("%d are idle, want 300", got)
	}
}
