package stats

import (
	"fmt"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestLongUnused has one buffer that is used to the end, and two of another call site that are not.
func TestLongUnused(t *testing.T) {
	const second = 1_000_000_000
	for name, c := range map[string]struct {
		seconds uint64
		then    func(s *stream) // afterwards
		want    LongUnused
	}{
		"long":               {60, func(*stream) {}, LongUnused{"tag 3", 30, 2, 60 * second}},
		"a second, and more": {1, func(*stream) {}, LongUnused{"tag 3", 10, 1, second + 2000}},
		"used again":         {60, func(s *stream) { s.finished(2) }, LongUnused{"tag 3", 10, 1, 60*second + 4000}},
		"released":           {60, func(s *stream) { s.release(2, wire.OutcomeDriver); s.release(3, wire.OutcomeDriver) }, LongUnused{}},
		"still in use":       {60, func(s *stream) { s.uses(2, 2); s.uses(3, 2) }, LongUnused{}},
		"ended":              {60, func(s *stream) { s.thread = 0; s.feed(wire.ExitFields{}.Event()) }, LongUnused{}},
		"too many": {60, func(s *stream) {
			for i := range uint64(unusedObjectsMax) {
				s.miss(10+i, 10+i, 1, 1, 3)
			}
		}, LongUnused{}},
	} {
		s := newStream(Options{})
		s.miss(1, 1, 100, 100, 2)
		s.miss(2, 2, 20, 20, 3)
		s.miss(3, 3, 10, 10, 3)
		s.finished(3)
		s.finished(2)
		for range c.seconds {
			s.time += second - 2000
			s.finished(1)
		}
		c.then(s)
		if got := s.Snapshot().LongUnused; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// finished runs a command that uses an object to its end.
func (s *stream) finished(object uint64) {
	s.uses(object, 1)
	s.feed(wire.SyncFields{Sync: wire.SyncFinish, Queue: 1, Duration: 500}.Event())
}

// A look is worth a second.
func TestLongUnusedIsLookedForOnceASecond(t *testing.T) {
	s := newStream(Options{})
	s.finished(1)
	seen := ""
	for range 3 {
		s.Snapshot()
		seen += fmt.Sprintln(s.unused.looked)
		s.time += unusedLookNS / 2
		s.syncs(wire.SyncFinish, 1)
	}
	if want := fmt.Sprintf("%d\n%[1]d\n%d\n", streamStart+2000, streamStart+4000+unusedLookNS); seen != want {
		t.Errorf("looked at\n%swant\n%s", seen, want)
	}
}
