package session

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestGarbageGoesWhenItIsCalm: with many call sites or buffers, memory that is not used goes back once no events have come for a while, but
// not before, and not again.
func TestGarbageGoesWhenItIsCalm(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // nothing else frees
	var g garbage
	waste := func() { _ = make([]byte, 64<<20) }
	released := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapReleased
	}
	debug.FreeOSMemory()
	waste()
	before := released()
	if g.limit(many-1, 1e6, 1); g.limited {
		t.Error("few are many")
	}
	g.limited = true
	g.limit(many, 2e6, 1)
	g.limit(many, 2e6+calmEvents, calmNS)
	if g.since == 0 {
		t.Fatal("it was given back while events came")
	}
	g.limit(0, 2e6+calmEvents, calmNS+2) // all were released
	for end := time.Now().Add(time.Minute); released() < before+60<<20; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d MiB given back, want 64", (released()-before)>>20)
		}
	}
	if g.limit(0, 2e6+calmEvents, 3*calmNS); g.since != 0 {
		t.Error("it is given back again, though nothing came")
	}
}
