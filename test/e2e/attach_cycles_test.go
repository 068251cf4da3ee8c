package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/rightstest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer"
	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// linkCycles is how often probes are put into programs at work and taken out again, tracerCycles how often all of a tracer
// comes and goes, which takes as long as twenty of those. GPUMEMTOP_TEST_CYCLES is for both instead.
const (
	linkCycles   = 300 // a thousand with make test-drivers
	linkWorkers  = 16  // at a time: nearly all of a cycle is waiting for the kernel's grace periods
	tracerCycles = 12
)

func cyclesOf(t *testing.T, normally int) int {
	t.Helper()
	text := os.Getenv("GPUMEMTOP_TEST_CYCLES")
	if text == "" {
		return normally
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wholeRuns is how often a whole gpumemtop does so.
const wholeRuns = 10

// busy runs programs of several threads, one after the other, until stopped, and requires that each ends and prints
// as it does alone. stop returns how many there were.
func busy(t *testing.T, args ...string) (stop func() int) {
	t.Helper()
	bare := runBare(t, args...)
	quit, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-quit:
				done <- n
				return
			default:
			}
			n++
			if difference := differs(bare, run(t, command{args: args})); difference != "" {
				t.Errorf("run %d: %s", n, difference)
			}
		}
	}()
	return func() int { close(quit); return <-done }
}

// seen counts what a tracer tells.
type seen struct {
	creates, lost int
	mistakes      map[string]int
}

func (s *seen) take(r *wire.Record) {
	switch {
	case r.Kind == wire.KindCreate:
		s.creates++
	case r.Kind == wire.KindLost:
		s.lost++
	case r.Kind == wire.KindDiag && wire.Diag(r.Op).IsFinding():
		s.mistakes[wire.Diag(r.Op).String()+" in "+string(r.Payload)]++
	}
}

// Tracers come and go while programs work: the programs notice nothing, and no record is false.
func TestTracersComeAndGo(t *testing.T) {
	t.Parallel()
	rightstest.NeedAttach(t)
	n := cyclesOf(t, tracerCycles)
	program := called(t, example("threads"), "cyclethreads")
	stop := busy(t, program, "4", "3000", "16K")
	recorded := seen{mistakes: map[string]int{}}
	var began, left, closed time.Duration
	for range n {
		at := time.Now()
		tr, err := tracer.Start(tracer.Options{
			Selection: target.Selection{Comms: []string{own("cyclethreads")}}, Tags: wire.TagsStack, Depth: 8, Uses: true, Clock: monotonic,
		})
		if err != nil {
			t.Fatal(err)
		}
		began += time.Since(at)
		poll(t, tr, 5*time.Millisecond, &recorded)
		at = time.Now()
		if err := tr.Detach(); err != nil {
			t.Fatal(err)
		}
		left += time.Since(at)
		poll(t, tr, 0, &recorded)
		at = time.Now()
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
		closed += time.Since(at)
	}
	runs := stop()
	each := func(d time.Duration) time.Duration { return (d / time.Duration(n)).Round(10 * time.Microsecond) }
	t.Logf("%d cycles during %d runs: %v to attach, %v to detach, %v to close; %+v", n, runs, each(began), each(left), each(closed), recorded)
	if recorded.creates == 0 || recorded.lost > 0 || len(recorded.mistakes) > 0 {
		t.Errorf("recorded %+v, want creates, nothing lost, no mistakes", recorded)
	}
}

func monotonic() uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return uint64(now.Nano())
}

func poll(t *testing.T, tr *tracer.Tracer, wait time.Duration, s *seen) {
	t.Helper()
	if _, err := tr.Poll(wait, s.take); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

// Probes come and go hundreds of times in programs of four threads: the programs notice nothing, and the samples of their
// calls is right, each time.
func TestAttachedHundredsOfTimes(t *testing.T) {
	t.Parallel()
	rightstest.NeedAttach(t)
	program, loader := called(t, example("threads"), "cycled"), copyOfLoader(t) // its own, so that no other program's calls count
	stop := busy(t, "env", "LD_LIBRARY_PATH="+filepath.Dir(loader), program, "4", "3000", "16K")
	at, n := time.Now(), cyclesOf(t, thorough(linkCycles))
	var workers sync.WaitGroup
	var samples, done atomic.Int64
	for range linkWorkers {
		checker := newCallChecker(t, loader, "clCreateBuffer", "clReleaseMemObject", "clEnqueueReadBuffer")
		workers.Go(func() {
			over := make(chan struct{})
			var listener sync.WaitGroup
			listener.Go(func() { checker.listen(t, over) })
			for done.Add(1) <= int64(n) && checker.cycle(t) {
			}
			close(over)
			listener.Wait()
			samples.Add(int64(checker.samples))
		})
	}
	workers.Wait()
	runs := stop()
	t.Logf("%d cycles in %v, by %d at a time, during %d runs: %d samples", n, time.Since(at), linkWorkers, runs, samples.Load())
	if samples.Load() == 0 {
		t.Error("no samples")
	}
}

// callChecker probes functions of a loader in every process that has it, and knows which samples the threads example may give.
type callChecker struct {
	kernel  *kernel.Kernel
	loader  string
	probes  []kernel.Probe
	names   []string
	samples int
}

func newCallChecker(t *testing.T, loader string, names ...string) *callChecker {
	t.Helper()
	c := &callChecker{names: names, loader: loader}
	library, err := target.NewCatalog(names, nil).LibraryAt(c.loader)
	if err != nil {
		t.Fatal(err)
	}
	var shapes []wire.Shape
	for i, name := range names {
		for j := range calls.Functions {
			if calls.Functions[j].Name == name {
				shapes = append(shapes, calls.Functions[j].Shape)
			}
		}
		c.probes = append(c.probes, kernel.Probe{Function: uint16(i), Offset: library.Functions[name]})
	}
	c.kernel, err = kernel.LoadPrograms(kernel.Options{RingBytes: 16 << 20, Shapes: shapes, WatchAll: true, Uses: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.kernel.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// cycle attaches and detaches.
func (c *callChecker) cycle(t *testing.T) bool {
	t.Helper()
	link, err := c.kernel.Attach(c.loader, 0, c.probes)
	if err == nil {
		err = link.Close()
	}
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// listen checks samples until done is closed and none is left.
func (c *callChecker) listen(t *testing.T, done <-chan struct{}) {
	for last := false; ; {
		n, err := c.kernel.Poll(10*time.Millisecond, func(s *wire.Sample) { c.check(t, s) })
		if err != nil {
			t.Error(err)
		}
		if err != nil || last && n == 0 {
			break
		}
		select {
		case <-done:
			last = true
		default:
		}
	}
	if lost, _ := c.kernel.LostCallsOfAll(); lost != 0 {
		t.Errorf("%d calls lost", lost)
	}
}

// check demands of a call what is true of all that the example makes.
func (c *callChecker) check(t *testing.T, s *wire.Sample) {
	t.Helper()
	if s.Sight != wire.SightCall || commOf(int(s.Pid)) != own("cycled") {
		return
	}
	c.samples++
	sane := s.Argument[0] != 0 && s.Entered <= s.Time && s.Error == 0
	switch c.names[s.Function] {
	case "clCreateBuffer":
		size := s.Argument[2]
		sane = sane && s.Argument[1] == 1 && s.Result != 0 && (size == 16<<10 || size == 8<<10 || size == 4<<10)
	case "clEnqueueReadBuffer":
		sane = sane && s.Result == 0 && s.Argument[1] != 0 && s.Argument[4] == 4 // bytes
	}
	if !sane {
		t.Errorf("%s: sampled as %+v", c.names[s.Function], s.Call)
	}
}

func commOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// systemLoader is the loader that programs get.
func systemLoader(t *testing.T) string {
	t.Helper()
	for _, path := range target.KnownLoaders() {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatal("there is no libOpenCL here")
	return ""
}

// Whole runs of gpumemtop that end by themselves, one after another over programs at work. On a busy machine some cannot keep
// up, and say so.
func TestAttachedAgainAndAgain(t *testing.T) {
	t.Parallel()
	rightstest.NeedAttach(t)
	stop := busy(t, called(t, example("threads"), "againthreads"), "4", "10000", "16K")
	creates, late := uint64(0), 0
	for n := range wholeRuns {
		w := attach(t, "--comm", "againthreads", "--duration", "200ms")
		if lost := w.whole(); lost > 0 {
			t.Logf("run %d: %d events lost", n, lost)
			late++
		}
		f := figuresIn(t, w.file, true)
		creates += f.Creates
		if len(f.Findings) > 0 {
			t.Errorf("run %d: findings %+v", n, f.Findings)
		}
	}
	if runs := stop(); creates == 0 || late > wholeRuns/2 {
		t.Errorf("%d creates of %d programs, %d of %d runs lost events", creates, runs, late, wholeRuns)
	}
}
