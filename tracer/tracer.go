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

// Options say what to watch and what to record.
type Options struct {
	target.Selection
	Tags  wire.TagMode
	Depth int  // frames of a stack, 1 to wire.StackMax
	Uses  bool // record commands and synchronisation too, not only the lifetimes of memory

	// Ask starts a process that asks the drivers of this machine for the addresses of their extension functions, see
	// target.QueryDrivers. If it is nil, functions without a symbol are recorded only once a program asks for them.
	Ask func(ctx context.Context, environment []string) ([]byte, error)
	// Clock reads CLOCK_MONOTONIC in ns.
	Clock func() uint64
	// Warn receives messages for the user, from any goroutine. It may be nil.
	Warn func(text string)

	ringBytes int // as kernel.Options.RingBytes; for tests
}

// Tracer watches processes. Poll, Detach and Close are for one goroutine, the other methods for any.
type Tracer struct {
	options  Options
	kernel   *kernel.Kernel
	catalog  *target.Catalog
	files    *stack.Files
	probes   *probes
	vendors  *vendors
	table    processTable
	registry registry
	remapped map[int]bool   // pids that have mapped files since they were inspected
	names    map[int]string // of programs that were executed, by pid, with an open selection
	noted    map[int]losses // those that are recorded, by pid, until the kernel forgets its counts
	scan     scanState
	warned   map[string]bool // warnings that the user has seen
	detached uint64          // kernel's time when Detach began, ns; 0: before
	// killsFiltered is the release of a kernel that kills probed processes with a seccomp filter, else empty.
	killsFiltered string

	put       func(*wire.Record)
	buffered  []wire.Record // made between two Polls
	lastTime  uint64        // of the latest record, ns by the kernel's clock
	shift     uint64        // of our clock against the kernel's, ns
	truncated uint64        // stacks of ended processes, see stack.Walker.TruncatedCount

	mu     sync.Mutex
	closed bool
}

// Start attaches probes to the selected processes, and to the files that later ones will map. The error says in one
// sentence what prevents this and what to do.
func Start(options Options) (*Tracer, error) {
	if options.Warn == nil {
		options.Warn = func(string) {}
	}
	if err := options.CheckAndNormalize(); err != nil {
		return nil, err
	}
	system := rights.ThisSystem()
	report := system.ExamineSystem()
	if err := report.RefusalError(); err != nil {
		return nil, err
	}
	if report.KillsFiltered && (options.MaySelectLaterProcesses() || options.Follow) {
		return nil, fmt.Errorf("only -p is possible here: %w", seccompFilterError(report.Kernel))
	}
	raiseThreadPriority()
	options.Follow = options.Follow && !options.All // All includes children
	core, extensions := functionNames()
	t := &Tracer{
		options: options, catalog: target.NewCatalog(core, extensions), files: stack.NewFiles(), vendors: newVendors(),
		remapped: map[int]bool{}, names: map[int]string{}, noted: map[int]losses{}, warned: map[string]bool{}, shift: clockShiftOfNamespace(),
	}
	t.lastTime = options.Clock() - t.shift
	t.table = newProcessTable(t.tellKernelVerdict)
	if report.KillsFiltered {
		t.killsFiltered = report.Kernel
	}
	t.put = t.bufferRecord
	var err error
	t.kernel, err = kernel.LoadPrograms(kernel.Options{
		Shapes: callShapes(), RingBytes: options.ringBytes, WatchAll: options.MaySelectLaterProcesses(), Follow: options.Follow,
		Stacks: options.Tags == wire.TagsStack, Uses: options.Uses, Types: system.Types,
	})
	if err != nil {
		return nil, rights.ExplainError(err)
	}
	t.probes = newProbes(t.kernel, options.MaySelectLaterProcesses() || options.Follow)
	if err := errors.Join(t.kernel.SetPaused(true), t.attachToRunning(), t.kernel.SetPaused(false)); err != nil {
		return nil, errors.Join(rights.ExplainError(err), t.Close())
	}
	return t, nil
}

// functionNames returns the functions of OpenCL itself and those of its extensions.
func functionNames() (core, extensions []string) {
	for i := range calls.Functions {
		if f := &calls.Functions[i]; f.Extension {
			extensions = append(extensions, f.Name)
		} else {
			core = append(core, f.Name)
		}
	}
	return core, extensions
}

func callShapes() []wire.Shape {
	shapes := make([]wire.Shape, len(calls.Functions)+1) // the last is that of target.LinkerHook
	for i := range calls.Functions {
		shapes[i] = calls.Functions[i].Shape
	}
	return shapes
}

// bufferRecord keeps a record for the next Poll.
func (t *Tracer) bufferRecord(r *wire.Record) {
	kept := *r
	kept.Payload = append([]byte(nil), r.Payload...)
	t.buffered = append(t.buffered, kept)
}

// Poll waits at most the given time for calls and passes records to put, in the order of their times. It returns their
// number, and io.EOF when nothing is left to watch.
func (t *Tracer) Poll(wait time.Duration, put func(*wire.Record)) (int, error) {
	if t.isClosed() {
		return 0, io.EOF
	}
	n := 0
	t.put = func(r *wire.Record) {
		n++
		put(r)
	}
	defer func() { t.put = t.bufferRecord }()
	for i := range t.buffered {
		t.put(&t.buffered[i])
	}
	t.buffered = nil
	if n > 0 || t.detached != 0 {
		wait = 0
	}
	for {
		samples, err := t.kernel.Poll(wait, t.handleSample)
		if err != nil {
			return n, fmt.Errorf("read the samples of the eBPF program: %w", err)
		}
		t.scan.drained = t.scan.drained || samples < kernel.Batch
		// After Detach the ring is read until a record comes or it is empty: not every sample makes a record.
		if t.detached == 0 || samples == 0 || n > 0 {
			break
		}
	}
	for pid := range t.remapped {
		delete(t.remapped, pid)
		_ = t.inspectProcess(pid) // an error is reported at its first call
	}
	t.scanProcessesIfDue()
	if len(t.table.byPID) == 0 && !t.options.MaySelectLaterProcesses() {
		return n, io.EOF
	}
	return n, nil
}

func (t *Tracer) handleSample(s *wire.Sample) {
	if t.detached != 0 && s.Sight != wire.SightCall && s.Time > t.detached {
		return // without the calls since then, what a process holds at its end would pass for leaked
	}
	pid := int(s.Pid)
	switch s.Sight {
	case wire.SightCall:
		t.handleCall(pid, s)
	case wire.SightFork:
		t.addForkedChild(pid, int(s.Result))
	case wire.SightExec:
		t.noteExec(pid, s.Result != 0, s.Time)
		t.noteExecedName(pid, s.ProgramName())
	case wire.SightExit:
		t.noteExit(pid, s.Time, s.Result)
	}
}

func (t *Tracer) handleCall(pid int, s *wire.Sample) {
	if int(s.Function) == len(calls.Functions) { // target.LinkerHook
		t.remapped[pid] = true // starting programs call it several times in a row
		return
	}
	if calls.IsPlatformQuery(s) {
		t.inspectPlatformQuerier(pid)
		return
	}
	p := t.table.findWatched(pid)
	if p == nil {
		if p = t.selectAtFirstCall(pid, s.Time); p == nil {
			return
		}
	}
	if name, address, ok := calls.ExtensionAddress(s); ok {
		t.noteExtensionReceived(p, name, address)
		return
	}
	if p.isForwarded(s) {
		return
	}
	p.thread = s.Tid
	p.tags.SetTimeFromSample(s)
	p.objects.HandleCall(s)
}

// tellKernelVerdict decides whether the kernel reports the calls of a process.
func (t *Tracer) tellKernelVerdict(pid int, verdict kernel.Verdict) {
	if verdict == kernel.Forget {
		delete(t.noted, pid)
	}
	if err := t.kernel.SetVerdict(pid, verdict); err != nil {
		t.warnOnce(err)
	}
}

// WatchedCount returns how many processes are watched now: those named by pid, and those that have made a call.
func (t *Tracer) WatchedCount() int { return t.registry.countWatched() }

// OpenablePath returns the path under which we can open a file of a process, given by its number in records and the path that it
// knows. It returns "" if the file is gone. It works for the latest processes that have ended, too.
func (t *Tracer) OpenablePath(number uint32, path string) string {
	if p := t.registry.findProcess(number); p != nil {
		return p.OpenablePath(path)
	}
	return ""
}

// WakePoll ends the wait of a Poll.
func (t *Tracer) WakePoll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.kernel.WakePoll()
	}
}

func (t *Tracer) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// Detach removes all probes; the targets run on. Poll still returns what they did before. A second Detach does nothing.
func (t *Tracer) Detach() error {
	if t.detached != 0 || t.isClosed() {
		return nil
	}
	t.detached = t.options.Clock() - t.shift
	return errors.Join(t.kernel.SetPaused(true), t.probes.close())
}

// warnOfIncompleteStacks says how many call stacks are incomplete.
func (t *Tracer) warnOfIncompleteStacks() {
	if n := t.kernel.CallsWithoutStack(); n > 0 {
		t.options.Warn(fmt.Sprintf("%d calls have only their innermost frame: this machine could not keep up", n))
	}
	for p := range t.table.eachInStateOrLater(watched) {
		t.truncated += p.walker.TruncatedCount()
	}
	if t.truncated > 0 {
		t.options.Warn(fmt.Sprintf("%d call stacks end early: they are larger than %d KiB", t.truncated, wire.CallStack>>10))
	}
}

// Close detaches and releases everything. A second Close does nothing.
func (t *Tracer) Close() error {
	t.mu.Lock()
	closed := t.closed
	t.closed = true
	t.mu.Unlock()
	if closed {
		return nil
	}
	t.warnOfIncompleteStacks()
	t.vendors.close()
	_ = t.files.Close()
	return errors.Join(t.probes.close(), t.kernel.Close())
}
