package tracer

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/cprogram"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/rightstest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

func pids(list ...*program) target.Selection {
	var s target.Selection
	for _, p := range list {
		s.PIDs = append(s.PIDs, p.pid)
	}
	return s
}

func TestByPid(t *testing.T) {
	p, other := begin(t, loader, "create 2 50"), begin(t, loader, "create 1 50")
	w := watch(t, pids(p))
	if w.WatchedCount() != 1 {
		t.Errorf("%d processes are watched", w.WatchedCount())
	}
	p.do("create 2 1000")
	other.do("create 2 1000")
	p.do("release")
	p.SendLine("exit 7")
	w.want(p.pid, "process", "create buffer 1 1000", "create buffer 2 1000", "release 2", "release 1",
		"carried 3 0", "release 3", "carried 4 0", "release 4", "exit 7 signal 0")
	w.until("the end", func() bool { return w.ended })
	if got := w.eventsOf(other.pid); len(got) > 0 || w.WatchedCount() != 0 {
		t.Errorf("events of another process: %q; %d are watched", got, w.WatchedCount())
	}
}

// Poll ends when both processes have ended.
func TestPollEndsWithTheProcesses(t *testing.T) {
	a, b := begin(t, loader), begin(t, loader)
	w := watch(t, pids(a, b))
	a.SendLine("kill 11")
	w.want(a.pid, "process", "exit 139 signal 11")
	if w.ended || w.WatchedCount() != 1 {
		t.Errorf("ended: %v, with %d watched", w.ended, w.WatchedCount())
	}
	b.Kill()
	w.want(b.pid, "process", "exit 137 signal 9")
	w.until("the end", func() bool { return w.ended })
}

func TestByName(t *testing.T) {
	p, other := beginAs(t, wantedProgram, loader, "create 1 50"), begin(t, loader, "create 1 50")
	w := watch(t, target.Selection{Comms: []string{wantedProgram}})
	p.do("create 1 1000")
	other.do("create 1 1000")
	w.want(p.pid, "process", "create buffer 1 1000")
	w.until("the verdict on the other", func() bool { return len(w.eventsOf(other.pid)) == 0 })
	// A later process is watched from its first call on, even through an unknown loader.
	later := beginAs(t, wantedProgram, loader, "create 1 2000")
	w.want(later.pid, "process", "create buffer 1 2000")
	later.SendLine("exit 0")
	w.want(later.pid, "process", "create buffer 1 2000", "exit 0 signal 0")
	private := beginAs(t, wantedProgram, copyOf(t, realLoader(t), "libprivate.so"))
	w.until("probes", func() bool { return w.table.findProcess(private.pid) != nil })
	private.do("create 1 3000")
	w.want(private.pid, "process", "create buffer 1 3000")
	w.wantNothing(other.pid)
}

func realLoader(t *testing.T) string {
	t.Helper()
	list := target.KnownLoaders()
	if len(list) == 0 {
		t.Fatal("this machine has no ICD loader")
	}
	return list[0]
}

func TestAll(t *testing.T) {
	a := begin(t, loader, "create 1 50")
	w := watch(t, target.Selection{All: true})
	b := begin(t, loader, "create 1 60")
	idle := begin(t)
	a.do("create 1 70")
	b.do("release")
	w.want(a.pid, "process", "create buffer 1 70")
	w.want(b.pid, "process", "create buffer 1 60", "release 1")
	w.wantNothing(idle.pid)
	b.SendLine("exit 1")
	w.want(b.pid, "process", "create buffer 1 60", "release 1", "exit 1 signal 0")
	idle.Kill()
	w.until("nothing is left of those that ended", func() bool {
		return w.table.findProcess(b.pid) == nil && w.table.findProcess(idle.pid) == nil && w.probes.mapped[b.pid] == nil && w.probes.mapped[idle.pid] == nil
	})
	if w.ended {
		t.Error("Poll ended although others may start")
	}
}

func TestFollow(t *testing.T) {
	for name, follow := range map[string]bool{"with": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			p := begin(t, loader, "create 1 50")
			s := pids(p)
			s.Follow = follow
			w := watch(t, s)
			child, err := strconv.Atoi(p.do("fork 3"))
			if err != nil {
				t.Fatal(err)
			}
			p.do("create 1 60")
			w.want(p.pid, "process", "create buffer 1 60")
			if follow {
				w.want(child, "process", "create buffer 1 333", "exit 3 signal 0")
			} else if got := w.eventsOf(child); len(got) > 0 {
				t.Errorf("events of the child: %q", got)
			}
			p.Kill()
			w.until("the end", func() bool { return w.ended })
		})
	}
}

// Follow watches the children of a process that is selected by name, whatever their names, even if it has made no call
// yet.
func TestFollowByName(t *testing.T) {
	p := beginAs(t, wantedProgram, loader)
	w := watch(t, target.Selection{Comms: []string{wantedProgram}, Follow: true})
	child, err := strconv.Atoi(p.do("fork 3"))
	if err != nil {
		t.Fatal(err)
	}
	w.want(child, "process", "create buffer 1 333", "exit 3 signal 0")
	w.wantNothing(p.pid)
}

// In a pid namespace of our own, as in a container, forks, execs and exits are seen as outside.
func TestInPidNamespace(t *testing.T) {
	rightstest.RunInPidNamespace(t, "TestByPid", "TestFollow", "TestExec", "TestChildThatIsGone", "TestChildThatExecutes", "TestPollEndsWithTheProcesses")
}

func TestExec(t *testing.T) {
	for _, command := range []string{"exec ", "threadexec "} {
		for name, follow := range map[string]bool{"alone": false, "followed": true} {
			t.Run(command+name, func(t *testing.T) {
				p := begin(t, loader, "create 1 50")
				s := pids(p)
				s.Follow = follow
				w := watch(t, s)
				p.SendLine(command + loader)
				w.until("the end of the first program", func() bool { return len(w.eventsOf(p.pid)) >= 2 })
				p.answer()
				if !follow && command == "threadexec " { // calls before the probes are reattached are missed
					w.until("the probes of the second program", func() bool { return len(w.remapped) == 0 })
					p.do("create 1 888")
					w.until("a create of the second program", func() bool {
						return slices.Contains(w.eventsOf(p.pid), "create buffer 1 888") || slices.Contains(w.eventsOf(p.pid), "create buffer 2 888")
					})
				} else {
					w.want(p.pid, "process", "exit -1 signal 0", "process", "create buffer 1 777")
				}
				p.SendLine("exit 4")
				w.until("the end", func() bool { return w.ended })
				if got := w.eventsOf(p.pid); got[1] != "exit -1 signal 0" || got[2] != "process" || got[len(got)-1] != "exit 4 signal 0" {
					t.Errorf("events: %q", got)
				}
			})
		}
	}
}

func TestLoadedLater(t *testing.T) {
	for name, path := range map[string]string{"the system's": loader, "a private one": copyOf(t, realLoader(t), "libother.so")} {
		t.Run(name, func(t *testing.T) {
			p := begin(t)
			w := watch(t, pids(p))
			if !w.warned("has not loaded OpenCL yet") {
				t.Errorf("warned %q", w.warns)
			}
			p.do("load " + path)
			w.until("probes", func() bool { return w.hasProbes(filepath.Base(path), p.pid) })
			p.do("create 1 1000")
			w.want(p.pid, "process", "create buffer 1 1000")
		})
	}
}

func TestDetach(t *testing.T) {
	p := begin(t, loader, "create 1 50")
	w := watch(t, pids(p))
	for range 10 {
		p.do("create 300 8")
	}
	for range 2 {
		if err := w.Detach(); err != nil {
			t.Fatal(err)
		}
	}
	p.do("create 5 8")
	for w.poll(0) > 0 {
	}
	if got := w.eventsOf(p.pid); len(got) != 3001 || got[3000] != "create buffer 3000 8" {
		t.Errorf("%d lines, at the end %q", len(got), got[len(got)-1])
	}
	if n := w.poll(time.Hour); n > 0 { // and it does not wait
		t.Errorf("%d records after the last", n)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w.WakePoll()
	if n, err := w.Poll(time.Hour, nil); n != 0 || !errors.Is(err, io.EOF) || w.Detach() != nil {
		t.Errorf("after Close: %d, %v", n, err)
	}
}

// TestEndsAfterDetach: a process that ends while the probes are removed goes on as far as is known, since its last releases were not
// reported. A process that ended before is over.
func TestEndsAfterDetach(t *testing.T) {
	before, after := begin(t, loader, "create 1 50"), begin(t, loader, "create 1 60")
	w := watch(t, pids(before, after))
	before.do("create 1 70")
	after.do("create 1 80")
	before.Kill()
	if err := w.Detach(); err != nil {
		t.Fatal(err)
	}
	after.Kill()
	for w.poll(0) > 0 {
	}
	if got := w.eventsOf(before.pid); len(got) == 0 || got[len(got)-1] != "exit 137 signal 9" {
		t.Errorf("%q", got)
	}
	if got := w.eventsOf(after.pid); len(got) == 0 || got[len(got)-1] != "create buffer 1 80" {
		t.Errorf("%q", got)
	}
}

// What a process maps after Detach is not probed.
func TestMappedAfterDetach(t *testing.T) {
	p := begin(t)
	w := watch(t, pids(p))
	p.do("load " + loader) // reported, but not read yet
	if err := w.Detach(); err != nil {
		t.Fatal(err)
	}
	w.poll(0)
	for _, f := range w.probes.files {
		for _, probed := range f.probes {
			if len(probed.links) > 0 {
				t.Errorf("%s is probed", probed.path)
			}
		}
	}
}

func TestStartFails(t *testing.T) {
	p := begin(t, loader)
	gone := begin(t, loader)
	gone.Kill()
	fails := func(s target.Selection, want error) {
		w := &watcher{t: t}
		if tracer, err := Start(w.options(s)); !errors.Is(err, want) {
			t.Errorf("%v: %v, %v, want %v", s, tracer, err, want)
		}
	}
	fails(pids(p, gone), target.ErrGone) // opens what the runtime keeps open
	files, routines := openFiles(t), runtime.NumGoroutine()
	for range 3 {
		fails(pids(p, gone), target.ErrGone)
		fails(target.Selection{PIDs: []int{p.pid, os.Getpid()}}, target.ErrRefused)
		fails(target.Selection{PIDs: []int{os.Getpid()}, All: true}, target.ErrRefused)
	}
	if now := openFiles(t); now != files || runtime.NumGoroutine() > routines {
		t.Errorf("%d descriptors and %d goroutines, before %d and %d", now, runtime.NumGoroutine(), files, routines)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestCloseLeavesNothing(t *testing.T) {
	p := begin(t, loader, "create 1 50")
	round := func() {
		w := watch(t, pids(p))
		p.do("create 1 8")
		w.want(p.pid, "process", "create buffer 1 8")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	round()
	files, routines := openFiles(t), runtime.NumGoroutine()
	for range 3 {
		round()
	}
	if now := openFiles(t); now != files || runtime.NumGoroutine() > routines {
		t.Errorf("%d descriptors and %d goroutines, before %d and %d", now, runtime.NumGoroutine(), files, routines)
	}
}

// A lost exit is detected.
func TestLostEnd(t *testing.T) {
	gone := begin(t, loader)
	p := begin(t, loader)
	w := watch(t, pids(p))
	gone.Kill()
	ended := w.table.forgetPreviousProgram(gone.pid)
	ended.view = w.inspectCode(&target.Process{PID: gone.pid})
	w.beginWatching(ended, 0)
	w.table.forgetPreviousProgram(gone.pid + 1<<22)
	w.scan.ends = endScans
	w.want(gone.pid, "process", "exit -1 signal 0")
	w.until("the end of a candidate", func() bool { return len(w.table.byPID) == 1 })
	if w.table.byPID[p.pid] == nil {
		t.Error("a running process was dropped")
	}
}

// Calls that were lost before we read the first of a process count as lost: a handle may have come back in one of them.
func TestLostBeforeTheFirstIsRead(t *testing.T) {
	w := watchWith(t, target.Selection{Comms: []string{wantedProgram}}, func(o *Options) { o.ringBytes = 64 << 10 })
	p := beginAs(t, wantedProgram, loader, "create 3000 70", "release", "create 3000 80", "release")
	lost, uses := w.kernel.LostCalls(p.pid)
	w.until("losses", func() bool { return slices.Contains(w.eventsOf(p.pid), "lost") })
	p.do("create 1 90")
	w.until("a create", func() bool {
		return slices.ContainsFunc(w.eventsOf(p.pid), func(e string) bool { return strings.HasSuffix(e, " 90") })
	})
	for _, r := range w.records {
		switch {
		case r.Kind == wire.KindLost && (lost == 0 || r.Size != lost || uses != 0):
			t.Errorf("%d calls are recorded as lost of %d, %d of them uses", r.Size, lost, uses)
		case r.Kind == wire.KindDiag && !r.IsDefinition():
			t.Errorf("a finding where calls were lost: %+v", r)
		}
	}
}

// No verdict must be left for a later process with the same pid.
func TestIgnoredProcessThatIsGone(t *testing.T) {
	p := begin(t, loader)
	w := watch(t, target.Selection{Comms: []string{"no-such-name"}})
	p.Kill()
	w.ignoreProcess(p.pid)
	if err := w.kernel.SetVerdict(p.pid, kernel.Forget); err != nil {
		t.Error(err)
	}
	if w.selectAtFirstCall(p.pid, clock()) != nil || !w.warned("ended before its name") {
		t.Errorf("an unknown process is watched, or there is no warning: %q", w.warns)
	}
}

// Programs that were over before we looked at all are watched if they were executed under a selected name.
func TestEndedBeforeTheLook(t *testing.T) {
	w := watch(t, target.Selection{Comms: []string{wantedProgram}})
	wanted, other := beginAs(t, wantedProgram, loader, "create 1 70"), beginAs(t, "otherprogram", loader, "create 1 80")
	wanted.Kill()
	other.Kill()
	w.want(wanted.pid, "process", "create buffer 1 70", "exit 137 signal 9")
	w.wantNothing(other.pid)
	if len(w.warns) > 0 || w.names[wanted.pid]+w.names[other.pid] != "" {
		t.Errorf("warned %q, names left %v", w.warns, w.names)
	}
}

// A process that executes a selected program while we decide to ignore it is watched.
func TestIgnoredTooLate(t *testing.T) {
	p := beginAs(t, wantedProgram, loader)
	w := watch(t, target.Selection{Comms: []string{wantedProgram}})
	before, err := target.OpenProcess(p.pid)
	if err != nil {
		t.Fatal(err)
	}
	p.SendLine("exec " + loader)
	p.answer()
	w.ignoreInspected(before)
	p.do("create 1 70")
	w.until("the later create", func() bool { return slices.Contains(w.eventsOf(p.pid), "create buffer 2 70") })
}

// A function that cannot be probed does not prevent the others.
func TestFunctionThatCannotBeProbed(t *testing.T) {
	rightstest.NeedAttach(t)
	source := filepath.Join(t.TempDir(), "odd.c")
	text := `int clGetPlatformIDs(void) { return 1; } int clCreateBuffer(void) { return 2; }
__asm__(".globl clReleaseMemObject; .type clReleaseMemObject, @function; clReleaseMemObject: int3; .skip 90; ret");`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(filepath.Dir(source), "libodd.so")
	if err := cprogram.RunCompiler("-O1", "-shared", "-fPIC", source, "-o", odd); err != nil {
		t.Fatal(err)
	}
	p := begin(t, loader)
	w := watch(t, pids(p))
	p.do("load " + odd) // the kernel checks instructions only in mapped files
	library, err := w.catalog.LibraryAt(odd)
	if err != nil || len(library.Functions) < 3 {
		t.Fatalf("%+v, %v", library, err)
	}
	for range 2 {
		if n, err := w.probes.attachToLibrary(&library, p.pid); n != 2 {
			t.Errorf("%d functions are probed: %v", n, err)
		}
	}
}

// A process that ends while we inspect it causes no warnings.
func TestNoWarningsAboutEndedProcesses(t *testing.T) {
	p, gone := begin(t, loader, "create 1 50"), begin(t, loader)
	w := watch(t, pids(p))
	p.do("create 1 60")
	w.want(p.pid, "process", "create buffer 1 60")
	gone.Kill()
	library := target.Library{Path: "/private/libOpenCL.so", Err: errors.ErrUnsupported}
	w.probeLibrary(&library, gone.pid)
	if w.warned(library.Path) {
		t.Errorf("warned %q", w.warns)
	}
	w.probeLibrary(&library, p.pid)
	if !w.warned(library.Path) {
		t.Error("no warning about a running process")
	}
	watched := w.table.byPID[p.pid]
	p.Kill()
	if w.noteExtensionReceived(watched, "clMemFreeINTEL", 8); w.warned("clMemFreeINTEL") {
		t.Errorf("warned %q", w.warns)
	}
}

// Probes are removed from files that no process maps.
func TestUnusedFiles(t *testing.T) {
	copied := copyOf(t, realLoader(t), "libshort.so")
	p := begin(t, copied)
	w := watch(t, target.Selection{All: true})
	var info unix.Stat_t
	if err := unix.Stat(copied, &info); err != nil {
		t.Fatal(err)
	}
	probed := func() bool {
		for id := range w.probes.files {
			if id.number == info.Ino {
				return true
			}
		}
		return false
	}
	w.until("probes", probed)
	now := clock()
	w.probes.removeProbesOfUnmapped(now)
	w.probes.removeProbesOfUnmapped(now + 2*idleNS)
	if !probed() {
		t.Error("the probes of a mapped file were removed")
	}
	p.Kill()
	w.until("the end", func() bool { return w.probes.mapped[p.pid] == nil })
	now = clock()
	w.probes.removeProbesOfUnmapped(now)
	if !probed() {
		t.Error("the probes were removed at once")
	}
	w.probes.removeProbesOfUnmapped(now + 2*idleNS)
	if probed() {
		t.Error("the probes were not removed")
	}
	if loaders := target.KnownLoaders(); len(w.probes.files) == 0 && len(loaders) > 0 {
		t.Error("the probes of the system's loader were removed, too")
	}
}

// In a rewritten file, old breakpoints would be in the middle of other code.
func TestRewrittenFile(t *testing.T) {
	copied := copyOf(t, realLoader(t), "libanew.so")
	p := begin(t, copied, "create 1 50")
	w := watch(t, target.Selection{All: true})
	p.do("create 1 60")
	w.want(p.pid, "process", "create buffer 1 60")
	library, err := w.catalog.LibraryAt(copied)
	if err != nil {
		t.Fatal(err)
	}
	f := w.probes.files[inodeOfFile(library.Identity)]
	before := f.probes[allProcesses]
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(copied, later, later); err != nil {
		t.Fatal(err)
	}
	renewed := begin(t, copied)
	w.until("new probes", func() bool { return f.probes[allProcesses] != nil && f.probes[allProcesses] != before })
	if len(before.links) != 0 || w.probes.files[inodeOfFile(library.Identity)] != f {
		t.Error("the old probes are still there")
	}
	renewed.do("create 1 70")
	w.want(renewed.pid, "process", "create buffer 1 70")
}

func TestOpen(t *testing.T) {
	p := begin(t, loader, "create 1 50")
	w := watch(t, pids(p))
	path := built.program
	for _, number := range []uint32{0, 2, 1 << 31} {
		if got := w.OpenablePath(number, path); got != "" {
			t.Errorf("process %d opens %q", number, got)
		}
	}
	if got := w.OpenablePath(1, path); got != path {
		t.Errorf("opened as %q", got)
	}
	p.Kill()
	w.until("the end", func() bool { return w.ended })
	if got := w.OpenablePath(1, path); got != path {
		t.Errorf("after the end opened as %q", got)
	}
	for range endedMax {
		w.registry.endProcess(w.registry.addProcess(&target.Process{}))
	}
	if got := w.OpenablePath(1, path); got != "" || len(w.registry.ended) != endedMax {
		t.Errorf("long after the end opened as %q, with %d remembered", got, len(w.registry.ended))
	}
}

var errAsked = errors.New("no answer")

func TestFailedQuery(t *testing.T) {
	p := begin(t, loader, "create 1 50")
	w := watchWith(t, pids(p), func(o *Options) {
		o.Ask = func(context.Context, []string) ([]byte, error) { return nil, errAsked }
	})
	w.until("a warning", func() bool { return w.warned(errAsked.Error()) })
}

// Close cancels the query and waits for it.
func TestCloseDuringQuery(t *testing.T) {
	p := begin(t, loader, "create 1 50")
	asked, over := make(chan bool), false
	w := watchWith(t, pids(p), func(o *Options) {
		o.Ask = func(ctx context.Context, _ []string) ([]byte, error) {
			close(asked)
			<-ctx.Done()
			over = true
			return nil, ctx.Err()
		}
	})
	<-asked
	if err := w.Close(); err != nil || !over {
		t.Errorf("%v; over: %v", err, over)
	}
}

func TestRecordsBeforeTheFirstPoll(t *testing.T) {
	w := &Tracer{}
	payload := []byte("a")
	w.bufferRecord(&wire.Record{Payload: payload})
	payload[0] = 'b'
	if len(w.buffered) != 1 || string(w.buffered[0].Payload) != "a" {
		t.Errorf("%+v", w.buffered)
	}
}
