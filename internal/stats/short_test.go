package stats

import (
	"runtime"
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
			s.Tick(s.time)
			s.Publish()
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
