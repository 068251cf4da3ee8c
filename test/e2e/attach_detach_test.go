package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// foreignCode returns how many bytes of the code that a process has mapped are not those of its files, of all or of one.
func foreignCode(t *testing.T, pid int, only ...string) int {
	t.Helper()
	p, err := target.OpenProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	maps, err := p.ReadMappings()
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close() //nolint:errcheck // only read
	different := 0
	for i := range maps {
		if m := &maps[i]; m.Exec && m.Inode != 0 && (len(only) == 0 || slices.Contains(only, m.Path)) {
			different += differing(t, memory, m)
		}
	}
	return different
}

// mappingsOf lists what a process has mapped, except the page that the kernel itself gives to every process with a
// probe, and leaves there until its end.
func mappingsOf(t *testing.T, pid int) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Split(string(text), "\n")
	return slices.DeleteFunc(list, func(line string) bool { return strings.HasSuffix(line, "[uprobes]") })
}

// differing compares a piece at a time: a driver has 100 MB of code.
func differing(t *testing.T, memory io.ReaderAt, m *target.Mapping) (n int) {
	t.Helper()
	file, err := os.Open(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read
	var want, got [256 << 10]byte
	for at := m.Start; at < m.End; at += uint64(len(want)) {
		length, err := file.ReadAt(want[:min(uint64(len(want)), m.End-at)], int64(m.Offset+at-m.Start))
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if _, err := memory.ReadAt(got[:length], int64(at)); err != nil {
			t.Fatalf("%s: %v", m.Path, err)
		}
		if bytes.Equal(want[:length], got[:length]) {
			continue
		}
		for i := range length {
			if want[i] != got[i] {
				n++
			}
		}
	}
	return n
}

// However gpumemtop ends, killed too, the program's code is then as before, and its result the same as alone.
func TestDetachedProgramIsAsItWas(t *testing.T) {
	bare := runBare(t, fault("reader"))
	for name, s := range map[string]syscall.Signal{
		"Ctrl-C": syscall.SIGINT, "terminated": syscall.SIGTERM, "hung up": syscall.SIGHUP, "killed": syscall.SIGKILL, "in time": 0,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, out := io.Pipe()
			defer out.Close() //nolint:errcheck // it is no file
			// A loader of its own: other packages' tests, at the same time, probe that of the system.
			loader := copyOfLoader(t)
			p := start(t, command{args: []string{fault("reader")}, stdin: in, env: []string{"LD_LIBRARY_PATH=" + filepath.Dir(loader)}})
			pid := p.cmd.Process.Pid
			awaitReading(t, pid)
			waitFor(t, "no other watcher of all programs", func() bool { return foreignCode(t, pid, loader) == 0 })
			flags := []string{"-p", itoa(pid)}
			if s == 0 {
				flags = append(flags, "--duration", "5s")
			}
			mappings := mappingsOf(t, pid)
			w := attach(t, flags...)
			if foreignCode(t, pid, loader) == 0 {
				t.Error("there is no probe while it is watched")
			}
			if s != 0 {
				signalTo(t, w.cmd.Process.Pid, s)
			}
			if s == syscall.SIGKILL {
				w.wait()
			} else {
				w.end()
			}
			// The kernel takes its time when the last descriptor goes with its process.
			waitFor(t, "the code to be as it was", func() bool { return foreignCode(t, pid, loader) == 0 && foreignCode(t, pid) == 0 })
			if now := mappingsOf(t, pid); !slices.Equal(mappings, now) {
				t.Errorf("mapped was\n%s\nand is\n%s", strings.Join(mappings, "\n"), strings.Join(now, "\n"))
			}
			if tracer := statusField(pid, "TracerPid"); tracer != "0" {
				t.Errorf("process %s traces it", tracer)
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			if difference := differs(bare, ends(t, p)); difference != "" {
				t.Error(difference)
			}
		})
	}
}

// The end of the program is that of the watch, with everything recorded, however it ends.
func TestAttachedProgramEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		signal syscall.Signal
		want   endFigures
	}{{0, endFigures{}}, {syscall.SIGKILL, endFigures{Status: -1, Signal: int(syscall.SIGKILL)}}} {
		in, out := io.Pipe()
		p := start(t, command{args: []string{fault("reader")}, stdin: in})
		awaitReading(t, p.cmd.Process.Pid)
		w := attach(t, "-p", itoa(p.cmd.Process.Pid))
		if _, err := out.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		if test.signal != 0 {
			signalTo(t, p.cmd.Process.Pid, test.signal)
		}
		_ = out.Close() // of a pipe in memory
		p.wait()
		w.end()
		if f := figuresIn(t, w.file, false); f.Exit != test.want || f.Creates < 10 {
			t.Errorf("%v: %d creates, exit %+v", test.signal, f.Creates, f.Exit)
		}
	}
}

// awaitReading waits until the first thread of a process waits for its standard input: all that comes before is done.
func awaitReading(t *testing.T, pid int) {
	t.Helper()
	waitFor(t, "the program to read", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
		return err == nil && bytes.HasPrefix(text, []byte("0 0x0 ")) // read of descriptor 0
	})
}
