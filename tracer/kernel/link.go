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
	Function uint16 // place of its shape in Options.Shapes
	Offset   uint64 // of its first instruction in the file
}

// Link holds the probes of one Attach.
type Link struct {
	kernel *Kernel
	mu     sync.Mutex
	parts  []io.Closer // in the order in which they are closed
}

// Attach probes functions of a file: in the process pid and its threads, in every process that maps it when pid is 0. A
// child of pid is another process. Functions that use memory are left out when Options has no Uses. Calls that are under
// way are not told. It attaches all or nothing; when one function is the reason for nothing, the error is a *ProbeError, and
// it wraps ErrGone when the process or the file has gone.
func (k *Kernel) Attach(file string, pid int, probes []Probe) (*Link, error) {
	entries, returns, err := k.sort(probes)
	if err != nil {
		return nil, err
	}
	executable, err := link.OpenExecutable(file)
	if err != nil {
		return nil, explain("open "+file, err)
	}
	a := attachment{kernel: k, executable: executable, file: file, pid: pid}
	// Entries come first and go last: where a return is probed, the entry of the call was too. See enter in bpf/calls.bpf.c.
	before, err := a.attach(entries, false)
	if err != nil {
		return nil, err
	}
	after, err := a.attach(returns, true)
	if err != nil {
		return nil, errors.Join(err, closeAll(before))
	}
	l := &Link{kernel: k, parts: append(after, before...)}
	if !k.adopt(l) {
		return nil, errors.Join(fmt.Errorf("probe %s: %w", file, os.ErrClosed), closeAll(l.take()))
	}
	return l, nil
}

// sort finds out which probes need which program.
func (k *Kernel) sort(probes []Probe) (entries, returns []Probe, err error) {
	for _, p := range probes {
		if int(p.Function) >= len(k.options.Shapes) {
			return nil, nil, fmt.Errorf("probe function %d: there are only %d", p.Function, len(k.options.Shapes))
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

func (k *Kernel) adopt(l *Link) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.links == nil {
		return false
	}
	k.links[l] = struct{}{}
	return true
}

// Close takes the probes away; the code is then as it was. Calls under way are not told. It may be called from any
// goroutine, and again.
func (l *Link) Close() error {
	l.kernel.mu.Lock()
	delete(l.kernel.links, l)
	l.kernel.mu.Unlock()
	return closeAll(l.take())
}

func (l *Link) take() []io.Closer {
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

// attach attaches the program for entries or returns.
func (a *attachment) attach(probes []Probe, returns bool) ([]io.Closer, error) {
	if len(probes) == 0 {
		return nil, nil
	}
	if !a.kernel.multi {
		return a.each(probes, func(p Probe) (link.Link, error) { return a.single(p, returns) })
	}
	whole, err := a.together(probes, returns)
	if err == nil {
		return []io.Closer{whole}, nil
	}
	// It is not said which function was the reason: one at a time they say.
	parts, one := a.each(probes, func(p Probe) (link.Link, error) { return a.together([]Probe{p}, returns) })
	if one == nil {
		one = explain("probe "+a.file, err)
	}
	return nil, errors.Join(one, closeAll(parts))
}

// each attaches probes one by one; after an error nothing is attached.
func (a *attachment) each(probes []Probe, attach func(Probe) (link.Link, error)) ([]io.Closer, error) {
	parts := make([]io.Closer, 0, len(probes))
	for _, p := range probes {
		part, err := attach(p)
		if err != nil {
			return nil, errors.Join(a.explain(p, err), closeAll(parts))
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func (a *attachment) explain(p Probe, err error) error {
	if gone(err) { // no function's fault
		return explain("probe "+a.file, err)
	}
	return &ProbeError{File: a.file, Function: p.Function, Offset: p.Offset, Err: explain("attach", err)}
}

func (a *attachment) single(p Probe, returns bool) (link.Link, error) {
	o := &link.UprobeOptions{Address: p.Offset, PID: a.pid, Cookie: uint64(p.Function)}
	if returns {
		return a.executable.Uretprobe("", a.program(returns), o)
	}
	return a.executable.Uprobe("", a.program(returns), o)
}

// together attaches probes with one link. Of single ones the kernel, from 6.12 on, takes a hundred away in no less than
// ten seconds.
func (a *attachment) together(probes []Probe, returns bool) (link.Link, error) {
	o := &link.UprobeMultiOptions{PID: uint32(a.pid)}
	for _, p := range probes {
		o.Addresses = append(o.Addresses, p.Offset)
		o.Cookies = append(o.Cookies, uint64(p.Function))
	}
	if returns {
		return a.executable.UretprobeMulti(nil, a.program(returns), o)
	}
	return a.executable.UprobeMulti(nil, a.program(returns), o)
}

func (a *attachment) program(returns bool) *ebpf.Program {
	if returns {
		return a.kernel.calls.Programs[callsProgLeave]
	}
	return a.kernel.calls.Programs[callsProgEnter]
}
