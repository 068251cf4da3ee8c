package stats

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// short feeds a process that ends: it leaks a buffer of 64 bytes, has one served twice, fails once, and forgets an event. Every
// tenth is killed.
func (s *stream) short(number uint32) {
	s.process = number
	s.feed(wire.Event{Kind: wire.KindProcess, Object: uint64(number) + 1000, Link: 1}, []byte("/bin/tiny\x00")...)
	s.feed(wire.Event{Kind: wire.KindTag, Tag: 1})
	s.feed(wire.Event{Kind: wire.KindTag, Tag: 2})
	s.miss(1, 1, 64, 64, 1)
	s.miss(2, 2, 100, 128, 2)
	s.site(1, "keep\tleak.c\t1\ttiny+0x1")
	s.site(2, "work\tleak.c\t2\ttiny+0x2")
	s.release(2, wire.OutcomeCached)
	s.hit(3, 2, 120, 128, 2)
	s.release(3, wire.OutcomeCached)
	s.feed(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeFailed, Size: 1 << 40, Status: -61})
	s.counted(wire.HeldEvent, 2, 3, 2, 3)
	s.move(wire.UseFields{Command: wire.CommandWrite, Writes: true, Object: 1, Bytes: 10, Tag: 2}, wire.TransferFields{})
	status := 0
	if number%10 == 0 {
		status = 9
	}
	s.NoteProcessEnded(number, End{Status: 0, Signal: status}, s.time)
}

// TestManyShortProcesses: those that ended long ago are one row, totals are exact, and memory does not grow.
func TestManyShortProcesses(t *testing.T) {
	const processes = 25_000
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // otherwise most of the time goes there
	s := newStream(Options{})
	var before, after runtime.MemStats
	for n := range uint32(processes) {
		if n == processes/5 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		s.short(n + 1)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	shot := s.Snapshot()
	t.Logf("%d MiB", after.HeapAlloc>>20)
	if after.HeapAlloc > before.HeapAlloc+before.HeapAlloc/4 || after.HeapAlloc > 128<<20 {
		t.Errorf("the model takes %d bytes, after a fifth of the processes %d", after.HeapAlloc, before.HeapAlloc)
	}
	if shot.ProcessCount() != processes || len(shot.Processes) > leftMax+3 || len(shot.Exceeded) > 0 || shot.Unknown > 0 {
		t.Errorf("%d processes, %d rows, %q, %d unknown", shot.ProcessCount(), len(shot.Processes), shot.Exceeded, shot.Unknown)
	}
	row := &shot.Processes[1]
	if row.Number != FoldedNumber || row.Program != fmt.Sprintf("%d ended processes", row.Folded) || shot.Processes[0].Number != 1 {
		t.Errorf("row is %+v", row)
	}
	sum := func(of func(*Totals) uint64) (all uint64) {
		for i := range shot.Processes {
			all += of(&shot.Processes[i].Totals)
		}
		return all
	}
	for name, f := range map[string]struct {
		of    func(*Totals) uint64
		each  uint64
		whole bool // so in Snapshot.Totals
	}{
		"creates": {func(t *Totals) uint64 { return t.Creates }, 3, true}, "hits": {func(t *Totals) uint64 { return t.Hits }, 1, true},
		"failures": {func(t *Totals) uint64 { return t.Failures }, 1, true}, "releases": {func(t *Totals) uint64 { return t.Releases }, 2, true},
		"requested": {func(t *Totals) uint64 { return t.BytesRequested }, 284, true}, "driver": {func(t *Totals) uint64 { return t.DriverNS }, 1600, true},
		"allocated": {func(t *Totals) uint64 { return t.BytesAllocated }, 192, true}, "leaked": {func(t *Totals) uint64 { return t.InUse }, 64, false},
		"buffers": {func(t *Totals) uint64 { return t.LiveBuffers }, 1, false}, "cached": {func(t *Totals) uint64 { return t.Cached }, 128, false},
	} {
		if got := sum(f.of); got != f.each*processes || f.whole && f.of(&shot.Totals) != got {
			t.Errorf("%s: the rows have %d, the totals %d; want %d", name, got, f.of(&shot.Totals), f.each*processes)
		}
	}
	if row.Totals.PeakInUse != 192 || shot.Totals.PeakInUse != 192 {
		t.Errorf("the row's peak is %d, that of all %d", row.Totals.PeakInUse, shot.Totals.PeakInUse)
	}
	if keep := tagNamed(t, shot, "leak.c:1 keep"); keep.Creates != processes || len(shot.Tags) > 5 {
		t.Errorf("%d tags, %+v", len(shot.Tags), keep)
	}
	if o := shot.Objects[0]; o.Created != 3*processes || o.Leaked != processes*9/10 || len(o.Sites) != 1 {
		t.Errorf("events: %+v", o)
	}
	if x := shot.Transfers; x.OtherSites > 0 || len(x.Sites) != 1 || x.Sites[0].Calls != processes {
		t.Errorf("transfers: %d other sites, %+v", x.OtherSites, x.Sites)
	}
	if shot.WasAllHeldByKilled() {
		t.Error("processes that leaked are taken for killed ones")
	}
	s.process = 7 // folded
	s.feed(wire.Event{Kind: wire.KindSync})
	if got := s.Snapshot(); got.ProcessCount() != processes || got.Unknown != 1 {
		t.Errorf("a late record: %d processes, %d unknown", got.ProcessCount(), got.Unknown)
	}
}

// TestFoldedTotals: every figure adds up, is a peak, or is left out on purpose.
func TestFoldedTotals(t *testing.T) {
	var total Totals
	known := map[uint64]string{}
	for _, n := range slices.Concat(total.summedFields(), total.maximumFields()) {
		*n = uint64(len(known)) + 1
		known[*n] = ""
	}
	out := []string{
		"SavedTouches", "Plans", "Held", "PeakInUseTime", "CreatesTimed", "DriverTimed", "CreateP50NS", "CreateP99NS", "DriverCreateP50", "DriverCreateP99", "Squares",
		"FailedWith", // below
	}
	v := reflect.ValueOf(total)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; !slices.Contains(out, name) && v.Field(i).IsZero() {
			t.Errorf("%s is forgotten", name)
		}
	}
	row, a, b := Process{}, Process{}, Process{}
	a.Totals.FailedWith = [StatusesMax]StatusCount{{-4, 3}, {-61, 1}}
	b.Totals.FailedWith = [StatusesMax]StatusCount{{-61, 2}, {-5, 1}}
	a.DeviceMemory, a.Totals.PeakReserved = 9, 5
	b.DeviceMemory, b.Totals.PeakReserved = 7, 4
	row.addFolded(&a)
	row.addFolded(&b)
	if row.DeviceMemory != 9 {
		t.Errorf("device memory %d, want that of the process with the peak", row.DeviceMemory)
	}
	if want := [StatusesMax]StatusCount{{-4, 3}, {-61, 3}, {-5, 1}}; row.Totals.FailedWith != want {
		t.Errorf("failures by status: %v, want %v", row.Totals.FailedWith, want)
	}
}
