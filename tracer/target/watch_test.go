package target

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

func TestWatch(t *testing.T) {
	var w Watch
	look(t, &w)
	program := holder(t)
	a, b := start(t, program), start(t, program)
	pids := []int{a.Process.Pid, b.Process.Pid}
	if came, _ := look(t, &w); !slices.Contains(came, pids[0]) || !slices.Contains(came, pids[1]) {
		t.Errorf("%v came, not %v", came, pids)
	}
	if came, went := look(t, &w); slices.Contains(came, pids[0]) || slices.Contains(went, pids[0]) {
		t.Errorf("%v came again, %v went", came, went)
	}
	a.stop()
	if came, went := look(t, &w); slices.Contains(came, pids[1]) || !slices.Contains(went, pids[0]) || slices.Contains(went, pids[1]) {
		t.Errorf("%v came, %v went, not %d", came, went, pids[0])
	}
	if came, went := look(t, &w); slices.Contains(came, pids[0]) || slices.Contains(went, pids[0]) {
		t.Error("one came back, or went again")
	}
}

func TestWatchWithoutProc(t *testing.T) {
	w := Watch{fs: procfs(t.TempDir() + "/none")}
	if came, went, err := w.FindNewAndGonePIDs(); err == nil || came != nil || went != nil {
		t.Errorf("%v came, %v went: %v", came, went, err)
	}
}

func look(t *testing.T, w *Watch) (came, went []int) {
	t.Helper()
	came, went, err := w.FindNewAndGonePIDs()
	if err != nil {
		t.Fatal(err)
	}
	return came, went
}

func TestExists(t *testing.T) {
	s := start(t, holder(t))
	if !ProcessExists(s.Process.Pid) {
		t.Error("a process that runs does not exist")
	}
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// It has ended, but its parent has not waited for it.
	eventually(t, "the end of a process", func() bool { return !ProcessExists(s.Process.Pid) })
	s.stop()
	if ProcessExists(s.Process.Pid) {
		t.Error("a process that is gone exists")
	}
}

// A process can end between the opening and the reading of one of its files.
func TestExistsNoLonger(t *testing.T) {
	s := start(t, holder(t))
	stat, err := os.Open(proc.pathOfFile(s.Process.Pid, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	defer stat.Close() //nolint:errcheck // only read
	s.stop()
	fake := procfs(t.TempDir())
	if err := os.Mkdir(fake.pathOfFile(7, ""), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(proc.pathOfFile(os.Getpid(), "fd/"+strconv.Itoa(int(stat.Fd()))), fake.pathOfFile(7, "stat")); err != nil {
		t.Fatal(err)
	}
	if _, err := fake.readStat(7); !errors.Is(err, syscall.ESRCH) {
		t.Fatalf("the file of a process that is gone: %v", err)
	}
	if fake.processExists(7) {
		t.Error("it exists")
	}
}
