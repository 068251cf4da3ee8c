// Package kernel puts the BPF programs into the Linux kernel that tell of calls: it loads them, attaches them to
// functions of files, and hands over what they write into their ring. It knows functions by number, processes by pid and
// nothing else: no OpenCL, no /proc.
//
// Nothing of it outlives the process: the kernel takes programs and probes away with the descriptors that hold them,
// kill -9 included.
package kernel

//go:generate -command compile go tool bpf2go -target amd64 -no-global-types -cflags "-I../../internal/wire -I/usr/include/x86_64-linux-gnu -std=gnu11 -ffreestanding -Wall -Wextra -Werror -Wshadow -Wno-unused-parameter"
//go:generate compile calls bpf/calls.bpf.c
//go:generate compile life bpf/life.bpf.c

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ringBytes is the size of the ring where Options does not say another: 400,000 calls, 160,000 with copies, or 3,500 with
// their stacks and 50,000 more without.
const ringBytes = 64 << 20

// crowded returns how many bytes wait in a ring from which on stacks are left out of it: a call without its stack is
// better than a lost one. An eighth is kept free of them, which in 64 MiB holds what is called in a tenth of a second at
// 500,000 calls a second: as long as a busy machine may keep us from reading. Stacks fill most of the ring before that, so
// that a moment of much else to do takes no call sites away.
func crowded(ringBytes int) uint64 { return uint64(ringBytes) / 8 * 7 }

// Options say what to tell of.
type Options struct {
	// Shapes say what to tell of each function; a function's number is its place here. At most wire.Functions.
	Shapes []wire.Shape
	// RingBytes is the size of the ring, a power of two and whole pages; 0 means 64 MiB.
	RingBytes int
	// Everyone tells of processes that were not judged, too.
	Everyone bool
	// Stacks sends the caller's stack with the functions whose shapes ask for it.
	Stacks bool
	// Uses tells of the functions that use memory, of which there are many.
	Uses bool
	// Follow watches the children of watched processes from their first instruction on, as Everyone does.
	Follow bool

	single bool // no multi links even where the kernel has them: what a test can ask for
}

// Verdict is what becomes of a process's calls.
type Verdict uint32

// The numbers are those of enum verdict in bpf/tell.h.
const (
	Forget Verdict = iota // not judged (any more)
	Watch
	Ignore
)

// Kernel is the programs in the kernel. Its methods may be called from any goroutine, Poll from one at a time.
type Kernel struct {
	options Options
	calls   *ebpf.Collection
	life    []lifecycle
	multi   bool
	ring    *ring
	poller  *poller

	shortened atomic.Uint64

	mu    sync.Mutex
	links map[*Link]struct{} // attached
}

// New loads the programs. Errors wrap ErrUnsupported where the kernel cannot do it and ErrPermission where it does not
// let us.
func New(o Options) (*Kernel, error) {
	if o.RingBytes == 0 {
		o.RingBytes = ringBytes
	}
	if len(o.Shapes) > wire.Functions {
		return nil, fmt.Errorf("%d functions, at most %d can be told of", len(o.Shapes), wire.Functions)
	}
	k := &Kernel{options: o, links: map[*Link]struct{}{}}
	if err := k.load(); err != nil {
		_ = k.Close()
		return nil, err
	}
	return k, nil
}

// Close detaches everything and takes the programs away; once more it does nothing. No Poll may be running: see Wake.
func (k *Kernel) Close() error {
	var errs []error
	k.mu.Lock()
	links := k.links
	k.links = nil
	k.mu.Unlock()
	if links == nil {
		return nil
	}
	for l := range links {
		errs = append(errs, closeAll(l.take()))
	}
	for _, l := range k.life {
		errs = append(errs, l.close())
	}
	if k.ring != nil {
		errs = append(errs, k.ring.close())
	}
	if k.poller != nil {
		errs = append(errs, k.poller.close())
	}
	if k.calls != nil {
		k.calls.Close()
	}
	return errors.Join(errs...)
}

// Judge says what becomes of a process's calls from now on: of those that are entered after it. Who judges a process that
// may have ended meanwhile has to look whether it is still there, and else to have it forgotten: its number may come again.
func (k *Kernel) Judge(pid int, v Verdict) error {
	var err error
	verdicts, key := k.calls.Maps[callsMapVerdicts], uint32(pid)
	if v == Forget {
		_ = k.calls.Maps[callsMapLosses].Delete(key) // most have none
		err = verdicts.Delete(key)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			err = nil
		}
	} else {
		err = verdicts.Put(key, uint32(v))
	}
	if err != nil {
		return fmt.Errorf("say what becomes of process %d's calls: %w", pid, err)
	}
	return nil
}

// Watches reports whether a process is judged to be watched: by Judge, or as the child of one that is.
func (k *Kernel) Watches(pid int) bool {
	var v Verdict
	return k.calls.Maps[callsMapVerdicts].Lookup(uint32(pid), &v) == nil && v == Watch
}

// Quiet says whether nothing is told of calls, whoever makes them: while the probes of a function that creates things are
// there, and those of the one that releases them are not yet.
func (k *Kernel) Quiet(quiet bool) error {
	if err := k.calls.Variables[callsVarQuiet].Set(quiet); err != nil {
		return fmt.Errorf("switch the eBPF program: %w", err)
	}
	return nil
}

// loss is struct loss of bpf/tell.h.
type loss struct{ Calls, Uses uint64 }

// Lost returns how many calls of a process could not be told of since New, most of them because the ring was full, and
// how many of these were uses. Of a process that was forgotten the count is, too.
func (k *Kernel) Lost(pid int) (calls, uses uint64) {
	var lost loss
	if k.calls.Maps[callsMapLosses].Lookup(uint32(pid), &lost) != nil {
		return 0, 0 // nothing was
	}
	return lost.Calls, lost.Uses
}

// LostAll is Lost of all processes together, those included for which there was no room to count them apart.
func (k *Kernel) LostAll() (calls, uses uint64) {
	var lost loss
	if k.calls.Maps[callsMapAllloss].Lookup(uint32(0), &lost) != nil {
		return 0, 0
	}
	return lost.Calls, lost.Uses
}

// Shortened returns how many of the calls that were handed over since New came without the stack that was to be told with
// them, because too little of the ring was free: the reader could not keep up. Of these the innermost frame alone is known.
func (k *Kernel) Shortened() uint64 { return k.shortened.Load() }

// Lifecycle reports whether forks, execs and exits of watched processes are told.
func (k *Kernel) Lifecycle() bool {
	return k.tells(lifeProgForked) && k.tells(lifeProgExecuted) && k.tells(lifeProgExited)
}

func (k *Kernel) tells(program string) bool {
	for _, l := range k.life {
		if l.program == program {
			return true
		}
	}
	return false
}

// lifecycle is one program of life.bpf.c, attached.
type lifecycle struct {
	program string
	objects *ebpf.Collection
	link    link.Link
}

func (l *lifecycle) close() error {
	err := l.link.Close()
	l.objects.Close()
	return err
}
