package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/hostileelf"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/rightstest"
)

// watcher is a gpumemtop attach at work, and where it records.
type watcher struct {
	*process
	file string
}

// attach starts one without a dashboard and waits until it watches: what is started or done afterwards is seen.
func attach(t *testing.T, flags ...string) *watcher {
	t.Helper()
	rightstest.NeedAttach(t)
	file := filepath.Join(t.TempDir(), "attached.gmt")
	args := []string{gpumemtop(), "attach", "--headless", "-o", file}
	for i, flag := range flags {
		if i > 0 && flags[i-1] == "--comm" {
			flag = own(flag)
		}
		args = append(args, flag)
	}
	w := &watcher{process: start(t, command{args: args}), file: file}
	w.await()
	return w
}

// await waits until it says that it watches.
func (w *watcher) await() {
	w.t.Helper()
	waitFor(w.t, "gpumemtop to be attached", func() bool {
		if !alive(w.cmd.Process.Pid) {
			w.t.Fatalf("gpumemtop attach ended before it watched\n%s", w.stderr.bytes())
		}
		return contains(w.stderr.bytes(), "Ctrl-C ends")
	})
}

// leave detaches with Ctrl-C.
func (w *watcher) leave() {
	w.t.Helper()
	signalTo(w.t, w.cmd.Process.Pid, syscall.SIGINT)
	w.end()
}

// end waits for the end, which is a good one: exit status 0, and a recording that is whole, with nothing lost.
func (w *watcher) end() {
	w.t.Helper()
	if lost := w.whole(); lost != 0 {
		w.t.Errorf("%d events lost", lost)
	}
}

// whole is the same, and returns how many events were lost.
func (w *watcher) whole() (lost uint64) {
	w.t.Helper()
	if result := w.wait(); result.code != 0 {
		w.t.Fatalf("attach ended with %s\n%s", result, result.stderr)
	}
	got := readRecording(w.t, w.file, 0)
	if got.damage != "" || !got.complete {
		w.t.Errorf("the recording is not whole: %q", got.damage)
	}
	return reportOf(w.t, w.file).Lost
}

func signalTo(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatalf("%v to %d: %v", s, pid, err)
	}
}

// ends waits for a program that was attached to, and demands that it ended well.
func ends(t *testing.T, p *process) outcome {
	t.Helper()
	result := p.wait()
	if result.code != 0 {
		t.Errorf("%v ended with %s\n%s", p.cmd.Args, result, result.stderr)
	}
	return result
}

// own is a program's name in these tests alone: others may run beside them, from another copy of the repository. It is no
// longer than the kernel's name of a process.
func own(name string) string {
	suffix := strconv.FormatInt(int64(os.Getpid()), 36)
	name = strings.TrimSuffix(name, suffix)
	return name[:min(len(name), 15-len(suffix))] + suffix
}

// called copies a program under a name that no other process of this machine has: tests run beside others.
func called(t *testing.T, path, name string) string {
	t.Helper()
	renamed := filepath.Join(t.TempDir(), own(name))
	copyProgram(t, path, renamed)
	return renamed
}

// copyProgram copies a file by a process of its own. While we had the copy open for writing, other tests might start processes, which
// have it open, too, until they exec: the copy could not be run then (ETXTBSY).
func copyProgram(t *testing.T, path, to string) {
	t.Helper()
	if out, err := exec.Command("cp", path, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// awaitWork waits until a program has used a processor for some ticks of 10 ms, longer than it takes to begin: its buffers are there and it
// is at work on them.
func awaitWork(t *testing.T, pid, ticks int) {
	t.Helper()
	waitFor(t, "the program to be at work", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatalf("the program is gone: %v", err)
		}
		_, after, _ := strings.Cut(string(text), ") ")
		used, err := strconv.Atoi(strings.Fields(after)[11]) // utime
		return err == nil && used >= ticks
	})
}

// built compiles a program that uses OpenCL.
func built(t *testing.T, name, source string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	file, program := filepath.Join(dir, name+".c"), filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"gcc", "-g", "-O1", "-o", program, file}, flags...)
	if result := runBare(t, append(args, "-lOpenCL", "-ldl")...); result.code != 0 {
		t.Fatalf("gcc: %s\n%s", result, result.stderr)
	}
	return program
}

// Hostile files of a program of another user take little of root's memory and time. Its names of code in /tmp are not read.
func TestAttachedToAnotherUsersHostileProgram(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the program has code of its own for amd64 alone")
	}
	rightstest.NeedAttach(t)
	const ring, memoryMost, timeMost = 64 << 10, 256 << 10, 5 * time.Second // KiB
	dir, user := unknownUser(t, fault("mapped"))
	for name, file := range hostileelf.HostileFiles() {
		t.Run(name, func(t *testing.T) {
			plugin := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if err := os.WriteFile(plugin, append(file, make([]byte, 64<<10)...), 0o644); err != nil {
				t.Fatal(err)
			}
			input, feed := io.Pipe()
			defer feed.Close() //nolint:errcheck // it may be closed
			p := start(t, command{args: slices.Concat(user, []string{dir + "/mapped", plugin, "200000"}), stdin: input})
			waitFor(t, "the program to be ready", func() bool { return contains(p.stdout.bytes(), "ready") })
			w := attach(t, "-p", itoa(p.cmd.Process.Pid))
			_, _ = feed.Write([]byte("\n"))
			time.Sleep(2 * time.Second) // names are read while it lives
			_ = feed.Close()
			ends(t, p)
			memory := int(peakOf(w.cmd.Process.Pid)) - ring // which is mapped twice
			w.end()
			took := w.cmd.ProcessState.UserTime() + w.cmd.ProcessState.SystemTime()
			if f := reportOf(t, w.file); f.DriverCreates < 200 || contains(w.stderr.bytes(), "a_function_of_number") {
				t.Errorf("%d creates were seen", f.DriverCreates)
			}
			if memory > memoryMost || took > timeMost {
				t.Errorf("it took %d KiB and %v", memory, took)
			}
		})
	}
}
