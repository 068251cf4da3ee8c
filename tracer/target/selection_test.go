package target

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestWants(t *testing.T) {
	p := &Process{
		PID: 7, Comm: "a-very-long-nam", Command: []string{"/opt/bin/a-very-long-name", "--x"},
		cgroups: []string{"/", "/user.slice/app"},
	}
	for _, test := range []struct {
		name      string
		selection Selection
		want      bool
	}{
		{"nothing", Selection{}, false},
		{"all", Selection{All: true}, true},
		{"pid", Selection{PIDs: []int{3, 7}}, true},
		{"another pid", Selection{PIDs: []int{3}}, false},
		{"name as the kernel keeps it", Selection{Comms: []string{"a-very-long-nam"}}, true},
		{"whole name", Selection{Comms: []string{"a-very-long-name"}}, true},
		{"beginning of a name", Selection{Comms: []string{"a-very"}}, false},
		{"longer than kept, and another", Selection{Comms: []string{"b", "a-very-long-namesake"}}, true},
		{"cgroup", Selection{Cgroups: []string{"/user.slice/app"}}, true},
		{"above it", Selection{Cgroups: []string{"/user.slice"}}, true},
		{"beginning of its name", Selection{Cgroups: []string{"/user.slice/ap"}}, false},
		{"below it", Selection{Cgroups: []string{"/user.slice/app/x"}}, false},
		{"the root", Selection{Cgroups: []string{"/"}}, true},
	} {
		if got := test.selection.SelectsProcess(p); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
	script := &Process{Comm: "python3", Command: []string{"train.py"}}
	if s := (Selection{Comms: []string{"train.py"}}); !s.SelectsProcess(script) || s.SelectsProcess(&Process{Comm: "x"}) {
		t.Error("the program's own name does not count, or a wrong one does")
	}
}

func TestOpenSelections(t *testing.T) {
	for _, s := range []Selection{{All: true}, {Comms: []string{"x"}}, {Cgroups: []string{"/"}}} {
		if !s.MaySelectLaterProcesses() {
			t.Errorf("%+v is closed", s)
		}
	}
	if s := (Selection{PIDs: []int{1}, Follow: true}); s.MaySelectLaterProcesses() {
		t.Error("a selection by pid is open")
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		s    Selection
		want string
	}{
		{Selection{}, "say what to watch"},
		{Selection{Follow: true}, "say what to watch"},
		{Selection{PIDs: []int{0}}, "0 is not a process id"},
		{Selection{Comms: []string{""}}, "not a program name"},
		{Selection{Comms: []string{"./train"}}, "without its folder"},
		{Selection{Cgroups: []string{""}}, "empty cgroup"},
		{Selection{Cgroups: []string{"/there/is/none"}}, "no cgroup /there/is/none"},
	} {
		if err := test.s.CheckAndNormalize(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test.s, err)
		}
	}
	s := Selection{PIDs: []int{1}, Comms: []string{"a b"}}
	if err := s.CheckAndNormalize(); err != nil {
		t.Error(err)
	}
}

func TestCgroupPaths(t *testing.T) {
	i := imagine(t)
	tree := t.TempDir() + "/a b"
	for _, folder := range []string{"memory/job/1", "unified/user.slice/app", "part/inner"} {
		put(t, tree+"/"+folder+"/tasks", "")
	}
	escaped := strings.ReplaceAll(tree, " ", `\040`)
	i.put("4242/mountinfo", "22 27 0:21 / /proc rw - proc proc rw\n"+
		"30 27 0:3 / "+escaped+"/memory rw,nosuid shared:1 - cgroup cgroup rw,memory\n"+
		"31 27 0:4 / "+escaped+"/unified rw - cgroup2 cgroup2 rw\n"+
		"32 27 0:5 /docker/1 "+escaped+"/part rw - cgroup cgroup rw,cpu\n")
	for _, test := range []struct{ path, want string }{
		{"/job/1", "/job/1"},
		{"job/1/", "/job/1"},
		{"/sys/fs/cgroup/job", "/job"},
		{tree + "/memory/job/1", "/job/1"},
		{tree + "/memory", "/"},
		{tree + "/unified/user.slice/app/", "/user.slice/app"},
		{"/docker/1/inner", "/docker/1/inner"},
		{tree + "/part/inner", "/docker/1/inner"},
		{"/", "/"},
	} {
		s := Selection{Cgroups: []string{test.path}}
		if err := s.checkAndNormalize(i.root); err != nil || s.Cgroups[0] != test.want {
			t.Errorf("%s: %q, %v, want %q", test.path, s.Cgroups, err, test.want)
		}
	}
	for _, path := range []string{"/job/2", tree + "/memory/job/2", "/inner", tree + "/memory/job/1/tasks"} {
		if got, err := i.root.cgroupPath(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	i.put("4242/mountinfo", "22 27 0:21 / /proc rw - proc proc rw\n")
	if _, err := i.root.cgroupPath("/job"); err == nil || !strings.Contains(err.Error(), "no cgroups are mounted") {
		t.Error(err)
	}
}

// This machine's own cgroups, in all forms.
func TestOwnCgroup(t *testing.T) {
	mounts, err := proc.cgroupMounts()
	if err != nil {
		t.Fatal(err)
	}
	if len(mounts) == 0 {
		t.Skip("no cgroups are mounted")
	}
	p, _ := opened(t, start(t, holder(t)).Process.Pid)
	for _, path := range p.cgroups {
		s := Selection{Cgroups: []string{path}}
		if err := s.CheckAndNormalize(); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if !s.SelectsProcess(p) {
			t.Errorf("the process is not within %s", path)
		}
	}
}

func TestFamily(t *testing.T) {
	i := imagine(t)
	for pid, parent := range map[int]int{1: 0, 10: 1, 11: 10, 12: 10, 13: 12, 20: 1, 21: 20} {
		i.process(pid, statLine(pid, "x", "S", parent, 0, 1, 1))
	}
	s := Selection{PIDs: []int{20, 10, 20}}
	if got, err := s.processesByPID(i.root); err != nil || !slices.Equal(got, []int{20, 10}) {
		t.Errorf("%v, %v", got, err)
	}
	s.Follow = true
	if got, err := s.processesByPID(i.root); err != nil || !slices.Equal(got, []int{20, 10, 21, 11, 12, 13}) {
		t.Errorf("%v, %v", got, err)
	}
	s.PIDs = []int{12, 10} // a child that is also named
	if got, err := s.processesByPID(i.root); err != nil || !slices.Equal(got, []int{12, 10, 13, 11}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestFamilyOfThisMachine(t *testing.T) {
	s := start(t, "/bin/sh", "-c", "sleep 1000 & echo $! 0x$(printf %x $!); echo ready; read line; kill $!")
	child := 0
	for name := range s.addresses {
		n, err := strconv.Atoi(name)
		if err != nil {
			t.Fatal(err)
		}
		child = n
	}
	pid := s.Process.Pid
	got, err := (&Selection{PIDs: []int{pid}, Follow: true}).ProcessesByPID()
	if err != nil || !slices.Equal(got, []int{pid, child}) {
		t.Errorf("%v, %v, want %d and %d", got, err, pid, child)
	}
	if _, err := s.input.Write([]byte("\n")); err != nil {
		t.Error(err)
	}
}
