package stats

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// mapped maps bytes of an object at a call site of its own.
func (s *stream) mapped(object uint64, tag uint32, offset, bytes uint64) {
	s.time += 1000
	for _, e := range []wire.Event{
		wire.TransferFields{Time: s.time, Site: tag}.Event(),
		wire.UseFields{Time: s.time, Command: wire.CommandMap, Object: object, Tag: 99, Offset: offset, Bytes: bytes}.Event(),
	} {
		s.feed(e)
	}
}

func (s *stream) unmapped(object uint64) {
	s.feed(wire.UseFields{Command: wire.CommandUnmap, Object: object, Scattered: true}.Event())
}

func onlyPair(t *testing.T, s *stream, kind ObjectType) ObjectSite {
	t.Helper()
	shown := s.Snapshot().Pairs
	if len(shown) != 1 || shown[0].Type != kind || len(shown[0].Sites) != 1 {
		t.Fatalf("pairs %+v", shown)
	}
	return shown[0].Sites[0]
}

// Mappings of the same bytes are counted by the call site of the map until an unmap ends them.
func TestMappingLastsUntilItsUnmap(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 100, 100, 9)
	s.unmapped(1) // of a map before the first record
	for range 10 {
		s.mapped(1, 5, 0, 100)
	}
	s.mapped(1, 5, 50, 50)
	s.mapped(7, 5, 0, 100) // memory that is not known
	s.unmapped(1)
	got := onlyPair(t, s, Mappings)
	if got.Tag != "tag 5" || got.Created != 11 || got.Live != 10 || got.Deepest != 9 || got.Forgotten != 0 || got.Guessed {
		t.Errorf("%+v", got)
	}
	s.release(1, wire.OutcomeDriver)
	if got := onlyPair(t, s, Mappings); got.Live != 10 || got.Deepest != 9 || got.Forgotten != 10 {
		t.Errorf("after the release: %+v", got)
	}
	if objects := s.Snapshot().Objects; len(objects) != 0 {
		t.Errorf("objects %+v", objects)
	}
}

// An unmap ends the latest map, whichever call site that has.
func TestMappingsOfTwoSites(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 100, 100, 9)
	for range 3 {
		s.mapped(1, 5, 0, 100)
		s.mapped(1, 6, 0, 100)
		s.unmapped(1)
	}
	sites := s.Snapshot().Pairs[0].Sites
	if len(sites) != 2 || sites[0].Tag != "tag 5" || sites[0].Live != 3 || sites[1].Live != 0 || !sites[0].Guessed {
		t.Errorf("%+v", sites)
	}
	if holds := s.HeldObjectCounts(1)[Mappings]; holds != 3 {
		t.Errorf("the process holds %d mappings", holds)
	}
}

// What is acquired from OpenGL stays so until it is released to it.
func TestAcquisitionLastsUntilItsRelease(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 100, 100, 9)
	share := func(command wire.Command) {
		s.feed(wire.UseFields{Command: command, Object: 1, Tag: 9, Scattered: true}.Event())
	}
	for range 20 {
		share(wire.CommandAcquire)
		share(wire.CommandRelease)
	}
	if got := onlyPair(t, s, Acquisitions); got.Live != 0 || got.Created != 20 || got.Deepest != 0 {
		t.Errorf("%+v", got)
	}
	for range 10 {
		share(wire.CommandAcquire)
	}
	if got := onlyPair(t, s, Acquisitions); got.Tag != "tag 9" || got.Live != 10 || got.Deepest != 10 {
		t.Errorf("%+v", got)
	}
}

// References are those that retains took, by call site of the retain where that is known, and what a process that ends has stays.
func TestReferencesAreThoseOfRetains(t *testing.T) {
	for site, tag := range map[uint32]string{0: "tag 9", 8: "tag 8"} {
		s := newStream(Options{})
		s.miss(1, 1, 100, 100, 9)
		for n := range uint64(3) {
			s.feed(wire.RetainFields{Object: 1, Tag: 9, Site: site, References: n + 2}.Event())
		}
		s.feed(wire.ReleaseFields{Object: 1, References: 3}.Event())
		s.NoteProcessEnded(1, End{Status: 0}, s.time+1)
		s.process = 2
		s.miss(1, 1, 100, 100, 9) // another process: the first one leaves
		got := onlyPair(t, s, References)
		if got.Created != 3 || got.Live != 2 || got.Deepest != 2 || got.Forgotten != 0 || got.Tag != tag || got.Own != (site != 0) {
			t.Errorf("%+v", got)
		}
	}
}
