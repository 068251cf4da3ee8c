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

// Nothing is polled while a program does what it is told, so its children are gone when their first calls are read.

// record returns what was told of a process first: nil when nothing was.
func (w *watcher) record(pid int) *wire.Record {
	for i := range w.told {
		if r := &w.told[i]; r.Kind == wire.KindProcess && r.Object == uint64(pid) {
			return r
		}
	}
	return nil
}

// modules returns the files that call sites of a process were told to lie in.
func (w *watcher) modules(number uint32) []string {
	var list []string
	for i := range w.told {
		if r := &w.told[i]; r.Kind == wire.KindModule && r.Process == number {
			list = append(list, string(r.Payload))
		}
	}
	return list
}

// wantHeir waits for what a child does, and demands that it is known as its parent is, by its command and its files.
func (w *watcher) wantHeir(p *program, child, parent int, lines ...string) {
	w.t.Helper()
	w.want(child, lines...)
	r := w.record(child)
	if r == nil {
		w.t.Fatal("the child has no record")
	}
	path := p.Process.Path
	command := strings.Join(p.Process.Args, "\x00")
	if string(r.Payload) != command || r.Link != uint64(parent) {
		w.t.Errorf("the child of %d is %q, forked by %d, want %q, by %d", p.pid, r.Payload, r.Link, command, parent)
	}
	if got := w.modules(r.Process); !slices.Equal(got, []string{path}) || w.Open(r.Process, path) != path {
		w.t.Errorf("its calls come from %q, which is opened as %q", got, w.Open(r.Process, path))
	}
}

func pidOf(t *testing.T, answer string) (pid, parent int) {
	t.Helper()
	if n, err := fmt.Sscan(answer, &pid, &parent); n == 0 {
		t.Fatalf("%q is no process id: %v", answer, err)
	}
	return pid, parent
}

func TestChildThatIsGone(t *testing.T) {
	for name, selection := range map[string]func(*program) target.Selection{
		"of one by name": func(*program) target.Selection { return target.Selection{Comms: []string{"forkprogram"}} },
		"of all":         func(*program) target.Selection { return target.Selection{All: true} },
		"followed": func(p *program) target.Selection {
			return target.Selection{PIDs: []int{p.pid}, Follow: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := beginAs(t, "forkprogram", loader, "create 1 50")
			w := watch(t, selection(p))
			child, _ := pidOf(t, p.do("fork 3"))
			w.wantHeir(p, child, p.pid, "process", "create buffer 1 333", "exit 3 signal 0")
			p.do("create 1 60") // now it is not only one that may call something
			child, _ = pidOf(t, p.do("fork 4"))
			w.wantHeir(p, child, p.pid, "process", "create buffer 1 333", "exit 4 signal 0")
			child, parent := pidOf(t, p.do("generations 3"))
			w.wantHeir(p, child, parent, "process", "create buffer 1 444", "exit 0 signal 0")
			if w.warned("ended before") {
				t.Errorf("warned %q", w.warns)
			}
		})
	}
}

// The whole stack of such a child is unwound with what is known of its parent.
func TestStackOfChildThatIsGone(t *testing.T) {
	p := begin(t, loader, "create 1 50")
	w := watchWith(t, target.Selection{All: true}, func(o *Options) { o.Tags, o.Depth = wire.TagsStack, wire.StackMax })
	p.do("create 1 60")
	w.until("a create", func() bool { return w.record(p.pid) != nil })
	child, _ := pidOf(t, p.do("fork 3"))
	w.want(child, "process", "create buffer 1 333", "exit 3 signal 0")
	frames := 0
	for i := range w.told {
		if r := &w.told[i]; r.Kind == wire.KindTag && r.Process == w.record(child).Process {
			frames = max(frames, len(r.Payload)/16)
		}
	}
	if frames < 5 { // create, child, act, main, and what calls main
		t.Errorf("%d frames", frames)
	}
}

// The children of one that was named by its id are none of ours because another one is named.
func TestChildOfAnother(t *testing.T) {
	p := begin(t, loader, "create 1 50")
	s := pids(p)
	s.Comms = []string{"nobody-is-called-so"}
	w := watch(t, s)
	child, _ := pidOf(t, p.do("fork 3"))
	p.do("create 1 60")
	w.want(p.pid, "process", "create buffer 1 60")
	if got := w.of(child); len(got) > 0 {
		t.Errorf("of the child was told %q", got)
	}
}

// What a child had from its parent is void when it executes another program.
func TestChildThatExecutes(t *testing.T) {
	p := beginAs(t, "forkprogram", loader, "create 1 50")
	other := copyOf(t, built.program, "otherprogram")
	w := watch(t, target.Selection{Comms: []string{"forkprogram"}})
	for n, want := range [][]string{
		nil,
		{"process", "create buffer 1 555", "exit -1 signal 0"},
	} {
		child, _ := pidOf(t, p.do("spawn "+other+" "+strconv.Itoa(n)))
		last, _ := pidOf(t, p.do("fork 3")) // what comes later was told later
		w.wantHeir(p, last, p.pid, "process", "create buffer 1 333", "exit 3 signal 0")
		if got := w.of(child); !slices.Equal(got, want) {
			t.Errorf("of the child was told %q, want %q", got, want)
		}
		if w.known(child) || w.kernel.Watches(child) {
			t.Error("the child is still known")
		}
	}
}

// Nothing stays of children that call nothing.
func TestIdleChildren(t *testing.T) {
	p := begin(t, loader, "create 1 50")
	w := watch(t, target.Selection{All: true})
	p.do("idle 500")
	last, _ := pidOf(t, p.do("fork 3"))
	w.wantHeir(p, last, p.pid, "process", "create buffer 1 333", "exit 3 signal 0")
	for pid, h := range w.hopes {
		if h.parent == p.pid || w.kernel.Watches(pid) && !target.Exists(pid) {
			t.Errorf("%d is still hoped for", pid)
		}
	}
}
