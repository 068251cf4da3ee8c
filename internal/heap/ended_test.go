package heap_test

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// A process that only says that it exits is gone a second later.
func TestProcessThatExitsIsGoneASecondLater(t *testing.T) {
	run := heap.New(heap.Options{EndProcesses: true})
	step := func(process uint32, time uint64, kind wire.Kind) {
		r := wire.Record{Process: process, Thread: 7}
		r.Time, r.Kind, r.Object, r.Size, r.Granted = time, kind, 1, 10, 10
		run.Apply(&r)
	}
	step(1, 0, wire.KindCreate)
	step(2, 0, wire.KindCreate)
	step(1, 5, wire.KindExit)
	step(2, 4+heap.Grace, wire.KindSync)
	if run.InUse != 20 {
		t.Errorf("%d in use while it exits, want 20", run.InUse)
	}
	step(2, 5+heap.Grace, wire.KindSync)
	if run.InUse != 10 {
		t.Errorf("%d in use when it is gone, want 10", run.InUse)
	}
}

// What a process has in use at the end is no leak if it was aborted, or goes on.
func TestHowLeft(t *testing.T) {
	short := wire.CreateFields{Outcome: wire.OutcomeFailed, Status: wire.MemObjectAllocationFailure, Object: 2, Requested: 10}.Event()
	large := wire.CreateFields{Memory: wire.MemorySVM, Outcome: wire.OutcomeFailed, Status: wire.InvalidValue, Requested: 10}.Event()
	device := wire.DeviceFields{LargestAlloc: 9}.Record(nil).Event
	command := wire.DiagFields{Diag: wire.DiagOutOfMemory}.Record(nil).Event
	exit := func(status int16) wire.Event { return wire.ExitFields{Status: status}.Event() }
	handlers := wire.Event{Kind: wire.KindExit, Access: 1} // Access: the record's thread
	with139 := wire.Event{Kind: wire.KindExit, Access: 1, Status: 139}
	for name, c := range map[string]struct {
		events []wire.Event
		want   heap.How
	}{
		"exit handlers ran":      {[]wire.Event{handlers, exit(0)}, heap.Leaked},
		"with a status":          {[]wire.Event{with139, exit(139)}, heap.Leaked},
		"a signal after exit":    {[]wire.Event{handlers, exit(139)}, heap.Held},
		"_exit":                  {[]wire.Event{exit(7)}, heap.Leaked},
		"a signal":               {[]wire.Event{exit(139)}, heap.Held},
		"_exit(255)":             {[]wire.Event{exit(255)}, heap.Leaked},
		"the last signal":        {[]wire.Event{exit(128 + 64)}, heap.Held},
		"nothing is known":       {[]wire.Event{exit(-1)}, heap.Held},
		"another's child":        {[]wire.Event{handlers, exit(-1)}, heap.Leaked},
		"gave up":                {[]wire.Event{short, handlers, exit(1)}, heap.Held},
		"gave up after commands": {[]wire.Event{command, exit(1)}, heap.Held},
		"asked for too much":     {[]wire.Event{device, large, exit(1)}, heap.Held},
		"gave a wrong value":     {[]wire.Event{large, exit(1)}, heap.Leaked},
		"did without":            {[]wire.Event{short, handlers, exit(0)}, heap.Leaked},
		"goes on":                {nil, heap.Cut},
	} {
		run := heap.New(heap.Options{})
		run.Apply(&wire.Record{Process: 1, Event: wire.ProcessFields{PID: 7}.Record(nil).Event})
		for _, e := range c.events {
			run.Apply(&wire.Record{Process: 1, Thread: uint32(e.Access), Event: e})
		}
		if got := run.FindProcess(1).HowMemoryEnds(false); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Processes that end one after the other each go once.
func TestProcessesLeave(t *testing.T) {
	run := heap.New(heap.Options{EndProcesses: true})
	step := func(process uint32, kind wire.Kind) {
		r := wire.Record{Process: process}
		r.Kind, r.Object, r.Size, r.Granted = kind, 1, 10, 10
		run.Apply(&r)
	}
	const processes = 5
	for process := range uint32(processes) {
		step(process, wire.KindCreate)
	}
	for process := range uint32(processes - 1) {
		step(process, wire.KindExit)
		step(processes-1, wire.KindSync)
		if want := int64(10 * (processes - 1 - process)); run.InUse != want {
			t.Errorf("%d in use when %d processes are gone, want %d", run.InUse, process+1, want)
		}
	}
}

// Creates beyond the bound are counted and change nothing; what ends makes room.
func TestTooManyEntries(t *testing.T) {
	run := heap.New(heap.Options{EntriesMax: 4})
	step := func(kind wire.Kind, object, bytes uint64) {
		r := wire.Record{Process: 1}
		r.Kind, r.Object, r.Size, r.Granted = kind, object, bytes, bytes
		run.Apply(&r)
	}
	for object := range uint64(6) {
		step(wire.KindCreate, 1+object, 10)
	}
	step(wire.KindRelease, 1, 0)
	step(wire.KindCreate, 7, 10)
	if run.InUse != 40 || run.Live != 4 || run.Beyond != 2 || run.Unknown != 0 {
		t.Errorf("%d in use by %d, %d beyond, %d unknown", run.InUse, run.Live, run.Beyond, run.Unknown)
	}
}

// Time is that of the latest record that shows it, at first of any, and never goes back.
func TestNow(t *testing.T) {
	run := heap.New(heap.Options{})
	if p := run.FindProcess(1); p != nil {
		t.Errorf("found %+v before the first record", p)
	}
	for i, c := range []struct {
		kind       wire.Kind
		time, want uint64
	}{{wire.KindProcess, 7, 7}, {wire.KindProcess, 9, 7}, {wire.KindSync, 8, 8}, {wire.KindSync, 6, 8}} {
		run.Apply(&wire.Record{Process: 1, Event: wire.Event{Kind: c.kind, Time: c.time}})
		if run.Now() != c.want || run.FindProcess(1) == nil {
			t.Errorf("record %d: it is %d, want %d", i, run.Now(), c.want)
		}
	}
}
