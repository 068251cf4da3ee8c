package stats

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// checkOwn checks that what a snapshot shows of each process adds up to the totals of that process, and that its
// tags are among those of all.
func checkOwn(t *testing.T, s *Snapshot) {
	t.Helper()
	names := map[uint32]string{}
	for i := range s.Tags {
		names[s.Tags[i].ID] = s.Tags[i].Name
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		if len(s.Processes) == 1 {
			if p.Tags != nil || p.History != nil {
				t.Error("the only process has tags of its own")
			}
			return
		}
		if diff := cmp.Diff(sums(&p.Totals), addTags(t, p.Tags)); diff != "" {
			t.Errorf("tags of process %d do not add up (-totals +tags):\n%s", p.Number, diff)
		}
		for k := range p.Tags {
			if tag := &p.Tags[k]; names[tag.ID] != tag.Name {
				t.Errorf("tag %d of process %d is %q, of all %q", tag.ID, p.Number, tag.Name, names[tag.ID])
			}
		}
		if len(p.History) > processHistoryMax {
			t.Errorf("process %d has a history of %d samples", p.Number, len(p.History))
		}
	}
}

// twoBlurs is a run of two processes with the same site, which the second has under two tags. Each has a free block.
func twoBlurs() *stream {
	s := newStream(Options{})
	for s.process = 1; s.process <= 2; s.process++ {
		n := uint64(s.process)
		s.miss(1, 1, 64*n, 64*n, 7)
		s.miss(2, 2, 32, 32, 7)
		s.release(2, wire.OutcomeCached)
		s.site(7, "blur\tblur.c\t88\tx+1")
	}
	s.process = 2
	s.miss(3, 3, 16, 16, 9)
	s.miss(4, 4, 32, 32, 9)
	s.release(4, wire.OutcomeCached)
	s.site(9, "blur\tblur.c\t88\tx+2")
	return s
}

func TestProcessesShareATag(t *testing.T) {
	snapshot := twoBlurs().Snapshot()
	checkConsistent(t, snapshot)
	checkOwn(t, snapshot)
	all := tagNamed(t, snapshot, "blur.c:88 blur")
	if len(snapshot.Tags) != 1 || all.InUse != 64+128+16 || len(all.Free) != 1 || all.Free[0].Blocks != 3 {
		t.Errorf("all have %+v, want one tag with 208 bytes and three free blocks of one size", snapshot.Tags)
	}
	for i, want := range []struct{ inUse, blocks, peak uint64 }{{64, 1, 96}, {144, 2, 160}} {
		tags := snapshot.Processes[i].Tags
		if len(tags) != 1 || tags[0].InUse != want.inUse || len(tags[0].Free) != 1 || tags[0].Free[0].Blocks != want.blocks ||
			tags[0].PeakInUse != want.peak {
			t.Errorf("process %d has %+v, want one tag with %+v", i+1, tags, want)
		}
	}
}

// What a process had when it ended is still shown of it when it is off the common gauges, under names that came later.
func TestEndedProcessKeepsItsTags(t *testing.T) {
	s := twoBlurs()
	s.miss(5, 5, 8, 8, 4)
	before := s.Snapshot().Processes[1].Tags
	s.NoteProcessEnded(2, End{Status: 0, Signal: 0}, s.time)
	s.process = 1
	s.hit(9, 2, 32, 32, 7)
	s.process = 2
	s.site(4, "late\tlate.c\t1\tx+3")
	snapshot := s.Snapshot()
	checkOwn(t, snapshot)
	if got := tagNamed(t, snapshot, "blur.c:88 blur"); got.InUse != 64+32 || got.Cached != 0 || len(got.Free) != 0 {
		t.Errorf("all have %+v, want the 96 bytes of the process that runs, and nothing free", got)
	}
	after := snapshot.Processes[1].Tags
	for i := range before {
		if before[i].Name == "tag 4" {
			before[i].Name, before[i].Stack, before[i].Module = "late.c:1 late", []string{"late late.c:1"}, "x+3"
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("tags of the ended process (-before +after):\n%s", diff)
	}
}

// A tag that an ended process used gets a name that others have: what is left of it joins theirs.
func TestEndedProcessGetsAKnownName(t *testing.T) {
	s := twoBlurs()
	s.miss(5, 5, 8, 8, 4)
	s.NoteProcessEnded(2, End{Status: 0, Signal: 0}, s.time)
	s.process = 1
	s.hit(9, 2, 32, 32, 7)
	s.process = 2
	s.site(4, "blur\tblur.c\t88\tx+3")
	snapshot := s.Snapshot()
	checkOwn(t, snapshot)
	if got := tagNamed(t, snapshot, "blur.c:88 blur"); got.Creates != 8 || got.InUse != 64+32 {
		t.Errorf("%+v, want the creates of both processes and the 96 bytes of one", got)
	}
}

// The history of a process begins when it does, and has its memory alone.
func TestHistoryOfAProcess(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 1000, 1000, 1)
	s.AdvanceTime(streamStart + 20*slotNS)
	s.time = streamStart + 20*slotNS
	s.process = 2
	s.miss(1, 1, 64, 64, 1)
	s.AdvanceTime(streamStart + 25*slotNS)
	snapshot := s.Snapshot()
	first, second := &snapshot.Processes[0], &snapshot.Processes[1]
	if len(first.History) != 25 || len(second.History) != 5 {
		t.Fatalf("%d and %d samples, want 25 and 5", len(first.History), len(second.History))
	}
	if last := len(snapshot.History) - 1; second.History[4].Time != snapshot.History[last].Time {
		t.Errorf("the process's history ends at %d, that of all at %d", second.History[4].Time, snapshot.History[last].Time)
	}
	if second.History[0].InUse != 64 || first.History[24].InUse != 1000 || snapshot.History[24].InUse != 1064 {
		t.Errorf("in use: %d and %d, together %d", second.History[0].InUse, first.History[24].InUse, snapshot.History[24].InUse)
	}
	if first.Window.Creates != 0 || second.Window.Creates != 1 || snapshot.Window.Creates != 1 {
		t.Errorf("creates in the last second: %+v and %+v", first.Window, second.Window)
	}
	s.AdvanceTime(streamStart + 100*HistoryMax*slotNS)
	checkOwn(t, s.Snapshot())
}

// A frame costs nothing for processes at rest: their lists are those of the snapshot before.
func TestProcessesAtRestAreShared(t *testing.T) {
	s := twoBlurs()
	before := s.Snapshot()
	s.process = 2
	s.miss(6, 6, 8, 8, 9)
	after := s.Snapshot()
	if &before.Processes[0].Tags[0] != &after.Processes[0].Tags[0] {
		t.Error("the tags of a process without an event were built again")
	}
	if got, want := after.Processes[1].Tags[0].Creates, before.Processes[1].Tags[0].Creates+1; got != want {
		t.Errorf("the other process has %d creates, want %d", got, want)
	}
}

// BenchmarkSnapshotOfProcesses has one process that works and many at rest, with 20 tags each.
func BenchmarkSnapshotOfProcesses(b *testing.B) {
	for _, processes := range []uint32{2, 24, 300} {
		b.Run(fmt.Sprintf("processes=%d", processes), func(b *testing.B) {
			s := newStream(Options{})
			for s.process = 1; s.process <= processes; s.process++ {
				for tag := range uint32(20) {
					s.miss(uint64(tag+1), uint64(tag+1), 64, 64, tag+1)
					s.site(tag+1, fmt.Sprintf("f\ta.c\t%d\tx", tag))
				}
			}
			s.process = 1
			b.ReportAllocs()
			for b.Loop() {
				s.hit(100, 100, 64, 64, 1)
				s.release(100, wire.OutcomeCached)
				s.Snapshot()
			}
		})
	}
}

// TestDeviceMemoryOfEachProcess: it is that of the device that a process uses first, unless it was made to have another amount.
func TestDeviceMemoryOfEachProcess(t *testing.T) {
	for asked, want := range map[uint64][2]uint64{0: {2 << 30, 3 << 30}, 1 << 20: {1 << 20, 1 << 20}} {
		m := New(Options{Started: 1, DeviceMemory: asked})
		put := func(process uint32, e wire.Event) {
			e.Time = 10
			r := wire.Record{Event: e, Process: process, Thread: 1}
			if e.Kind == wire.KindDevice {
				r.Payload = []byte("card\x00v1\x00")
			}
			m.Apply(&r)
		}
		put(1, wire.Event{Kind: wire.KindDevice, Object: 1, Granted: 1 << 30})
		put(1, wire.Event{Kind: wire.KindDevice, Object: 2, Granted: 2 << 30})
		put(1, wire.Event{Kind: wire.KindContext, Object: 1, Link: 2, Scope: 1})
		put(1, wire.Event{Kind: wire.KindContext, Object: 2, Link: 1, Scope: 2})
		put(2, wire.Event{Kind: wire.KindDevice, Object: 1, Granted: 3 << 30})
		put(3, wire.Event{Kind: wire.KindCreate, Object: 5, Size: 1, Granted: 1})
		s := m.Snapshot()
		if got := [2]uint64{s.Processes[0].DeviceMemory, s.Processes[1].DeviceMemory}; got != want {
			t.Errorf("asked for %d: %d, want %d", asked, got, want)
		}
		if asked == 0 && s.Processes[2].DeviceMemory != s.Device.Global {
			t.Errorf("a process without a device has %d, want %d", s.Processes[2].DeviceMemory, s.Device.Global)
		}
	}
}

// TestProcessesAreAcceptedLate: the time of PROCESS is when the process was accepted, after it has called OpenCL. Nor do the messages of an
// experiment wait for records that are on their way.
func TestProcessesAreAcceptedLate(t *testing.T) {
	s := newStream(Options{})
	accepted := wire.Event{Kind: wire.KindProcess, Time: s.time + 10_000_000}
	s.feed(accepted, []byte("program")...)
	s.feed(wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagPlace), Time: accepted.Time}, []byte("\t\t\t\t\t\t\t1\t")...)
	s.feed(wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagMeasure), Time: accepted.Time}, []byte("experiment ends: enough is known")...)
	s.time = accepted.Time - 10_000_000
	s.miss(1, 1, 1000, 1000, 1)
	if got := s.Snapshot(); got.Totals.PeakInUseTime != s.time || got.Disordered != 0 {
		t.Errorf("peak at %d, want %d; %d late", got.Totals.PeakInUseTime, s.time, got.Disordered)
	}
	s.time += 50_000_000
	s.release(1, wire.OutcomeCached)
	s.process, s.time = 2, s.time-20_000_000
	s.miss(1, 1, 1000, 1000, 1)
	if got := s.Snapshot(); got.Disordered != 1 {
		t.Errorf("%d late, want 1", got.Disordered)
	}
}
