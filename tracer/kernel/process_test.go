package kernel

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/rights"
)

func TestVerdicts(t *testing.T) {
	kinds(t, Options{}, func(t *testing.T, k *Kernel) {
		watched, other := drive(t), drive(t)
		attach(t, k, 0, create)
		round := func() { watched.do("run 1 5"); other.do("run 1 5") }
		round()
		nothing(t, k)
		judge(t, k, watched.pid, Watch)
		judge(t, k, other.pid, Ignore)
		round()
		for _, s := range gather(t, k, 5) {
			if int(s.Pid) != watched.pid {
				t.Errorf("a call of %d, want only those of %d", s.Pid, watched.pid)
			}
		}
		judge(t, k, watched.pid, Forget)
		judge(t, k, watched.pid, Forget)
		round()
		nothing(t, k)
	})
}

func TestWatchAllButIgnored(t *testing.T) {
	k := open(t, Options{WatchAll: true})
	unknown, ignored := drive(t), drive(t)
	attach(t, k, 0, create)
	judge(t, k, ignored.pid, Ignore)
	unknown.do("run 1 5")
	ignored.do("run 1 5")
	n := 0
	poll(t, k, func(s *wire.Sample) {
		if s.Sight == wire.SightCall {
			n++
			if int(s.Pid) != unknown.pid {
				t.Errorf("a call of %d, want only those of %d", s.Pid, unknown.pid)
			}
		}
	}, func() bool { return n >= 5 })
}

func TestProbesOfOneProcess(t *testing.T) {
	kinds(t, Options{WatchAll: true}, func(t *testing.T, k *Kernel) {
		probed, other := drive(t), drive(t)
		attach(t, k, probed.pid, create)
		other.do("run 2 5")
		probed.do("run 2 5") // threads that are newer than the probes
		n := 0
		poll(t, k, func(s *wire.Sample) {
			if s.Sight == wire.SightCall {
				n++
				if int(s.Pid) != probed.pid {
					t.Errorf("a call of %d, want only those of %d", s.Pid, probed.pid)
				}
			}
		}, func() bool { return n >= 10 })
	})
}

// The verdict or the probes may change during a call. A return must not be paired with the entry of another call.
func TestReturnIsPairedWithItsOwnEntry(t *testing.T) {
	kinds(t, Options{}, func(t *testing.T, k *Kernel) {
		d := drive(t)
		l := attach(t, k, 0, hold)
		judge(t, k, d.pid, Watch)
		d.hold(1)
		judge(t, k, d.pid, Forget)
		d.release(1)
		d.hold(2)
		judge(t, k, d.pid, Watch)
		d.release(2)
		nothing(t, k)
		d.hold(3)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		d.release(3)
		d.hold(4)
		attach(t, k, 0, hold)
		d.release(4)
		nothing(t, k)
		d.hold(5)
		d.release(5)
		if s := gather(t, k, 1)[0]; s.Argument[0] != 5 || s.Result != 6 {
			t.Errorf("hold(%d) = %d, want hold(5) = 6", s.Argument[0], s.Result)
		}
	})
}

// hold has the driver call a function that lasts until release, and returns once the function runs.
func (d *driver) hold(n int) {
	d.tb.Helper()
	d.SendLine(fmt.Sprint("hold ", n))
	d.answer("holding")
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", d.pid))
		if err != nil {
			d.tb.Fatal(err)
		}
		if strings.HasPrefix(string(call), "0 0x0 ") { // it waits for input
			return
		}
	}
	d.tb.Fatal("the driver does not hold")
}

func (d *driver) release(n int) {
	d.tb.Helper()
	d.SendLine("")
	d.answer(fmt.Sprint(n + 1))
}

// While paused, no calls are reported. A call that is running then is reported neither at its entry nor at its return.
func TestPausedReportsNothing(t *testing.T) {
	kinds(t, Options{}, func(t *testing.T, k *Kernel) {
		d := drive(t)
		judge(t, k, d.pid, Watch)
		attach(t, k, 0, create, name, hold)
		setPaused := func(paused bool) {
			if err := k.SetPaused(paused); err != nil {
				t.Fatal(err)
			}
		}
		setPaused(true)
		d.do("run 1 5")
		d.hold(1)
		setPaused(false)
		d.release(1)
		nothing(t, k)
		d.hold(2)
		setPaused(true)
		d.release(2)
		setPaused(false)
		nothing(t, k)
		d.do("run 1 5")
		calls := 0
		poll(t, k, func(s *wire.Sample) {
			if s.Sight == wire.SightCall && int(s.Pid) == d.pid {
				calls++
			}
		}, func() bool { return calls >= 5 })
	})
}

func TestCloseTwice(t *testing.T) {
	k := open(t, Options{}) // which closes it again
	if err := errors.Join(k.Close(), k.Close()); err != nil {
		t.Error(err)
	}
}

// Forget resets the losses of a process, so that there is room for others.
func TestLossesAreForgotten(t *testing.T) {
	k := open(t, Options{})
	const pid = 1 << 22 // larger than any pid
	if err := k.calls.Maps[callsMapLosses].Put(uint32(pid), loss{Calls: 5, Uses: 2}); err != nil {
		t.Fatal(err)
	}
	if calls, uses := k.LostCalls(pid); calls != 5 || uses != 2 {
		t.Errorf("%d, %d", calls, uses)
	}
	judge(t, k, pid, Forget)
	if calls, uses := k.LostCalls(pid); calls != 0 || uses != 0 {
		t.Errorf("%d, %d", calls, uses)
	}
}

func TestUsesAreLeftOut(t *testing.T) {
	d := drive(t)
	k := open(t, Options{Uses: false})
	judge(t, k, d.pid, Watch)
	attach(t, k, 0, use, name)
	d.do("use 5")
	nothing(t, k)
}

// openLifecycle is open for tests that need forks, execs and exits reported.
func openLifecycle(t *testing.T, o Options) *Kernel {
	t.Helper()
	k := open(t, o)
	if !k.ReportsLifecycle() {
		skipWithout(t, rights.FeatureLifecycle)
	}
	return k
}

// lives gathers n samples of forks, execs and exits.
func lives(t *testing.T, k *Kernel, n int) []wire.Sample {
	t.Helper()
	var got []wire.Sample
	poll(t, k, func(s *wire.Sample) {
		got = append(got, keep(s))
	}, func() bool { return len(got) >= n })
	return got
}

// describe formats samples, with "child" for the pid of the child.
func describe(d *driver, child int, samples []wire.Sample) (text []string) {
	for _, s := range samples {
		who := fmt.Sprint(s.Pid)
		switch int(s.Pid) {
		case d.pid:
			who = "driver"
		case child:
			who = "child"
		}
		result := int64(s.Result)
		if s.Sight == wire.SightFork && result == int64(child) {
			result = -1
		}
		text = append(text, fmt.Sprint(who, " ", s.Sight, " ", result))
	}
	return text
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("reported %v, want %v", got, want)
	}
}

func TestForkedChildIsFollowed(t *testing.T) {
	k := openLifecycle(t, Options{Follow: true})
	d := drive(t)
	judge(t, k, d.pid, Watch)
	if !k.IsWatched(d.pid) {
		t.Error("the driver is not watched")
	}
	attach(t, k, 0, create)
	d.SendLine("fork")
	var child int
	if _, err := fmt.Sscan(d.NextLine(), &child); err != nil {
		t.Fatal(err)
	}
	same(t, describe(d, child, lives(t, k, 3)), "driver fork -1", "child call 7900900", fmt.Sprint("child exit ", 3<<8))
	if v := verdictOf(t, k, child); v != Forget || k.IsWatched(child) {
		t.Errorf("the verdict of a process that ended is %d", v)
	}
}

// Without a verdict for a child, neither its exec nor its exit would be reported, so its fork is not either.
func TestForkWithoutRoom(t *testing.T) {
	k := openLifecycle(t, Options{Follow: true})
	d := drive(t)
	judge(t, k, d.pid, Watch)
	verdicts := k.calls.Maps[callsMapVerdicts]
	for pid := uint32(1 << 22); verdicts.Put(pid, uint32(Ignore)) == nil; pid++ { // larger than any pid
	}
	d.SendLine("fork")
	_ = d.NextLine()
	nothing(t, k)
}

func TestForkedChildIsNotFollowed(t *testing.T) {
	k := openLifecycle(t, Options{})
	d := drive(t)
	judge(t, k, d.pid, Watch)
	attach(t, k, 0, create)
	d.SendLine("fork")
	var child int
	if _, err := fmt.Sscan(d.NextLine(), &child); err != nil {
		t.Fatal(err)
	}
	d.do("run 1 1") // a thread is not a child
	same(t, describe(d, child, lives(t, k, 2)), "driver fork -1", "driver call 7100000")
}

func verdictOf(t *testing.T, k *Kernel, pid int) Verdict {
	t.Helper()
	var v uint32
	if k.calls.Maps[callsMapVerdicts].Lookup(uint32(pid), &v) != nil {
		return Forget
	}
	return Verdict(v)
}

func TestExec(t *testing.T) {
	for _, watchAll := range []bool{false, true} {
		d := drive(t)
		k := openLifecycle(t, Options{WatchAll: watchAll})
		judge(t, k, d.pid, Watch)
		d.SendLine("exec")
		d.answer("ready")
		var execs int
		another := false // whether a thread other than the main one executes
		reported := func(s *wire.Sample) {
			if s.Sight == wire.SightExec && int(s.Pid) == d.pid && (s.Result != 0) == another {
				execs++
				if s.ProgramName() != "driver" {
					t.Errorf("executed %q, want the driver", s.ProgramName())
				}
			}
		}
		poll(t, k, reported, func() bool { return execs > 0 })
		want := Watch
		if watchAll {
			want = Forget
		}
		if v := verdictOf(t, k, d.pid); v != want || execs != 1 {
			t.Errorf("watchall %v: %d execs, then the verdict is %d, want %d", watchAll, execs, v, want)
		}
		judge(t, k, d.pid, Watch)
		d.SendLine("threadexec")
		d.answer("ready")
		another = true
		poll(t, k, reported, func() bool { return execs > 1 })
	}
}

func TestExitStatus(t *testing.T) {
	tests := []struct {
		name string
		end  func(d *driver)
		want syscall.WaitStatus
	}{
		{"exit", func(d *driver) { d.SendLine("exit 7") }, 7 << 8},
		{"exit with threads", func(d *driver) { d.do("start 3"); d.SendLine("exit 5") }, 5 << 8},
		{"last thread", func(d *driver) { d.SendLine("last") }, 0},
		{"signal", func(d *driver) { _ = unix.Kill(d.pid, unix.SIGTERM) }, 15},
		{"kill", func(d *driver) { d.do("start 2"); _ = unix.Kill(d.pid, unix.SIGKILL) }, 9},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k := openLifecycle(t, Options{})
			d := drive(t)
			judge(t, k, d.pid, Watch)
			test.end(d)
			got := lives(t, k, 1)[0]
			if got.Sight != wire.SightExit || int(got.Pid) != d.pid || syscall.WaitStatus(got.Result) != test.want {
				t.Errorf("%v of %d with %#x, want exit of %d with %#x", got.Sight, got.Pid, got.Result, d.pid, test.want)
			}
			_ = d.Process.Wait()
			if status := d.Process.ProcessState.Sys().(syscall.WaitStatus); status&^0x80 != test.want {
				t.Errorf("the driver ended with %#x, want %#x", status, test.want)
			}
			nothing(t, k)
		})
	}
}

func TestWakeEndsPoll(t *testing.T) {
	k := open(t, Options{})
	for _, late := range []bool{false, true} {
		if late {
			go func() { k.WakePoll() }()
		} else {
			k.WakePoll()
		}
		before := time.Now()
		n, err := k.Poll(time.Hour, func(*wire.Sample) {})
		if n != 0 || err != nil || time.Since(before) > time.Minute {
			t.Errorf("woken Poll: %d, %v after %v", n, err, time.Since(before))
		}
	}
}

// A call while Poll waits ends its wait.
func TestCallEndsPoll(t *testing.T) {
	k := open(t, Options{})
	d := drive(t)
	judge(t, k, d.pid, Watch)
	attach(t, k, 0, create)
	for round := range 20 {
		d.SendLine("run 1 1")
		n := 0
		for n == 0 {
			got, err := k.Poll(time.Hour, func(*wire.Sample) {})
			if err != nil {
				t.Fatal(err)
			}
			n += got
		}
		d.answer("0")
		if n != 1 {
			t.Fatalf("round %d: %d calls", round, n)
		}
	}
}
