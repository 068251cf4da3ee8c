package stats

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// machine reports a figure of the present process.
func (s *stream) machine(source wire.Machine, device, bytes uint64) {
	s.feed(wire.MachineFields{Source: source, Device: device, Resident: bytes}.Event())
}

func TestMachine(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 60, 64, 0)
	s.machine(wire.MachineDRM, 0x300, 100)
	s.machine(wire.MachineDRM, 0x400, 20)
	s.machine(wire.MachineRSS, 0, 1000)
	s.machine(wire.MachineDRM, 0x300, 80)
	s.process = 2
	s.machine(wire.MachineRSS, 0, 500)
	s.machine(wire.MachineDRM, 0x300, 7)
	snapshot := s.Snapshot()
	type short struct {
		Source             wire.Machine
		Device             string
		Bytes, Peak, First uint64
	}
	figures := func(list []MachineFigure) (shorts []short) {
		for _, f := range list {
			shorts = append(shorts, short{f.Source, f.DeviceName(), f.Bytes, f.Peak, f.First})
		}
		return shorts
	}
	want := []short{{wire.MachineRSS, "", 1500, 1500, 1000}, {wire.MachineDRM, "0000:03:00.0", 87, 100, 100}, {wire.MachineDRM, "0000:04:00.0", 20, 20, 20}}
	if diff := cmp.Diff(want, figures(snapshot.Machine)); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	want = []short{{wire.MachineRSS, "", 500, 500, 500}, {wire.MachineDRM, "0000:03:00.0", 7, 7, 7}}
	if diff := cmp.Diff(want, figures(snapshot.Processes[1].Machine)); diff != "" {
		t.Errorf("the second process (-want +got):\n%s", diff)
	}
	if own, known := DriversOwnBytes(snapshot.Machine, &snapshot.Totals); own != 107-64 || !known {
		t.Errorf("the driver's own are %d, %v", own, known)
	}
	if own, known := DriversOwnBytes(snapshot.Machine[:1], &snapshot.Totals); own != 0 || known {
		t.Errorf("the driver's own are %d, %v, of RSS", own, known)
	}
}

// TestMachineIsNoEvent: it is no activity of the program, and brings nothing forward.
func TestMachineIsNoEvent(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 64, 64, 0)
	before := s.Snapshot()
	s.Apply(&wire.Record{Process: s.process, Event: wire.MachineFields{Time: s.time + 5e9, Resident: 1}.Event()})
	if after := s.Snapshot(); after.Time != before.Time || s.totals.run.window.currentSlot().Events != 1 {
		t.Errorf("the time is %d, was %d; %d events", after.Time, before.Time, s.totals.run.window.currentSlot().Events)
	}
}

// TestMachineUnread: what cannot be read is not 0.
func TestMachineUnread(t *testing.T) {
	s := newStream(Options{})
	s.machine(wire.MachineDRM, 0, 100)
	s.feed(wire.MachineFields{Source: wire.MachineDRM, Unread: int16(unix.EACCES)}.Event())
	f := s.Snapshot().Machine[0]
	if _, known := BytesOnDevice(s.Snapshot().Machine); known || f.Bytes != 100 || f.WhyUnread() != "permission denied" {
		t.Errorf("figure %+v: %q", f, f.WhyUnread())
	}
	s.machine(wire.MachineDRM, 0, 90)
	if bytes, known := BytesOnDevice(s.Snapshot().Machine); bytes != 90 || !known {
		t.Errorf("%d, %v once it was read again", bytes, known)
	}
}

// TestMachineOfEnded: a process that is gone has nothing, once another one runs; what comes late of it does not count.
func TestMachineOfEnded(t *testing.T) {
	s := newStream(Options{})
	s.machine(wire.MachineRSS, 0, 1000)
	s.miss(1, 1, 64, 64, 0)
	s.NoteProcessEnded(1, End{Status: 0, Signal: 0}, s.time)
	s.machine(wire.MachineRSS, 0, 4000)
	if f := s.Snapshot().Machine; f[0].Bytes != 1000 {
		t.Errorf("the last process to end leaves %+v", f)
	}
	s.process = 2
	s.miss(1, 1, 64, 64, 0)
	s.AdvanceTime(s.time + 2*heap.Grace)
	s.machine(wire.MachineRSS, 0, 10)
	snapshot := s.Snapshot()
	if f := snapshot.Machine[0]; f.Bytes != 10 || f.Peak != 1000 || snapshot.Processes[0].Machine[0].Bytes != 1000 {
		t.Errorf("figures %+v, of the first process %+v", f, snapshot.Processes[0].Machine)
	}
}

// TestMachineIsBounded: a recording may hold anything.
func TestMachineIsBounded(t *testing.T) {
	s := newStream(Options{})
	for device := range uint64(1000) {
		s.machine(wire.Machine(device%256), device, ^uint64(0))
	}
	if n := len(s.Snapshot().Machine); n != machineMax {
		t.Errorf("%d figures", n)
	}
}
