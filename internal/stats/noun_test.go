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
		if all, alive := Noun(c.kinds, false), Noun(c.kinds, true); all != c.all || alive != c.alive {
			t.Errorf("%v: %q and %q", c.kinds, all, alive)
		}
	}
}
