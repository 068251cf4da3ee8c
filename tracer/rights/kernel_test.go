package rights_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/rightstest"
	"codeberg.org/gpumemtop/gpumemtop/tracer/rights"
)

// roleEnv makes this test binary a process with few rights that tries to attach: "filtered" adds a seccomp filter first,
// "mounted" mounts the /proc of its pid namespace first, "try" only tries.
const roleEnv = "RIGHTS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		os.Exit(m.Run())
	case "filtered":
		fmt.Fprintln(os.Stderr, refuseBPF())
		os.Exit(1)
	case "mounted":
		if err := mountProc(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(try()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// answer is what such a process reports.
type answer struct {
	Refusal string   // of rights
	Missing []string // of rights
	Tried   string   // the error, or ""
	// Single is what rights expects of single uprobes, TriedSingle the error, or "".
	Single      bool
	TriedSingle string
	Took        time.Duration
}

func try() answer {
	begin := time.Now()
	r := rights.ExamineThisSystem()
	a := answer{Missing: r.Missing, Took: time.Since(begin)}
	if err := r.RefusalError(); err != nil {
		a.Refusal = err.Error()
	}
	if err := watch(r.Multi); err != nil {
		a.Tried = err.Error()
	}
	a.Single = rights.ThisSystem().Check(rights.CheckSingle) == nil
	if err := watch(false); err != nil {
		a.TriedSingle = err.Error()
	}
	return a
}

// watch loads what attach needs and probes a function of this process.
func watch(multi bool) error {
	ring, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: uint32(os.Getpagesize())})
	if err != nil {
		return err
	}
	defer ring.Close() //nolint:errcheck // nothing is lost with it
	spec := &ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "GPL", Instructions: asm.Instructions{
		asm.FnGetAttachCookie.Call(),
		asm.Mov.Reg(asm.R3, asm.R0),
		asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -8), asm.Mov.Imm(asm.R2, 8),
		asm.FnProbeReadUser.Call(),
		asm.LoadMapPtr(asm.R1, ring.FD()), asm.Mov.Imm(asm.R2, 8), asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JEq.Imm(asm.R0, 0, "end"),
		asm.Mov.Reg(asm.R1, asm.R0), asm.Mov.Imm(asm.R2, 0),
		asm.FnRingbufSubmit.Call(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("end"),
		asm.Return(),
	}}
	if multi {
		spec.AttachType = ebpf.AttachTraceUprobeMulti
	}
	program, err := ebpf.NewProgram(spec)
	if err != nil {
		return err
	}
	defer program.Close() //nolint:errcheck // nothing is lost with it
	offset, err := offsetOf(probed)
	if err != nil {
		return err
	}
	self, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return err
	}
	var l link.Link
	if multi {
		l, err = self.UprobeMulti(nil, program, &link.UprobeMultiOptions{Addresses: []uint64{offset}, PID: uint32(os.Getpid())})
	} else {
		l, err = self.Uprobe("", program, &link.UprobeOptions{Address: offset, PID: os.Getpid()})
	}
	if err != nil {
		return err
	}
	return l.Close()
}

// probed is a function without calls.
//
//go:noinline
func probed() { panic("called") }

// offsetOf returns the offset of a function of this process in its file.
func offsetOf(function func()) (uint64, error) {
	address := uint64(reflect.ValueOf(function).Pointer())
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(maps)) {
		var start, end, offset uint64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s %x", &start, &end, &mode, &offset); err != nil {
			return 0, err
		}
		if start <= address && address < end {
			return address - start + offset, nil
		}
	}
	return 0, errors.New("the function is in no mapping")
}

// refuseBPF adds a filter that refuses bpf(2) as those of containers do, and continues as "try".
func refuseBPF() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := setFilter([]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_BPF},
		{Code: unix.BPF_RET | unix.BPF_K, K: seccompErrno | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: seccompAllow},
	}); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", os.Args, []string{roleEnv + "=try", "GORACE=atexit_sleep_ms=0"})
}

// mountProc mounts /proc in this mount namespace.
func mountProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("proc", "/proc", "proc", 0, "")
}

// Actions of a filter (linux/seccomp.h).
const (
	seccompErrno = 0x00050000
	seccompAllow = 0x7fff0000
)

// program copies this test binary to a folder that every user can read.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // read only
	path := filepath.Join(dir, "try")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// user is an ordinary user with capabilities.
func user(capabilities ...uintptr) *syscall.SysProcAttr {
	const number = 65533
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: number, Gid: number}, AmbientCaps: capabilities}
}

// rights agrees with the kernel, whatever the rights. This test never skips: a wrong refusal would skip all other eBPF
// tests.
func TestRefusalAgreesWithTheKernel(t *testing.T) {
	path := program(t)
	if a := ask(t, path, "", nil); a.Refusal != "" || a.Tried != "" {
		if a.Refusal == "" || a.Tried == "" {
			t.Errorf("rights says %q, and the kernel %q", a.Refusal, a.Tried)
		}
		t.Logf("not looked at with other rights: %s", a.Refusal)
		return
	}
	multi := rights.ExamineThisSystem().Multi
	tests := []struct {
		name, role string
		attr       *syscall.SysProcAttr
		single     string // missing capability for single uprobes
		missing    string // missing capability otherwise
		refusal    string // part of the sentence, "" for none
	}{
		{name: "as we are"},
		{"user", "", user(), "CAP_SYS_ADMIN", "CAP_BPF CAP_PERFMON", "attach needs CAP_"},
		{"CAP_BPF", "", user(unix.CAP_BPF), "CAP_SYS_ADMIN", "CAP_PERFMON", "attach needs CAP_"},
		{"CAP_PERFMON", "", user(unix.CAP_PERFMON), "CAP_SYS_ADMIN", "CAP_BPF", "attach needs CAP_"},
		{"CAP_SYS_PTRACE", "", user(unix.CAP_SYS_PTRACE), "CAP_SYS_ADMIN", "CAP_BPF CAP_PERFMON", "attach needs CAP_"},
		{"CAP_BPF and CAP_PERFMON", "", user(unix.CAP_BPF, unix.CAP_PERFMON), "", "", ""},
		{"CAP_SYS_ADMIN", "", user(unix.CAP_SYS_ADMIN), "", "", ""},
		{"user namespace", "", &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}, "CAP_SYS_ADMIN", "CAP_BPF CAP_PERFMON", "user namespace"},
		{"pid namespace", "mounted", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}, "", "", ""},
		{"filter", "filtered", nil, "", "", "seccomp filter refuses (operation not permitted)"},
	}
	if os.Geteuid() != 0 {
		t.Log("only root can give and take rights: looked at with ours alone")
		tests = tests[:1]
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := ask(t, path, test.role, test.attr)
			if (a.Refusal == "") != (a.Tried == "") {
				t.Errorf("rights says %q, and the kernel %q", a.Refusal, a.Tried)
			}
			if a.Tried == "" && a.Single != (a.TriedSingle == "") {
				t.Errorf("rights says of single uprobes %v, and the kernel %q", a.Single, a.TriedSingle)
			}
			want := test.missing
			if !multi {
				want = test.single
			}
			if got := strings.Join(a.Missing, " "); multi && got != want || !multi && test.refusal != "" && got != want {
				t.Errorf("missing %q, want %q", got, want)
			}
			if multi && (a.Refusal == "") != (test.refusal == "") || !strings.Contains(a.Refusal, test.refusal) {
				t.Errorf("says %q, want %q in it", a.Refusal, test.refusal)
			}
			t.Logf("%v: %s", a.Took, a.Refusal)
		})
	}
}

func ask(t *testing.T, path, role string, attr *syscall.SysProcAttr) answer {
	t.Helper()
	if role == "" {
		role = "try"
	}
	cmd := exec.CommandContext(t.Context(), path)
	// The race detector would delay the exit by a second.
	cmd.Env = []string{roleEnv + "=" + role, "GORACE=atexit_sleep_ms=0"}
	cmd.Dir = "/"
	cmd.SysProcAttr = attr
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, syscall.EPERM) && attr != nil && attr.Cloneflags&syscall.CLONE_NEWUSER != 0 {
		t.Skipf("user namespaces are not for us here, as in a chroot or container: %v", err)
	}
	var a answer
	if jsonErr := json.Unmarshal(out, &a); jsonErr != nil {
		t.Fatalf("no answer: %v, %v, %s", err, jsonErr, stderr.String())
	}
	return a
}

// All descriptors of the checks are closed.
func TestExamineLeavesNothing(t *testing.T) {
	rightstest.NeedAttach(t)
	before := openFiles(t)
	for range 3 {
		rights.ExamineThisSystem()
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files open, and %d before", after, before)
	}
}

// openFiles counts the descriptors of eBPF objects.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.Contains(name, "bpf") {
			count++
		}
	}
	return count
}
