package kernel

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/cprogram"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/rightstest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/rights"
)

// The functions of testdata/calls.h.
const (
	create = iota
	set
	name
	list
	use
	hold
	launch
	functions
)

var symbols = [functions]string{"create", "set", "name", "list", "use", "hold", "launch"}

var shapes = []wire.Shape{
	create: {Flags: wire.ShapeReturn | wire.ShapeStack, Error: 5},
	set:    {Flags: wire.ShapeReturn, Object: 1, Like: 1, Copy: [2]wire.Copy{{Argument: 4, Unit: 1, Count: 3}}},
	name:   {Copy: [2]wire.Copy{{}, {Argument: 1, Text: 1}}},
	list:   {Flags: wire.ShapeReturn, Copy: [2]wire.Copy{{Argument: 2, Unit: 8, Count: 1}}},
	use:    {Flags: wire.ShapeUse},
	hold:   {Flags: wire.ShapeReturn},
	launch: {Flags: wire.ShapeReturn | wire.ShapeUse, Event: 9},
}

// types are decoded once for all tests.
var types = btf.NewCache()

// patience is how long a test waits for an event.
const patience = 20 * time.Second

// programs are the driver and its library, compiled once.
var programs struct {
	once            sync.Once
	folder          string
	driver, library string
	err             error
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		play(role)
		return
	}
	code := m.Run()
	if programs.folder != "" {
		_ = os.RemoveAll(programs.folder)
	}
	os.Exit(code)
}

func build(tb testing.TB) {
	tb.Helper()
	programs.once.Do(func() { programs.err = compile() })
	if programs.err != nil {
		tb.Fatal(programs.err)
	}
}

func compile() (err error) {
	if programs.folder, err = os.MkdirTemp("", "gpumemtop-kernel-"); err != nil {
		return err
	}
	programs.library = filepath.Join(programs.folder, "libcalls.so")
	programs.driver = filepath.Join(programs.folder, "driver")
	return errors.Join(
		cprogram.RunCompiler("-O2", "-fPIC", "-shared", "testdata/calls.c", "-o", programs.library),
		cprogram.RunCompiler("-O2", "-pthread", "-mno-red-zone", "testdata/driver.c", programs.library, "-Wl,-rpath,$ORIGIN", "-o", programs.driver))
}

// probes returns the offsets of functions in the library.
func probes(tb testing.TB, numbers ...int) []Probe {
	tb.Helper()
	file, err := elf.Open(programs.library)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read
	dynamic, err := file.DynamicSymbols()
	if err != nil {
		tb.Fatal(err)
	}
	var found []Probe
	for _, number := range numbers {
		for _, symbol := range dynamic {
			for _, part := range file.Progs {
				if symbol.Name == symbols[number] && part.Type == elf.PT_LOAD && symbol.Value-part.Vaddr < part.Filesz {
					found = append(found, Probe{uint16(number), symbol.Value - part.Vaddr + part.Off})
				}
			}
		}
	}
	if len(found) != len(numbers) {
		tb.Fatalf("found %v, want functions %v", found, numbers)
	}
	return found
}

// driver is a process that runs testdata/driver.c.
type driver struct {
	*cprogram.Program
	tb  testing.TB
	pid int
}

func drive(tb testing.TB) *driver {
	tb.Helper()
	return driveIn(tb, nil)
}

func driveIn(tb testing.TB, surroundings *syscall.SysProcAttr) *driver {
	tb.Helper()
	build(tb)
	command := exec.Command(programs.driver)
	command.SysProcAttr = surroundings
	command.Env = []string{"LC_ALL=C"} // our environment may be larger than the stack of a sample
	d := &driver{Program: cprogram.StartProgram(tb, command), tb: tb}
	d.pid = d.PID()
	d.answer("ready")
	return d
}

func (d *driver) answer(want string) {
	d.tb.Helper()
	if got := d.NextLine(); got != want {
		d.tb.Fatalf("the driver answers %q, want %q", got, want)
	}
}

// do sends a command and checks that the driver succeeded.
func (d *driver) do(command string) {
	d.tb.Helper()
	d.SendLine(command)
	d.answer("0")
}

// open loads the programs. It skips the test only if package rights says that they cannot be loaded.
func open(tb testing.TB, o Options) *Kernel {
	tb.Helper()
	rightstest.NeedAttach(tb)
	if o.Shapes == nil {
		o.Shapes = shapes
	}
	if o.RingBytes == 0 {
		o.RingBytes = 16 << 20
	}
	o.Types = types
	k, err := LoadPrograms(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := k.Close(); err != nil {
			tb.Error(err)
		}
	})
	return k
}

func attach(tb testing.TB, k *Kernel, pid int, numbers ...int) *Link {
	tb.Helper()
	build(tb)
	l, err := k.Attach(programs.library, pid, probes(tb, numbers...))
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func judge(tb testing.TB, k *Kernel, pid int, v Verdict) {
	tb.Helper()
	if err := k.SetVerdict(pid, v); err != nil {
		tb.Fatal(err)
	}
}

// skipWithout skips a test of a feature that is not in use, or fails if package rights says that it should be.
func skipWithout(t *testing.T, feature string) {
	t.Helper()
	f := rights.ExamineThisSystem().Feature(feature)
	if f.State == rights.Yes {
		t.Fatalf("this kernel has the feature, but it is not in use: %s", f.Detail)
	}
	t.Skip(f.Detail)
}

// kinds runs a test with each kind of link that the kernel has.
func kinds(t *testing.T, o Options, test func(t *testing.T, k *Kernel)) {
	t.Run("multi", func(t *testing.T) {
		k := open(t, o)
		if !k.multi {
			skipWithout(t, rights.FeatureMulti)
		}
		test(t, k)
	})
	t.Run("single", func(t *testing.T) {
		o.single = true
		k := open(t, o)
		if k.multi {
			t.Fatal("multi links in spite of Options.single")
		}
		test(t, k)
	})
}

// keep copies a sample, which is valid only during the call of sink.
func keep(s *wire.Sample) wire.Sample {
	kept := *s
	kept.Copies = append([]byte(nil), s.Copies...)
	kept.Memory = append([]byte(nil), s.Memory...)
	return kept
}

// poll polls until a condition holds.
func poll(tb testing.TB, k *Kernel, sink func(*wire.Sample), enough func() bool) {
	tb.Helper()
	for end := time.Now().Add(patience); !enough(); {
		if time.Now().After(end) {
			tb.Fatal("what was waited for did not come")
		}
		if _, err := k.Poll(50*time.Millisecond, sink); err != nil {
			tb.Fatal(err)
		}
	}
}

// gather polls for n samples.
func gather(tb testing.TB, k *Kernel, n int) []wire.Sample {
	tb.Helper()
	var got []wire.Sample
	poll(tb, k, func(s *wire.Sample) { got = append(got, keep(s)) }, func() bool { return len(got) >= n })
	if len(got) != n {
		tb.Fatalf("%d samples, want %d", len(got), n)
	}
	return got
}

// nothing polls once more and expects no samples: whatever was done would be in the ring already.
func nothing(tb testing.TB, k *Kernel) {
	tb.Helper()
	_, err := k.Poll(0, func(s *wire.Sample) {
		tb.Errorf("an unwanted %v of process %d, function %d", s.Sight, s.Pid, s.Function)
	})
	if err != nil {
		tb.Fatal(err)
	}
}
