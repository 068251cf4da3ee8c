package session

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/session/machine"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// await takes records until one is as wanted.
func await(t *testing.T, s *sampler, what string, wanted func(*wire.Record) bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, r := range s.takeReadyRecords() {
			if r.Kind != wire.KindMachine || r.Time == 0 {
				t.Fatalf("a record %+v", r)
			}
			if wanted(&r) {
				return
			}
		}
	}
	t.Fatalf("no record: %s", what)
}

// TestSampler: a process is asked about at once, and has another record when its memory has changed; nothing comes of one
// that is gone.
func TestSampler(t *testing.T) {
	const size = 64 << 20
	s := newSampler()
	s.addProcess(3, os.Getpid())
	var first uint64
	await(t, s, "the first", func(r *wire.Record) bool {
		first = r.AsMachine().Resident()
		return r.Process == 3 && r.AsMachine().Source() == wire.MachineRSS && first > 0
	})
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory) //nolint:errcheck // the test is over
	await(t, s, "more memory", func(r *wire.Record) bool { return r.AsMachine().Resident() > first+size/2 })

	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	s.addProcess(4, child.Process.Pid)
	await(t, s, "another process", func(r *wire.Record) bool { return r.Process == 4 && r.AsMachine().Unread() == 0 })
	_ = child.Process.Kill()
	_ = child.Wait()
	s.removeProcess(4)
	s.queueFigureRecord(4, 1, s.machine.OpenProcess(os.Getpid()).ReadFigures()[0])
	for _, r := range s.takeReadyRecords() {
		if r.Process == 4 {
			t.Errorf("a record of a process that is gone: %+v", r)
		}
	}
	s.endSampler()
	s.addProcess(5, os.Getpid())
	if s.processes[5] != nil {
		t.Error("a process is watched after the end")
	}
}

// TestSamplerRests: what does not change is recorded once.
func TestSamplerRests(t *testing.T) {
	s := newSampler()
	p := &sampled{pid: os.Getpid()}
	p.reader.Store(s.machine.OpenProcess(os.Getpid()))
	defer p.reader.Load().Close()
	s.processes[1] = p
	open := map[uint32]*sampled{1: p}
	p.last = map[figureKey]machine.Figure{}
	if _, changed := s.readProcesses(open); !changed {
		t.Error("the first round brought nothing")
	}
	both := func() [2]machine.Figure {
		return [2]machine.Figure{p.last[figureKey{wire.MachineRSS, 0}], p.last[figureKey{wire.MachineResident, 0}]}
	}
	recorded := both()
	for range 3 {
		pause, _ := s.readProcesses(open)
		if pause < 0 || pause > time.Minute {
			t.Errorf("the next round in %v", pause)
		}
	}
	if n := len(s.takeReadyRecords()); both() == recorded && n != 2 {
		t.Errorf("%d records of what did not change", n)
	}
}
