package target

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// statLine is a line of /proc/PID/stat.
func statLine(pid int, comm, state string, parent, flags, threads, started int) string {
	return fmt.Sprintf("%d (%s) %s %d 1 1 0 -1 %d 0 0 0 0 0 0 0 0 20 0 %d 0 %d 1000 10 18446744073709551615 1 1 4096 0 0\n",
		pid, comm, state, parent, flags, threads, started)
}

// imagined is a /proc that a test builds.
type imagined struct {
	t    *testing.T
	root procfs
}

func imagine(t *testing.T) *imagined {
	t.Helper()
	i := &imagined{t, procfs(t.TempDir())}
	i.link("self", "4242")
	i.link("4242/ns/mnt", "mnt:[1]")
	i.link("4242/ns/pid", "pid:[4026531836]")
	return i
}

func (i *imagined) put(name, text string) {
	i.t.Helper()
	put(i.t, filepath.Join(string(i.root), name), text)
}

func (i *imagined) link(name, target string) {
	i.t.Helper()
	path := filepath.Join(string(i.root), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		i.t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		i.t.Fatal(err)
	}
}

func (i *imagined) process(pid int, stat string) string {
	i.t.Helper()
	dir := strconv.Itoa(pid)
	i.put(dir+"/stat", stat)
	i.put(dir+"/status", fmt.Sprintf("Name:\tx\nTgid:\t%d\nPid:\t%d\nUid:\t%d\t0\t0\t0\n", pid, pid, os.Geteuid()))
	i.put(dir+"/cmdline", "")
	i.put(dir+"/cgroup", "0::/\n")
	i.link(dir+"/ns/mnt", "mnt:[1]")
	return dir
}

func TestOpen(t *testing.T) {
	i := imagine(t)
	i.process(70, statLine(70, "a) b (c", "S", 69, 4194304, 3, 1234))
	i.put("70/cmdline", "./train\x00--steps\x0010\x00")
	i.put("70/cgroup", "9:name=systemd:/old\n2:cpu,cpuacct:/old\n0::/user.slice/a:b\n")
	p, err := i.root.openProcess(70)
	if err != nil {
		t.Fatal(err)
	}
	if p.PID != 70 || p.Parent != 69 || p.Started != 1234 || p.Comm != "a) b (c" || p.Unsupported != "" {
		t.Errorf("%+v", p)
	}
	if !slices.Equal(p.Command, []string{"./train", "--steps", "10"}) {
		t.Errorf("command %q", p.Command)
	}
	if p.Cgroup != "/user.slice/a:b" || !slices.Equal(p.cgroups, []string{"/old", "/user.slice/a:b"}) {
		t.Errorf("cgroup %q of %q", p.Cgroup, p.cgroups)
	}
	if !p.StillExists() || p.HasExecutedSince() || p.HasSeccompFilter() {
		t.Error("it has changed")
	}
	if i.put("70/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"); !p.HasSeccompFilter() {
		t.Error("it has a filter of system calls")
	}
	i.put("70/stat", strings.Replace(statLine(70, "x", "S", 69, 0, 3, 1234), " 4096 0 0", " 8192 0 0", 1))
	if !p.StillExists() || !p.HasExecutedSince() {
		t.Error("its program was not replaced, or its id given away")
	}
	i.put("70/stat", statLine(70, "a) b (c", "S", 69, 0, 3, 1235))
	if p.StillExists() || p.HasExecutedSince() {
		t.Error("its id was not given away, or its program replaced")
	}
	i.put("70/stat", statLine(70, "x", "Z", 69, 0, 2, 1234))
	if !p.StillExists() {
		t.Error("it ended with its first thread")
	}
	i.put("70/stat", statLine(70, "x", "Z", 69, 0, 1, 1234))
	if p.StillExists() {
		t.Error("it goes on without threads")
	}
}

func TestALongCommandIsCut(t *testing.T) {
	i := imagine(t)
	i.process(70, statLine(70, "x", "S", 1, 0, 1, 1))
	i.put("70/cmdline", "a\x00"+strings.Repeat("b", 2*commandMax))
	p, err := i.root.openProcess(70)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Command) != 2 || len(p.Command[1]) != commandMax-2 {
		t.Errorf("%d arguments", len(p.Command))
	}
}

func TestRefusals(t *testing.T) {
	i := imagine(t)
	i.process(1, statLine(1, "systemd", "S", 0, 0, 1, 1))
	i.process(2, statLine(2, "kthreadd", "S", 0, 0x208040, 1, 1))
	i.process(50, statLine(50, "gone", "Z", 1, 0, 1, 1))
	i.process(60, statLine(60, "thread", "S", 1, 0, 2, 1))
	i.put("60/status", "Tgid:\t59\n")
	i.put("4242/stat", statLine(4242, "gpumemtop", "R", 1, 0, 1, 1))
	i.put("80/stat", "nonsense")
	for _, test := range []struct {
		pid  int
		is   error
		want string
	}{
		{1, ErrRefused, "first process"},
		{2, ErrRefused, "kernel thread"},
		{50, ErrGone, "has ended"},
		{60, ErrRefused, "use its process, 59"},
		{4242, ErrRefused, "gpumemtop itself"},
		{80, errStat, "80/stat"},
		{99, ErrGone, "process 99: no such process"},
	} {
		_, err := i.root.openProcess(test.pid)
		if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("process %d: %v", test.pid, err)
		}
	}
}

// In a container, process 1 is the program.
func TestTheFirstProcessOfAContainer(t *testing.T) {
	i := &imagined{t, procfs(t.TempDir())}
	i.link("self", "7")
	i.link("7/ns/pid", "pid:[4026532000]")
	i.process(1, statLine(1, "train", "S", 0, 0, 1, 1))
	if _, err := i.root.openProcess(1); err != nil {
		t.Error(err)
	}
}

func TestOtherProcessors(t *testing.T) {
	header := func(class, data, low, high byte) string {
		return "\x7fELF" + string([]byte{class, data}) + "\x01" + strings.Repeat("\x00", 9) + "\x02\x00" + string([]byte{low, high}) + "rest"
	}
	for _, test := range []struct{ exe, want string }{
		{header(2, 1, 62, 0), ""},
		{header(1, 1, 3, 0), "32-bit"},
		{header(1, 1, 62, 0), "32-bit"},
		{header(2, 1, 183, 0), "AARCH64"},
		{header(2, 2, 0, 22), "another processor"},
		{"#!/bin/sh", ""},
	} {
		i := imagine(t)
		i.process(70, statLine(70, "x", "S", 1, 0, 1, 1))
		i.put("70/exe", test.exe)
		p, err := i.root.openProcess(70)
		if err != nil {
			t.Fatal(err)
		}
		if test.want == "" && p.Unsupported != "" || !strings.Contains(p.Unsupported, test.want) {
			t.Errorf("%q, want %q", p.Unsupported, test.want)
		}
	}
}

func TestRunningProcess(t *testing.T) {
	s := start(t, holder(t))
	pid := s.Process.Pid
	p, maps := opened(t, pid)
	if p.Parent != os.Getpid() || p.Comm != "holder" || p.Unsupported != "" || len(maps) < 5 {
		t.Errorf("%+v with %d mappings", p, len(maps))
	}
	pids, err := RunningPIDs()
	if err != nil || !slices.Contains(pids, pid) || !slices.IsSorted(pids) {
		t.Errorf("%v runs: %v", pids, err)
	}
	s.stop()
	if p.StillExists() {
		t.Error("it still runs")
	}
	if _, err := OpenProcess(pid); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	if _, err := p.ReadMappings(); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}

func TestOwnThreadsAndSelf(t *testing.T) {
	if _, err := OpenProcess(os.Getpid()); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil || tid == os.Getpid() {
			continue
		}
		if _, err := OpenProcess(tid); err == nil || !strings.Contains(err.Error(), "use its process, "+strconv.Itoa(os.Getpid())) {
			t.Errorf("thread %d: %v", tid, err)
		}
		return
	}
	t.Fatal("the test has no second thread")
}

func TestAnotherProgramIsExecuted(t *testing.T) {
	program := holder(t)
	s := start(t, "/bin/sh", "-c", "echo ready; read line; exec "+program)
	p, _ := opened(t, s.Process.Pid)
	if p.HasExecutedSince() {
		t.Fatal("replaced from the start")
	}
	if _, err := s.input.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another program", p.HasExecutedSince)
	if !p.StillExists() {
		t.Error("it is another process now")
	}
}

// Another user may see that a process exists, but not its mappings.
func TestAnotherUser(t *testing.T) {
	said := asNobody(t, start(t, holder(t)).Process.Pid)
	if !strings.HasPrefix(said, "true ") || !strings.Contains(said, "another user") || !strings.Contains(said, "CAP_SYS_PTRACE") {
		t.Error(said)
	}
}

// A process of our own user that has more rights than we.
func TestPrivateProcess(t *testing.T) {
	needRoot(t)
	program := build(t, "private", "#include <sys/prctl.h>\n#include <stdio.h>\nint main(void)\n{\n"+
		"prctl(PR_SET_DUMPABLE, 0); puts(\"ready\"); fflush(stdout); return getchar() != EOF; }")
	reachable(t, program)
	said := asNobody(t, start(t, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program).Process.Pid)
	if !strings.HasPrefix(said, "true ") || !strings.Contains(said, "PR_SET_DUMPABLE") {
		t.Error(said)
	}
}

// With hidepid=2 not even the existence of a process is visible.
func TestHiddenProcess(t *testing.T) {
	needRoot(t)
	s := start(t, holder(t))
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups env %s=%d /proc/self/fd/3",
		openEnv, s.Process.Pid)
	cmd := exec.Command("unshare", "-m", "sh", "-c", script)
	file, err := os.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only executed
	cmd.ExtraFiles = []*os.File{file}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "true ") || !strings.Contains(string(out), "hidepid") {
		t.Errorf("%s%v", out, err)
	}
}

func FuzzStat(f *testing.F) {
	f.Add([]byte(statLine(1, "a", "S", 1, 2, 3, 4)))
	f.Add([]byte("1 () ) R"))
	f.Add([]byte(") ("))
	f.Fuzz(func(t *testing.T, line []byte) {
		if s, err := parseStat(line); err == nil && s.state == 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A process that has ended is described by its parent; a chain of children keeps only the first.
func TestEndedProcessIsDescribedByItsParent(t *testing.T) {
	library := fakeLibrary(t)
	s := start(t, holder(t), library)
	p, _ := opened(t, s.Process.Pid)
	const first, second = 1<<22 + 1, 1<<22 + 2 // larger than any pid
	child := p.DescribeChild(first, p.PID).DescribeChild(second, first)
	if child.PID != second || child.Parent != first || child.Comm != p.Comm || !slices.Equal(child.Command, p.Command) ||
		child.Cgroup != p.Cgroup || !child.RunsSameProgram(p) || child.parent != p {
		t.Errorf("%+v", child)
	}
	if maps, err := child.ReadMappings(); !errors.Is(err, ErrGone) || child.StillExists() || child.HasExecutedSince() {
		t.Errorf("it is there, with mappings %v, %v", maps, err)
	}
	if got := child.OpenablePath(library); got != library {
		t.Errorf("its file is opened as %q", got)
	}
	for _, name := range []string{p.Comm, filepath.Base(p.Command[0])} {
		if !(&Selection{Comms: []string{name}}).SelectsProcess(child) {
			t.Errorf("it is not called %s", name)
		}
	}
	other, _ := opened(t, start(t, holder(t), library).Process.Pid)
	if other.RunsSameProgram(p) {
		t.Error("another process runs in the same program")
	}
}
