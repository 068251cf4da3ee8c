package kernel

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Probe is a function in a file.
type Probe struct {
	Function uint16 // index of its shape in Options.Shapes
	Offset   uint64 // of its first instruction, in the file
}

// Link holds the probes of one Attach.
type Link struct {
	kernel *Kernel
	mu     sync.Mutex
	parts  []io.Closer // in the order in which they are closed
}

// Attach probes functions of a file in the process pid, or in every process that maps it if pid is 0. Children of pid are
// not included. Without Options.Uses it leaves out functions that use memory. Calls that are running are not reported. It
// attaches all or nothing. If one function is the reason, the error is a *ProbeError; if the process or the file is gone,
// it wraps ErrGone.
func (k *Kernel) Attach(file string, pid int, probes []Probe) (*Link, error) {
	entries, returns, err := k.probesByProgram(probes)
	if err != nil {
		return nil, err
	}
	executable, err := link.OpenExecutable(file)
	if err != nil {
		return nil, explainKernelError("open "+file, err)
	}
	a := attachment{kernel: k, executable: executable, file: file, pid: pid}
	// Entries are attached first and closed last, so that no return is probed without its entry: see enter in bpf/calls.bpf.c.
	before, err := a.attachPrograms(entries, false)
	if err != nil {
		return nil, err
	}
	after, err := a.attachPrograms(returns, true)
	if err != nil {
		return nil, errors.Join(err, closeAll(before))
	}
	l := &Link{kernel: k, parts: append(after, before...)}
	if !k.registerLink(l) {
		return nil, errors.Join(fmt.Errorf("probe %s: %w", file, os.ErrClosed), closeAll(l.takeLinks()))
	}
	return l, nil
}

// probesByProgram returns which probes need an entry and a return program.
func (k *Kernel) probesByProgram(probes []Probe) (entries, returns []Probe, err error) {
	for _, p := range probes {
		if int(p.Function) >= len(k.options.Shapes) {
			return nil, nil, fmt.Errorf("probe function %d: only %d are known", p.Function, len(k.options.Shapes))
		}
		flags := k.options.Shapes[p.Function].Flags
		if flags&wire.ShapeUse != 0 && !k.options.Uses {
			continue
		}
		entries = append(entries, p)
		if flags&wire.ShapeReturn != 0 {
			returns = append(returns, p)
		}
	}
	return entries, returns, nil
}

func (k *Kernel) registerLink(l *Link) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.links == nil {
		return false
	}
	k.links[l] = struct{}{}
	return true
}

// Close removes the probes; the code is then as before. Running calls are not reported. Any goroutine may call it; a
// second Close does nothing.
func (l *Link) Close() error {
	l.kernel.mu.Lock()
	delete(l.kernel.links, l)
	l.kernel.mu.Unlock()
	return closeAll(l.takeLinks())
}

func (l *Link) takeLinks() []io.Closer {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts := l.parts
	l.parts = nil
	return parts
}

func closeAll(parts []io.Closer) error {
	var errs []error
	for _, part := range parts {
		errs = append(errs, part.Close())
	}
	return errors.Join(errs...)
}

// attachment is one Attach.
type attachment struct {
	kernel     *Kernel
	executable *link.Executable
	file       string
	pid        int
}

// attachPrograms attaches the entry or the return program.
func (a *attachment) attachPrograms(probes []Probe, returns bool) ([]io.Closer, error) {
	if len(probes) == 0 {
		return nil, nil
	}
	if !a.kernel.multi {
		return a.attachEach(probes, func(p Probe) (link.Link, error) { return a.attachSingle(p, returns) })
	}
	whole, err := a.attachMulti(probes, returns)
	if err == nil {
		return []io.Closer{whole}, nil
	}
	// The error does not name the function, so try them one at a time.
	parts, one := a.attachEach(probes, func(p Probe) (link.Link, error) { return a.attachMulti([]Probe{p}, returns) })
	if one == nil {
		one = explainKernelError("probe "+a.file, err)
	}
	return nil, errors.Join(one, closeAll(parts))
}

// attachEach attaches probes one by one. After an error none is attached.
func (a *attachment) attachEach(probes []Probe, attach func(Probe) (link.Link, error)) ([]io.Closer, error) {
	parts := make([]io.Closer, 0, len(probes))
	for _, p := range probes {
		part, err := attach(p)
		if err != nil {
			return nil, errors.Join(a.explainError(p, err), closeAll(parts))
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func (a *attachment) explainError(p Probe, err error) error {
	if isGone(err) { // not the fault of a function
		return explainKernelError("probe "+a.file, err)
	}
	return &ProbeError{File: a.file, Function: p.Function, Offset: p.Offset, Err: explainKernelError("attach", err)}
}

func (a *attachment) attachSingle(p Probe, returns bool) (link.Link, error) {
	o := &link.UprobeOptions{Address: p.Offset, PID: a.pid, Cookie: uint64(p.Function)}
	if returns {
		return a.executable.Uretprobe("", a.programToAttach(returns), o)
	}
	return a.executable.Uprobe("", a.programToAttach(returns), o)
}

// attachMulti attaches probes with one link. From Linux 6.12 on, removing a hundred single probes takes at least ten
// seconds.
func (a *attachment) attachMulti(probes []Probe, returns bool) (link.Link, error) {
	o := &link.UprobeMultiOptions{PID: uint32(a.pid)}
	for _, p := range probes {
		o.Addresses = append(o.Addresses, p.Offset)
		o.Cookies = append(o.Cookies, uint64(p.Function))
	}
	if returns {
		return a.executable.UretprobeMulti(nil, a.programToAttach(returns), o)
	}
	return a.executable.UprobeMulti(nil, a.programToAttach(returns), o)
}

func (a *attachment) programToAttach(returns bool) *ebpf.Program {
	if returns {
		return a.kernel.calls.Programs[callsProgLeave]
	}
	return a.kernel.calls.Programs[callsProgEnter]
}
