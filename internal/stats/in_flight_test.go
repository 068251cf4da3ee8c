package stats

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// uses enqueues a command on a queue that uses an object, and returns its time.
func (s *stream) uses(object, queue uint64) uint64 {
	s.feed(wire.UseFields{Command: wire.CommandKernel, Object: object, Queue: queue}.Event())
	return s.time
}

// early makes a buffer of 64 bytes, uses it on a queue and releases it. It returns the time of the use.
func (s *stream) early(object, queue uint64) uint64 {
	s.miss(object, object, 60, 64, 1)
	used := s.uses(object, queue)
	s.release(object, wire.OutcomeDriver)
	return used
}

func (s *stream) syncs(op wire.Sync, queue uint64) {
	s.feed(wire.SyncFields{Sync: op, Queue: queue}.Event())
}

// waitsFor waits for a command in the thread, or in a command of a queue that comes next.
func (s *stream) waitsFor(queue, awaited, time uint64) {
	s.feed(wire.AwaitFields{Time: s.time + 2000, Queue: queue, AwaitedQueue: awaited, AwaitedTime: time}.Event())
}

// TestReleasedInFlight has what the program does after four releases in flight, three of them on queue 1, and what is held then.
func TestReleasedInFlight(t *testing.T) {
	for name, c := range map[string]struct {
		then func(s *stream, second uint64)
		want uint64
	}{
		"nothing":           {func(*stream, uint64) {}, 4},
		"flush":             {func(s *stream, _ uint64) { s.syncs(wire.SyncFlush, 1) }, 4},
		"finish":            {func(s *stream, _ uint64) { s.syncs(wire.SyncFinish, 1) }, 1},
		"finish of another": {func(s *stream, _ uint64) { s.syncs(wire.SyncFinish, 2) }, 3},
		"blocking":          {func(s *stream, _ uint64) { s.syncs(wire.SyncBlocking, 1) }, 1},
		"wait for the second": {func(s *stream, second uint64) {
			s.waitsFor(0, 1, second)
			s.syncs(wire.SyncWait, 0)
		}, 2},
		"wait for what is unknown": {func(s *stream, _ uint64) { s.syncs(wire.SyncWait, 0) }, 0},
		"wait for a command that waits for the second": {func(s *stream, second uint64) {
			s.waitsFor(2, 1, second)
			s.feed(wire.UseFields{Queue: 2}.Event())
			s.syncs(wire.SyncFinish, 2)
		}, 1},
		"blocking write": {func(s *stream, _ uint64) {
			s.feed(wire.UseFields{Command: wire.CommandWrite, Duration: 5, Queue: 1}.Event())
		}, 1},
		"queue ends":  {func(s *stream, _ uint64) { s.feed(wire.QueueFields{Life: wire.LifeEnd, Queue: 1}.Event()) }, 1},
		"lost events": {func(s *stream, _ uint64) { s.feed(wire.Event{Kind: wire.KindLost, Size: 1}) }, 0},
	} {
		s := newStream(Options{})
		s.early(1, 1)
		second := s.early(2, 1)
		s.early(3, 1)
		s.early(4, 2)
		c.then(s, second)
		got := s.Snapshot()
		f := got.Totals.InFlight
		if f.Now != 64*c.want || f.Peak != 4*64 || f.Releases != 4 || f.Bytes != 4*64 || got.Tags[len(got.Tags)-1].InFlight != f.Early {
			t.Errorf("%s: %+v, want %d held of 4; %+v", name, f, c.want, got.Tags)
		}
	}
}

// TestNotInFlight: what the program waited for, never used, or what no driver has to hold.
func TestNotInFlight(t *testing.T) {
	for name, does := range map[string]func(s *stream){
		"waited before": func(s *stream) {
			s.miss(1, 1, 60, 64, 1)
			s.uses(1, 7)
			s.syncs(wire.SyncFinish, 7)
			s.release(1, wire.OutcomeDriver)
		},
		"waited before, and the queue ended": func(s *stream) {
			s.miss(1, 1, 60, 64, 1)
			s.uses(1, 7)
			s.syncs(wire.SyncFinish, 7)
			s.feed(wire.QueueFields{Queue: 7, Life: wire.LifeEnd}.Event())
			s.release(1, wire.OutcomeDriver)
		},
		"waited for all before": func(s *stream) {
			s.miss(1, 1, 60, 64, 1)
			s.uses(1, 7)
			s.syncs(wire.SyncWait, 0)
			s.release(1, wire.OutcomeDriver)
		},
		"unused": func(s *stream) {
			s.miss(1, 1, 60, 64, 1)
			s.release(1, wire.OutcomeDriver)
		},
		"pooled": func(s *stream) {
			s.miss(1, 1, 60, 64, 1)
			s.uses(1, 7)
			s.release(1, wire.OutcomeCooling)
		},
		"the program's memory": func(s *stream) {
			s.feed(wire.CreateFields{Object: 1, Requested: 64, Granted: 64, Access: wire.UseHostPtr}.Event())
			s.uses(1, 7)
			s.release(1, wire.OutcomeDriver)
		},
		"shared memory": func(s *stream) {
			s.feed(wire.CreateFields{Object: 1, Requested: 64, Granted: 64, Memory: wire.MemorySVM}.Event())
			s.uses(1, 7)
			s.release(1, wire.OutcomeDriver)
		},
		"leaked": func(s *stream) {
			s.miss(1, 1, 60, 64, 1)
			s.uses(1, 7)
			s.feed(wire.Event{Kind: wire.KindExit})
		},
	} {
		s := newStream(Options{})
		does(s)
		if f := s.Snapshot().Totals.InFlight; f != (InFlight{}) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestPartsInFlight: a buffer is in flight while a sub-buffer of it is.
func TestPartsInFlight(t *testing.T) {
	s := newStream(Options{})
	s.feed(wire.CreateFields{Object: 1, Requested: 64, Granted: 64}.Event())
	s.feed(wire.CreateFields{Object: 2, Requested: 64, Memory: wire.MemorySubBuffer, Parent: 1}.Event())
	s.uses(2, 7)
	s.release(2, wire.OutcomeDriver)
	if f := s.Snapshot().Totals.InFlight; f != (InFlight{}) {
		t.Errorf("the sub-buffer has no memory: %+v", f)
	}
	s.release(1, wire.OutcomeDriver)
	if f := s.Snapshot().Totals.InFlight; f.Now != 64 || f.Releases != 1 {
		t.Errorf("%+v", f)
	}
}

// TestInFlightLeaves: what a process that ended held is no longer held in the run.
func TestInFlightLeaves(t *testing.T) {
	s := newStream(Options{})
	s.early(1, 1)
	s.thread = 0 // the session says that it is gone
	s.feed(wire.Event{Kind: wire.KindExit})
	s.process, s.thread = 2, 78
	s.early(1, 1)
	got := s.Snapshot()
	if f := got.Totals.InFlight; f.Now != 64 || f.Releases != 2 || got.Processes[0].Totals.InFlight.Now != 64 {
		t.Errorf("%+v, %+v", f, got.Processes[0].Totals.InFlight)
	}
}

// TestInFlightIsBounded: the figures stay right where more is held than is kept apart.
func TestInFlightIsBounded(t *testing.T) {
	var w waits
	for n := range uint64(heldMax + 10) {
		w.addHeldMemory(lastUse{1, n + 1}, 1)
	}
	if got := w.noteCommandEnded(lastUse{1, heldMax - 1}); got != heldMax-1 || len(w.queues[1].held) != 1 {
		t.Errorf("%d bytes are over, %d entries", got, len(w.queues[1].held))
	}
	if got := w.noteCommandEnded(lastUse{1, heldMax + 10}); got != 11 {
		t.Errorf("%d bytes are over at last", got)
	}
}
