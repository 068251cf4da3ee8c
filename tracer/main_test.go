package tracer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/cprogram"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/rightstest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// patience is how long a test waits for an event, on a busy machine.
const patience = time.Minute

// Names that no other program has: these tests may run beside those of another copy of the repository.
var (
	wantedProgram = "wanted" + strconv.Itoa(os.Getpid())
	forkProgram   = "forks" + strconv.Itoa(os.Getpid())
)

// loader is the system's ICD loader, as a program asks for it.
const loader = "libOpenCL.so.1"

// built are the driver and the program for tests, compiled once.
var built struct {
	once                    sync.Once
	folder, program, vendor string
	err                     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.folder != "" {
		_ = os.RemoveAll(built.folder)
	}
	os.Exit(code)
}

func compile() (err error) {
	if built.folder, err = os.MkdirTemp("", "gpumemtop-tracer-"); err != nil {
		return err
	}
	built.program, built.vendor = filepath.Join(built.folder, "tracedprogram"), filepath.Join(built.folder, "vendors")
	driver := filepath.Join(built.folder, "libtracericd.so")
	return errors.Join(
		cprogram.RunCompiler("-O1", "-fvisibility=hidden", "-shared", "-fPIC", "testdata/icd.c", "-o", driver),
		cprogram.RunCompiler("-O1", "testdata/program.c", "-o", built.program, "-ldl", "-pthread"),
		os.Mkdir(built.vendor, 0o755), os.WriteFile(filepath.Join(built.vendor, "tracer.icd"), []byte(driver+"\n"), 0o600))
}

// copyOf copies a file into a new folder.
func copyOf(t *testing.T, from, name string) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// program is a process that runs testdata/program.c.
type program struct {
	*cprogram.Program
	t   *testing.T
	pid int
}

// begin starts the program, with arguments.
func begin(t *testing.T, arguments ...string) *program {
	t.Helper()
	return beginAs(t, "", arguments...)
}

// beginAs starts the program under another name, unless that is "".
func beginAs(t *testing.T, name string, arguments ...string) *program {
	t.Helper()
	rightstest.NeedAttach(t)
	built.once.Do(func() { built.err = compile() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	path := built.program
	if name != "" {
		path = copyOf(t, path, name)
	}
	command := exec.Command(path, arguments...)
	command.Env = append(os.Environ(), "OCL_ICD_VENDORS="+built.vendor+"/")
	command.Stderr = os.Stderr
	p := &program{Program: cprogram.StartProgram(t, command), t: t}
	p.pid = p.PID()
	for range max(len(arguments), 1) { // one answer for the start, or one for each command
		p.answer()
	}
	return p
}

// answer waits for "done" and returns the line before it.
func (p *program) answer() string {
	p.t.Helper()
	for before := ""; ; {
		line := p.NextLine()
		if line == "done" {
			return before
		}
		before = line
	}
}

func (p *program) do(command string) string {
	p.t.Helper()
	p.SendLine(command)
	return p.answer()
}

// watcher is a tracer and the records that it has made.
type watcher struct {
	*Tracer
	t       *testing.T
	records []wire.Record
	ended   bool

	mu    sync.Mutex
	warns []string
}

func clock() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return uint64(now.Nano())
}

func (w *watcher) options(selection target.Selection) Options {
	return Options{
		Selection: selection, Tags: wire.TagsCaller, Depth: 1, Uses: true, Clock: clock,
		Warn: func(text string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.warns = append(w.warns, text)
		},
	}
}

// watch starts a tracer.
func watch(t *testing.T, selection target.Selection) *watcher {
	t.Helper()
	return watchWith(t, selection, func(*Options) {})
}

func watchWith(t *testing.T, selection target.Selection, change func(*Options)) *watcher {
	t.Helper()
	rightstest.NeedAttach(t)
	w := &watcher{t: t}
	o := w.options(selection)
	change(&o)
	var err error
	if w.Tracer, err = Start(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *watcher) warned(part string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.warns, func(text string) bool { return strings.Contains(text, part) })
}

// poll polls once.
func (w *watcher) poll(wait time.Duration) int {
	w.t.Helper()
	n, err := w.Poll(wait, func(r *wire.Record) {
		kept := *r
		kept.Payload = slices.Clone(r.Payload)
		w.records = append(w.records, kept)
	})
	if err != nil && !errors.Is(err, io.EOF) {
		w.t.Fatal(err)
	}
	w.ended = w.ended || err != nil
	return n
}

// until polls until a condition holds.
func (w *watcher) until(what string, enough func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !enough(); w.poll(20 * time.Millisecond) {
		if time.Now().After(end) {
			events := w.events()
			w.t.Fatalf("waited for %s: %d events, the latest\n%s\nwarned: %q", what, len(events), strings.Join(events[max(0, len(events)-20):], "\n"), w.warns)
		}
	}
}

// eventsOf returns the events of a process, by pid, in words; only those that matter here.
func (w *watcher) eventsOf(pid int) []string {
	var lines []string
	mine := map[uint32]bool{}
	for i := range w.records {
		r := &w.records[i]
		if r.Kind == wire.KindProcess && r.Object == uint64(pid) {
			mine[r.Process] = true
		}
		if text := describe(r); mine[r.Process] && text != "" {
			lines = append(lines, text)
		}
	}
	return lines
}

// events returns the events of all processes.
func (w *watcher) events() []string {
	var lines []string
	for i := range w.records {
		if text := describe(&w.records[i]); text != "" {
			lines = append(lines, fmt.Sprint(w.records[i].Process, " ", text))
		}
	}
	return lines
}

// hasProbes reports whether a file whose name has a prefix is probed.
func (w *watcher) hasProbes(name string, pid int) bool {
	for _, f := range w.probes.files {
		if p := f.probes[pid]; p != nil && len(p.links) > 0 && strings.HasPrefix(filepath.Base(p.path), name) {
			return true
		}
	}
	return false
}

func describe(r *wire.Record) string {
	switch {
	case r.Kind == wire.KindProcess:
		return "process"
	case r.Kind == wire.KindDiag && r.IsDefinition():
		return "" // follows it
	case r.Kind == wire.KindCreate && r.Flags&wire.FlagCarried != 0:
		return fmt.Sprintf("carried %d %d", r.Object, r.Size)
	case r.Kind == wire.KindCreate:
		return fmt.Sprintf("create %v %d %d", wire.Memory(r.Op), r.Object, r.Size)
	case r.Kind == wire.KindRelease:
		return fmt.Sprintf("release %d", r.Object)
	case r.Kind == wire.KindExit:
		return fmt.Sprintf("exit %d signal %d", r.Status, r.Object)
	case r.Kind == wire.KindLost, r.Kind == wire.KindDiag:
		return r.Kind.String()
	}
	return ""
}

// want waits for the events of a process, and checks that there are no others.
func (w *watcher) want(pid int, lines ...string) {
	w.t.Helper()
	w.until(strings.Join(lines, ", "), func() bool { return len(w.eventsOf(pid)) >= len(lines) })
	if got := w.eventsOf(pid); !slices.Equal(got, lines) {
		w.t.Errorf("events of %d:\n%s\nwant\n%s", pid, strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
	if !slices.IsSortedFunc(w.records, func(a, b wire.Record) int { return int(a.Time) - int(b.Time) }) {
		w.t.Error("times are not monotonic")
	}
}

// wantNothing checks that a process has no events so far.
func (w *watcher) wantNothing(pid int) {
	w.t.Helper()
	if got := w.eventsOf(pid); len(got) > 0 {
		w.t.Errorf("events of %d: %q", pid, got)
	}
}
