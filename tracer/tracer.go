package tracer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/rights"
	"codeberg.org/gpumemtop/gpumemtop/tracer/stack"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// sweepNS is how often losses are looked at, and what the kernel does not tell of.
const sweepNS = 250_000_000

// Options say what to watch and what to tell of it.
type Options struct {
	target.Selection
	Tags  wire.TagMode
	Depth int  // frames of a stack, 1 to wire.StackMax
	Uses  bool // tell of commands and synchronisation, too, not only of memory that comes and goes

	// Ask starts a process that asks the drivers of this machine where their extension functions lie, see
	// target.AskVendors. nil: nobody is asked, and those without a symbol are seen only when a program asks for them.
	Ask func(ctx context.Context, environment []string) ([]byte, error)
	// Clock reads CLOCK_MONOTONIC in ns.
	Clock func() uint64
	// Warn takes messages for the user, from any goroutine; nil: nobody is told.
	Warn func(text string)
}

// Tracer watches processes. Poll, Detach and Close are for one goroutine, the rest for any.
type Tracer struct {
	options   Options
	kernel    *kernel.Kernel
	catalog   *target.Catalog
	files     *stack.Files
	links     *links
	vendors   vendors
	processes map[int]*process // by pid
	greeted   map[int]*process // by pid: will be watched once they do more than ask which platforms there are
	expected  map[int]bool     // pids that will be watched once they call something: children, and what was named
	refused   map[int]bool     // pids that the user was told of
	told      map[string]bool  // files that the user was told of
	watch     *target.Watch    // nil where the kernel tells how processes come and go
	detached  bool

	put     func(*wire.Record)
	waiting []wire.Record // made when nobody was there to take them
	last    uint64        // time of the latest record
	swept   uint64        // when chores were done

	mu       sync.Mutex
	numbered []*target.Process // by number, from 1
	watched  int
}

// Start puts probes into the processes that are selected, and into the files that those to come will map. The error says
// in one sentence what is in the way and what to do.
func Start(options Options) (*Tracer, error) {
	if options.Warn == nil {
		options.Warn = func(string) {}
	}
	if err := options.Check(); err != nil {
		return nil, err
	}
	report := rights.Examine()
	if err := report.Refusal(); err != nil {
		return nil, err
	}
	core, extensions := names()
	t := &Tracer{
		options: options, catalog: target.NewCatalog(core, extensions), files: stack.NewFiles(),
		processes: map[int]*process{}, greeted: map[int]*process{}, expected: map[int]bool{}, refused: map[int]bool{}, told: map[string]bool{},
		vendors: newVendors(), last: options.Clock(),
	}
	t.put = t.keep
	var err error
	t.kernel, err = kernel.New(kernel.Options{
		Shapes: shapes(), Everyone: options.Open(), Follow: options.Follow,
		Stacks: options.Tags == wire.TagsStack, Uses: options.Uses,
	})
	if err != nil {
		return nil, rights.Explain(err)
	}
	t.links = newLinks(t.kernel, options.Open() || options.Follow)
	if !t.kernel.Lifecycle() {
		t.watch = target.NewWatch()
	}
	if err := t.begin(); err != nil {
		return nil, errors.Join(rights.Explain(err), t.Close())
	}
	return t, nil
}

// names returns the functions to look for: those of OpenCL itself and those of its extensions.
func names() (core, extensions []string) {
	for i := range calls.Functions {
		if f := &calls.Functions[i]; f.Extension {
			extensions = append(extensions, f.Name)
		} else {
			core = append(core, f.Name)
		}
	}
	return core, extensions
}

func shapes() []wire.Shape {
	shapes := make([]wire.Shape, len(calls.Functions))
	for i := range calls.Functions {
		shapes[i] = calls.Functions[i].Shape
	}
	return shapes
}

// keep is where records go that are made while nobody polls.
func (t *Tracer) keep(r *wire.Record) {
	kept := *r
	kept.Payload = append([]byte(nil), r.Payload...)
	t.waiting = append(t.waiting, kept)
}

// Poll waits at most so long for something to happen and hands records over, in the order of their times. It returns how
// many there were, and io.EOF when nothing is left to watch.
func (t *Tracer) Poll(wait time.Duration, put func(*wire.Record)) (int, error) {
	n := 0
	t.put = func(r *wire.Record) {
		n++
		put(r)
	}
	defer func() { t.put = t.keep }()
	for i := range t.waiting {
		t.put(&t.waiting[i])
	}
	t.waiting = nil
	if n > 0 {
		wait = 0
	}
	for {
		told, err := t.kernel.Poll(wait, t.sample)
		if err != nil {
			return n, fmt.Errorf("read what the eBPF program tells: %w", err)
		}
		// After the probes are gone the ring is emptied: what is in it may be of no interest, and behind it something is.
		if !t.detached || told == 0 || n > 0 {
			break
		}
	}
	t.chores()
	if len(t.processes)+len(t.expected) == 0 && !t.options.Open() {
		return n, io.EOF
	}
	return n, nil
}

// sample takes what the kernel tells.
func (t *Tracer) sample(s *wire.Sample) {
	pid := int(s.Pid)
	switch s.Sight {
	case wire.SightCall:
		t.call(s)
	case wire.SightFork:
		t.forked(pid, int(s.Result))
	case wire.SightExec:
		t.execed(pid, s.Time)
	case wire.SightExit:
		t.exited(pid, s.Time, s.Result)
	case wire.SightMap:
		t.mapped(pid)
	}
}

func (t *Tracer) call(s *wire.Sample) {
	p := t.processes[int(s.Pid)]
	if calls.Greeting(s) {
		if p == nil && t.greeted[int(s.Pid)] == nil {
			t.greet(int(s.Pid))
		}
		return
	}
	if p == nil {
		if p = t.meet(int(s.Pid), s.Time); p == nil {
			return
		}
	}
	if name, address, ok := calls.ExtensionAddress(s); ok {
		t.extension(p, name, address)
		return
	}
	p.thread = s.Tid
	p.tags.See(s)
	p.book.Call(s)
}

// chores are what happens by the clock.
func (t *Tracer) chores() {
	now := t.options.Clock()
	if now < t.swept+sweepNS {
		return
	}
	t.swept = now
	for _, p := range t.processes {
		t.losses(p)
	}
	t.learn()
	t.lookAround()
}

// losses tells how many calls of a process found no room in the ring.
func (t *Tracer) losses(p *process) {
	calls, uses := t.kernel.Lost(p.target.PID)
	if calls > p.lost {
		p.write(&wire.Record{Event: wire.Event{Kind: wire.KindLost, Size: calls - p.lost, Granted: uses - p.lostUses}})
	}
	p.lost, p.lostUses = calls, uses
}

// Watched returns how many processes are watched now: those that were named, and those that have called something.
func (t *Tracer) Watched() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.watched
}

// Open returns the path by which we can open a file that a process, by its number, knows under another.
func (t *Tracer) Open(number uint32, path string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if number == 0 || int(number) > len(t.numbered) || t.numbered[number-1] == nil {
		return path
	}
	return t.numbered[number-1].OpenPath(path)
}

// Wake ends the wait of a Poll.
func (t *Tracer) Wake() { t.kernel.Wake() }

// Detach takes all probes away: the targets run on as if nobody had ever watched them. What they did before can still
// be polled.
func (t *Tracer) Detach() error {
	t.detached = true
	return t.links.close()
}

// Close gives everything back.
func (t *Tracer) Close() error {
	t.vendors.close()
	t.files.Close()
	if t.watch != nil {
		t.watch.Close()
	}
	return errors.Join(t.links.close(), t.kernel.Close())
}
