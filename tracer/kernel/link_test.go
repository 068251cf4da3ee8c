package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/rightstest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// code returns the first bytes of functions as a process sees them and as they are in the file.
func code(tb testing.TB, pid int, probes []Probe) (seen, stored []byte) {
	tb.Helper()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		tb.Fatal(err)
	}
	defer memory.Close() //nolint:errcheck // only read
	file, err := os.ReadFile(programs.library)
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range probes {
		part := make([]byte, 16)
		if _, err := memory.ReadAt(part, int64(addressOf(tb, pid, p.Offset))); err != nil {
			tb.Fatal(err)
		}
		seen = append(seen, part...)
		stored = append(stored, file[p.Offset:p.Offset+16]...)
	}
	return seen, stored
}

// addressOf returns the address in a process of an offset in the library.
func addressOf(tb testing.TB, pid int, offset uint64) uint64 {
	tb.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range bytes.Lines(maps) {
		var start, end, at uint64
		var rights string
		if _, err := fmt.Sscanf(string(line), "%x-%x %s %x", &start, &end, &rights, &at); err != nil {
			tb.Fatal(err)
		}
		if bytes.Contains(line, []byte(programs.library)) && offset >= at && offset-at < end-start {
			return start + offset - at
		}
	}
	tb.Fatalf("process %d does not map the library", pid)
	return 0
}

func TestDetachLeavesTheCodeAsItWas(t *testing.T) {
	kinds(t, Options{}, func(t *testing.T, k *Kernel) {
		d := drive(t)
		l := attach(t, k, 0, create, name)
		at := probes(t, create, name)
		if seen, stored := code(t, d.pid, at); bytes.Equal(seen, stored) {
			t.Fatal("the code shows no probe: this test checks nothing")
		}
		for range 2 {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		untouched(t, d, at)
	})
}

func untouched(t *testing.T, d *driver, at []Probe) {
	t.Helper()
	seen, stored := code(t, d.pid, at)
	if !bytes.Equal(seen, stored) {
		t.Errorf("the code is %x, want %x", seen, stored)
	}
}

func TestFailedAttachLeavesNothing(t *testing.T) {
	kinds(t, Options{}, func(t *testing.T, k *Kernel) {
		d := drive(t)
		at := probes(t, create, name, list)
		wrong := append(at[:2:2], Probe{set, 1 << 40}, at[2])
		_, err := k.Attach(programs.library, 0, wrong)
		var failed *ProbeError
		if !errors.As(err, &failed) || failed.Function != set || failed.Offset != 1<<40 || failed.File != programs.library {
			t.Errorf("a function that the file does not have: %v", err)
		}
		untouched(t, d, at)
		if _, err := k.Attach(programs.library+"?", 0, at); !errors.Is(err, ErrGone) || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file that does not exist: %v", err)
		}
		ended := drive(t)
		ended.Kill()
		if _, err := k.Attach(programs.library, ended.pid, at); !errors.Is(err, ErrGone) || errors.As(err, &failed) {
			t.Errorf("a process that has ended: %v", err)
		}
		untouched(t, d, at)
		if _, err := k.Attach(programs.library, 0, []Probe{{functions, 0}}); err == nil {
			t.Error("a function without a shape was probed")
		}
	})
}

func TestCloseDetaches(t *testing.T) {
	rightstest.NeedAttach(t)
	d := drive(t)
	k, err := LoadPrograms(Options{Shapes: shapes, RingBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	l := attach(t, k, 0, create)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	untouched(t, d, probes(t, create))
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := k.Attach(programs.library, 0, probes(t, create)); err == nil {
		t.Error("a closed kernel attaches probes")
	}
}

func TestAttachAndDetachWhileCalled(t *testing.T) {
	kinds(t, Options{Stacks: true}, func(t *testing.T, k *Kernel) {
		d := drive(t)
		judge(t, k, d.pid, Watch)
		at := probes(t, create, set, name, list)
		d.do("start 2")
		reported := 0
		check := func(s *wire.Sample) { reported++; checkCreate(t, s) }
		rounds := 10 // new kernels are slow to remove single probes
		if k.multi {
			rounds = 50
		}
		for range rounds {
			l, err := k.Attach(programs.library, d.pid, at)
			if err != nil {
				t.Fatal(err)
			}
			before := reported
			poll(t, k, check, func() bool { return reported > before })
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		d.do("stop")
		untouched(t, d, at)
	})
}

// Since Linux 6.11 a return probe makes a system call, which the filters of containers do not know. Kernels before 6.14
// without cf6cb56ef244 ("seccomp: passthrough uretprobe systemcall without filtering") then kill the watched process.
func TestSeccompFilterIsNoObstacle(t *testing.T) {
	rightstest.NeedAttachWithSeccomp(t)
	kinds(t, Options{}, func(t *testing.T, k *Kernel) {
		d := drive(t)
		d.do("confine")
		judge(t, k, d.pid, Watch)
		attach(t, k, d.pid, create, name)
		d.do("run 2 5")
		gather(t, k, 10)
	})
}

// roleEnv makes the test binary act in another role: see play.
const roleEnv = "GPUMEMTOP_TEST_ROLE"

// play attaches probes of the kind that role names, until it is killed, or reports how New failed.
func play(role string) {
	var pid int
	var file string
	var p Probe
	_, _ = fmt.Sscan(os.Getenv(roleEnv+"_ARGUMENTS"), &pid, &p.Offset, &file)
	k, err := LoadPrograms(Options{Shapes: shapes, RingBytes: 1 << 20, single: role == "single"})
	if role == refusedRole {
		fmt.Println(errors.Is(err, ErrPermission))
		return
	}
	if err == nil {
		_, err = k.Attach(file, pid, []Probe{p})
	}
	fmt.Println(err)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestKillLeavesTheCodeAsItWas(t *testing.T) {
	for _, role := range []string{"multi", "single"} {
		t.Run(role, func(t *testing.T) {
			open(t, Options{}) // or skip
			d := drive(t)
			at := probes(t, create)
			holder := exec.Command("/proc/self/exe")
			holder.Env = append(os.Environ(), roleEnv+"="+role,
				fmt.Sprintf("%s_ARGUMENTS=%d %d %s", roleEnv, d.pid, at[0].Offset, programs.library))
			in, _ := holder.StdinPipe()
			defer in.Close() //nolint:errcheck // only its end matters
			out, err := holder.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := holder.Start(); err != nil {
				t.Fatal(err)
			}
			var text string
			if _, err := fmt.Fscanln(out, &text); err != nil || text != "<nil>" {
				_ = holder.Process.Kill()
				t.Fatalf("the holder says %q: %v", text, err)
			}
			if seen, stored := code(t, d.pid, at); bytes.Equal(seen, stored) {
				t.Error("the code shows no probe: this test checks nothing")
			}
			_ = holder.Process.Kill()
			_ = holder.Wait()
			// The kernel removes the probes soon after the process ends.
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if seen, stored := code(t, d.pid, at); bytes.Equal(seen, stored) {
					break
				}
			}
			untouched(t, d, at)
			d.do("run 2 100")
		})
	}
}

// refusedRole is the role that reports the error of New.
const refusedRole = "refused"

func TestRefusedWithoutRights(t *testing.T) {
	open(t, Options{}) // or skip
	if os.Getuid() != 0 {
		t.Skip("only root can switch to another user")
	}
	unprivileged := exec.Command("/proc/self/exe")
	unprivileged.Env = append(os.Environ(), roleEnv+"="+refusedRole)
	unprivileged.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := unprivileged.CombinedOutput()
	if err != nil || string(out) != "true\n" {
		t.Errorf("New without rights: %s, %v; want an ErrPermission", out, err)
	}
}

// In a pid namespace of our own, as in a container, all numbers are those of the namespace.
func TestInPidNamespace(t *testing.T) {
	rightstest.RunInPidNamespace(t, "TestPairsCallsOfThreads", "TestVerdicts", "TestWatchAllButIgnored", "TestForkedChildIsFollowed", "TestExec",
		"TestExitStatus", "TestPidNamespaceBelow")
}

// A process in a pid namespace below ours is seen with its numbers in ours.
func TestPidNamespaceBelow(t *testing.T) {
	rightstest.NeedPidNamespace(t)
	k := openLifecycle(t, Options{Follow: true})
	d := driveIn(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID})
	judge(t, k, d.pid, Watch)
	attach(t, k, 0, create)
	d.SendLine("fork")
	if text := d.NextLine(); text != "2" {
		t.Errorf("the child's number in its own namespace is %s, want 2", text)
	}
	got := lives(t, k, 3)
	child := int(got[0].Result)
	same(t, describe(d, child, got), "driver fork -1", "child call 7900900", fmt.Sprint("child exit ", 3<<8))
	if k.IsWatched(child) {
		t.Error("the child that ended is watched")
	}
	d.SendLine("exec")
	d.answer("ready")
	d.SendLine("exit 7")
	same(t, describe(d, child, lives(t, k, 2)), "driver exec 0", fmt.Sprint("driver exit ", 7<<8))
}
