package tracer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// These tests do not poll while the program runs, so its children have ended when their first calls are read.

// processRecord returns the first record of a process, nil if there is none.
func (w *watcher) processRecord(pid int) *wire.Record {
	for i := range w.records {
		if r := &w.records[i]; r.Kind == wire.KindProcess && r.Object == uint64(pid) {
			return r
		}
	}
	return nil
}

// modules returns the files of the call sites of a process.
func (w *watcher) modules(number uint32) []string {
	var list []string
	for i := range w.records {
		if r := &w.records[i]; r.Kind == wire.KindModule && r.Process == number {
			list = append(list, string(r.Payload))
		}
	}
	return list
}

// wantChildOf waits for the events of a child, and checks that it has the command and the files of its parent.
func (w *watcher) wantChildOf(p *program, child, parent int, lines ...string) {
	w.t.Helper()
	w.want(child, lines...)
	r := w.processRecord(child)
	if r == nil {
		w.t.Fatal("the child has no record")
	}
	path := p.Process.Path
	command := strings.Join(p.Process.Args, "\x00")
	if string(r.Payload) != command || r.Link != uint64(parent) {
		w.t.Errorf("the child of %d is %q, forked by %d, want %q, by %d", p.pid, r.Payload, r.Link, command, parent)
	}
	if got := w.modules(r.Process); !slices.Equal(got, []string{path}) || w.OpenablePath(r.Process, path) != path {
		w.t.Errorf("its calls come from %q, which is opened as %q", got, w.OpenablePath(r.Process, path))
	}
}

func pidOf(t *testing.T, answer string) (pid, parent int) {
	t.Helper()
	if n, err := fmt.Sscan(answer, &pid, &parent); n == 0 {
		t.Fatalf("%q is not a pid: %v", answer, err)
	}
	return pid, parent
}

func TestChildThatIsGone(t *testing.T) {
	for name, selection := range map[string]func(*program) target.Selection{
		"by name": func(*program) target.Selection { return target.Selection{Comms: []string{forkProgram}} },
		"all":     func(*program) target.Selection { return target.Selection{All: true} },
		"followed": func(p *program) target.Selection {
			return target.Selection{PIDs: []int{p.pid}, Follow: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := beginAs(t, forkProgram, loader, "create 1 50")
			w := watch(t, selection(p))
			child, _ := pidOf(t, p.do("fork 3"))
			w.wantChildOf(p, child, p.pid, "process", "create buffer 1 333", "exit 3 signal 0")
			p.do("create 1 60") // now the parent is watched, not only a candidate
			child, _ = pidOf(t, p.do("fork 4"))
			w.wantChildOf(p, child, p.pid, "process", "create buffer 1 333", "exit 4 signal 0")
			child, parent := pidOf(t, p.do("generations 3"))
			w.wantChildOf(p, child, parent, "process", "create buffer 1 444", "exit 0 signal 0")
			if name != "by name" && w.warned("ended before") { // by name, other programs' children are looked at, too
				t.Errorf("warned %q", w.warns)
			}
		})
	}
}

// The stack of such a child is unwound with the view of its parent.
func TestStackOfChildThatIsGone(t *testing.T) {
	p := begin(t, loader, "create 1 50")
	w := watchWith(t, target.Selection{All: true}, func(o *Options) { o.Tags, o.Depth = wire.TagsStack, wire.StackMax })
	p.do("create 1 60")
	w.until("a create", func() bool { return w.processRecord(p.pid) != nil })
	child, _ := pidOf(t, p.do("fork 3"))
	w.want(child, "process", "create buffer 1 333", "exit 3 signal 0")
	frames := 0
	for i := range w.records {
		if r := &w.records[i]; r.Kind == wire.KindTag && r.Process == w.processRecord(child).Process {
			frames = max(frames, len(r.Payload)/16)
		}
	}
	if frames < 5 { // create, child, act, main, and the caller of main
		t.Errorf("%d frames", frames)
	}
}

// A name in the selection does not select the children of a process that is named by pid.
func TestChildOfAnother(t *testing.T) {
	p := begin(t, loader, "create 1 50")
	s := pids(p)
	s.Comms = []string{"no-such-name"}
	w := watch(t, s)
	child, _ := pidOf(t, p.do("fork 3"))
	p.do("create 1 60")
	w.want(p.pid, "process", "create buffer 1 60")
	w.wantNothing(child)
}

// A child that executes another program no longer has the view of its parent.
func TestChildThatExecutes(t *testing.T) {
	p := beginAs(t, forkProgram, loader, "create 1 50")
	other := copyOf(t, built.program, "otherprogram")
	w := watch(t, target.Selection{Comms: []string{forkProgram}})
	for n, want := range [][]string{
		nil,
		{"process", "create buffer 1 555", "exit -1 signal 0"},
	} {
		child, _ := pidOf(t, p.do("spawn "+other+" "+strconv.Itoa(n)))
		last, _ := pidOf(t, p.do("fork 3")) // a later fork, reported after the exec
		w.wantChildOf(p, last, p.pid, "process", "create buffer 1 333", "exit 3 signal 0")
		if got := w.eventsOf(child); !slices.Equal(got, want) {
			t.Errorf("events of the child: %q, want %q", got, want)
		}
		if w.table.findProcess(child) != nil || w.kernel.IsWatched(child) {
			t.Error("the child is still known")
		}
	}
}

// Children without calls leave nothing behind.
func TestIdleChildren(t *testing.T) {
	p := begin(t, loader, "create 1 50")
	w := watch(t, target.Selection{All: true})
	p.do("idle 500")
	last, _ := pidOf(t, p.do("fork 3"))
	w.wantChildOf(p, last, p.pid, "process", "create buffer 1 333", "exit 3 signal 0")
	w.until("all children to be gone from the table", func() bool { // and other programs' processes that have just ended
		for pid, h := range w.table.byPID {
			if h.parent == p.pid || w.kernel.IsWatched(pid) && !target.ProcessExists(pid) {
				return false
			}
		}
		return true
	})
}
