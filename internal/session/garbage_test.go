package session

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestGarbageGoesWhenItIsCalm: with many call sites, memory that is not used goes back once no events have come for a while, but
// not before, and not again.
func TestGarbageGoesWhenItIsCalm(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // nothing else frees
	g := garbage{limited: true}
	waste := func() { _ = make([]byte, 64<<20) }
	released := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapReleased
	}
	debug.FreeOSMemory()
	waste()
	before := released()
	g.limit(manySites-1, 1e6, 1)
	g.limit(manySites, 2e6, 1)
	g.limit(manySites, 2e6+calmEvents, calmNS)
	if g.since == 0 {
		t.Fatal("it was given back while events came")
	}
	g.limit(manySites, 2e6+calmEvents, calmNS+2)
	for end := time.Now().Add(time.Minute); released() < before+60<<20; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d MiB given back, want 64", (released()-before)>>20)
		}
	}
	if g.limit(manySites, 2e6+calmEvents, 3*calmNS); g.since != 0 {
		t.Error("it is given back again, though nothing came")
	}
}
