package stats

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestNoun: objects are called what all of them are, with live only those that live.
func TestNoun(t *testing.T) {
	kind := func(m wire.Memory, live uint64) Kind { return Kind{m, Share{Live: live}} }
	for _, c := range []struct {
		kinds      []Kind
		all, alive string
	}{
		{nil, "buffer", "buffer"},
		{[]Kind{kind(wire.MemoryImage, 0)}, "image", "buffer"},
		{[]Kind{kind(wire.MemoryBuffer, 0), kind(wire.MemoryImage, 1)}, "memory object", "image"},
		{[]Kind{kind(wire.MemorySVM, 1)}, "SVM allocation", "SVM allocation"},
		{[]Kind{kind(wire.MemoryUSMDevice, 1)}, "USM allocation", "USM allocation"},
		{[]Kind{kind(wire.MemoryExternal, 1)}, "memory object", "memory object"},
		{[]Kind{kind(255, 1)}, "memory object", "memory object"},
	} {
		if all, alive := NounForMemory(c.kinds, false), NounForMemory(c.kinds, true); all != c.all || alive != c.alive {
			t.Errorf("%v: %q and %q", c.kinds, all, alive)
		}
	}
}

// TestCreatesCopy: what a create copies is a transfer of its own kind; a create that copies nothing is none.
func TestCreatesCopy(t *testing.T) {
	s := newStream(Options{})
	for object, access := range []uint16{0, wire.CopyHostPtr, wire.CopyHostPtr} {
		s.feed(wire.Event{Kind: wire.KindCreate, Object: uint64(object + 1), Link: uint64(object + 1), Size: 100, Granted: 128, Tag: 1, Access: access})
	}
	got := s.Snapshot().Transfers
	if f := got.Directions[AtCreate]; f.Calls != 2 || f.Bytes != 200 || len(got.Sites) != 1 || got.Sites[0].CommandText() != "at create" {
		t.Errorf("%+v", got)
	}
}
