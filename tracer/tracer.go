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
	vendors   *vendors
	processes map[int]*process // by pid
	hopes     map[int]*hope    // by pid
	changed   map[int]bool     // pids whose dynamic linker has mapped something
	told      map[string]bool  // what the user was told
	watch     target.Watch
	roll      roll
	detached  bool
	dangerous string // the kernel's release where it ends processes that have a filter, see rights

	put     func(*wire.Record)
	waiting []wire.Record // made when nobody was there to take them
	last    uint64        // time of the latest record
	swept   uint64        // when chores were done
	drained bool          // since then all was read that the kernel had told
	lost    uint64        // calls that could not be told, then
	doubts  int           // for so many more times it is looked who has gone without a word

	truncated uint64 // see stack.Walker, of the processes that have ended

	mu     sync.Mutex
	closed bool
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
	if report.KillsFiltered && (options.Open() || options.Follow) {
		return nil, fmt.Errorf("nobody may be watched here but by -p: %w", endsFiltered(report.Kernel))
	}
	makeHaste()
	options.Follow = options.Follow && !options.All // which children are among
	core, extensions := names()
	t := &Tracer{
		options: options, catalog: target.NewCatalog(core, extensions), files: stack.NewFiles(),
		processes: map[int]*process{}, hopes: map[int]*hope{}, changed: map[int]bool{}, told: map[string]bool{},
		vendors: newVendors(), last: options.Clock(),
	}
	if report.KillsFiltered {
		t.dangerous = report.Kernel
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
	if err := errors.Join(t.kernel.Quiet(true), t.begin(), t.kernel.Quiet(false)); err != nil {
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
	shapes := make([]wire.Shape, len(calls.Functions)+1) // the last is that of target.LinkerHook
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
	if t.ended() {
		return 0, io.EOF
	}
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
	if n > 0 || t.detached {
		wait = 0
	}
	for {
		told, err := t.kernel.Poll(wait, t.sample)
		if err != nil {
			return n, fmt.Errorf("read what the eBPF program tells: %w", err)
		}
		t.drained = t.drained || told < kernel.Batch
		// After the probes are gone the ring is emptied: what is in it may be of no interest, and behind it something is.
		if !t.detached || told == 0 || n > 0 {
			break
		}
	}
	for pid := range t.changed {
		delete(t.changed, pid)
		_ = t.glimpse(pid) // it is said once it calls something
	}
	t.chores()
	if len(t.processes)+len(t.hopes) == 0 && !t.options.Open() {
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
		t.execed(pid, int(s.Result), s.Time)
	case wire.SightExit:
		t.exited(pid, s.Time, s.Result)
	}
}

func (t *Tracer) call(s *wire.Sample) {
	if int(s.Function) == len(calls.Functions) {
		t.changed[int(s.Pid)] = true // several times in a row, when it starts
		return
	}
	p := t.processes[int(s.Pid)]
	if calls.Greeting(s) {
		t.greeted(int(s.Pid))
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
	if p.forwarded(s) {
		return
	}
	p.thread = s.Tid
	p.tags.See(s)
	p.book.Call(s)
}

// greeted looks at a process that is about to use OpenCL: nothing comes before this call.
func (t *Tracer) greeted(pid int) {
	if p := t.processes[pid]; p != nil {
		p.book.Whole()
		return
	}
	defer func() {
		if h := t.hopes[pid]; h != nil && h.seen != nil {
			h.seen.whole = true
		}
	}()
	if err := t.glimpse(pid); err != nil && !errors.Is(err, target.ErrGone) {
		t.refuse(pid, err)
	}
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
	t.links.sweep(now)
}

// losses tells how many calls of a process found no room in the ring.
func (t *Tracer) losses(p *process) {
	calls, uses := t.kernel.Lost(p.target.PID)
	if calls > p.lost {
		p.book.Lost()
		p.write(&wire.Record{Event: wire.Event{Kind: wire.KindLost, Size: calls - p.lost, Granted: uses - p.lostUses}})
	}
	p.lost, p.lostUses = calls, uses
}

// Watched returns how many processes are watched now: those that were named, and those that have called something.
func (t *Tracer) Watched() int { return t.roll.count() }

// Open returns the path by which we can open a file that a process, by its number, knows under another, "" when it cannot
// be opened any more. It is good for processes that have ended, too, but for those that ended long ago.
func (t *Tracer) Open(number uint32, path string) string {
	if p := t.roll.find(number); p != nil {
		return p.OpenPath(path)
	}
	return ""
}

// Wake ends the wait of a Poll.
func (t *Tracer) Wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.kernel.Wake()
	}
}

func (t *Tracer) ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// Detach takes all probes away: the targets run on as if nobody had ever watched them. What they did before can still
// be polled. Once more it does nothing.
func (t *Tracer) Detach() error {
	if t.detached || t.ended() {
		return nil
	}
	t.detached = true
	return errors.Join(t.kernel.Quiet(true), t.links.close())
}

// conclude says of how many calls the stacks are not whole.
func (t *Tracer) conclude() {
	if n := t.kernel.Shortened(); n > 0 {
		t.options.Warn(fmt.Sprintf("%d calls have their innermost frame alone: this machine could not keep up", n))
	}
	for _, p := range t.processes {
		t.truncated += p.walker.Truncated()
	}
	if t.truncated > 0 {
		t.options.Warn(fmt.Sprintf("%d call stacks end early: they have more than %d KiB", t.truncated, wire.CallStack>>10))
	}
}

// Close gives everything back. Once more it does nothing.
func (t *Tracer) Close() error {
	t.mu.Lock()
	closed := t.closed
	t.closed = true
	t.mu.Unlock()
	if closed {
		return nil
	}
	t.conclude()
	t.vendors.end()
	_ = t.files.Close()
	return errors.Join(t.links.close(), t.kernel.Close())
}
