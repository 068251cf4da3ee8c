package tracer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/rights/rightstest"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
	"codeberg.org/gpumemtop/gpumemtop/tracer/tracertest"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// loader is that of the system, as a program asks for it.
const loader = "libOpenCL.so.1"

// built are the test's driver and program, made once.
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
		tracertest.Compile("-O1", "-fvisibility=hidden", "-shared", "-fPIC", "testdata/icd.c", "-o", driver),
		tracertest.Compile("-O1", "testdata/program.c", "-o", built.program, "-ldl", "-pthread"),
		os.Mkdir(built.vendor, 0o755), os.WriteFile(filepath.Join(built.vendor, "tracer.icd"), []byte(driver+"\n"), 0o600))
}

// copyOf copies a file into a folder of its own.
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
	*tracertest.Program
	t   *testing.T
	pid int
}

// begin starts the program, with arguments.
func begin(t *testing.T, arguments ...string) *program {
	t.Helper()
	return beginAs(t, "", arguments...)
}

// beginAs starts the program under a name of its own.
func beginAs(t *testing.T, name string, arguments ...string) *program {
	t.Helper()
	rightstest.Need(t)
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
	p := &program{Program: tracertest.Start(t, command), t: t}
	p.pid = p.PID()
	for range max(len(arguments), 1) { // for being there, and for each command
		p.answer()
	}
	return p
}

// answer waits for "done" and returns the line before it.
func (p *program) answer() string {
	p.t.Helper()
	for before := ""; ; {
		line := p.Line()
		if line == "done" {
			return before
		}
		before = line
	}
}

func (p *program) do(command string) string {
	p.t.Helper()
	p.Send(command)
	return p.answer()
}

// watcher is a tracer and what it has told.
type watcher struct {
	*Tracer
	t     *testing.T
	told  []wire.Record
	ended bool

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
	rightstest.Need(t)
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
		w.told = append(w.told, kept)
	})
	if err != nil && !errors.Is(err, io.EOF) {
		w.t.Fatal(err)
	}
	w.ended = w.ended || err != nil
	return n
}

// until polls until something is so.
func (w *watcher) until(what string, enough func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !enough(); w.poll(20 * time.Millisecond) {
		if time.Now().After(end) {
			told := w.all()
			w.t.Fatalf("this did not come: %s; %d records, at the end\n%s\nwarned: %q", what, len(told), strings.Join(told[max(0, len(told)-20):], "\n"), w.warns)
		}
	}
}

// of returns what was told of a process that is known by its pid: in words, and without what does not matter here.
func (w *watcher) of(pid int) []string {
	var lines []string
	mine := map[uint32]bool{}
	for i := range w.told {
		r := &w.told[i]
		if r.Kind == wire.KindProcess && r.Object == uint64(pid) {
			mine[r.Process] = true
		}
		if text := describe(r); mine[r.Process] && text != "" {
			lines = append(lines, text)
		}
	}
	return lines
}

// all is what was told of anybody.
func (w *watcher) all() []string {
	var lines []string
	for i := range w.told {
		if text := describe(&w.told[i]); text != "" {
			lines = append(lines, fmt.Sprint(w.told[i].Process, " ", text))
		}
	}
	return lines
}

// probes reports whether a file whose name begins so is probed.
func (w *watcher) probes(name string, pid int) bool {
	for _, f := range w.links.files {
		if p := f.probed[pid]; p != nil && len(p.links) > 0 && strings.HasPrefix(filepath.Base(p.path), name) {
			return true
		}
	}
	return false
}

func describe(r *wire.Record) string {
	switch {
	case r.Kind == wire.KindProcess:
		return "process"
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

// want waits for what must be told of a process, and for nothing else.
func (w *watcher) want(pid int, lines ...string) {
	w.t.Helper()
	w.until(strings.Join(lines, ", "), func() bool { return len(w.of(pid)) >= len(lines) })
	if got := w.of(pid); !slices.Equal(got, lines) {
		w.t.Errorf("of %d was told\n%s\nwant\n%s", pid, strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
	if !slices.IsSortedFunc(w.told, func(a, b wire.Record) int { return int(a.Time) - int(b.Time) }) {
		w.t.Error("times go back")
	}
}
