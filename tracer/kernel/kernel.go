// Package kernel loads the eBPF programs that report calls, attaches them to functions of files, and passes on the
// samples that they write into their ring. It knows functions by number and processes by pid: no OpenCL, no /proc.
//
// The kernel removes programs and probes with the descriptors that hold them, so nothing outlives our process, even after
// kill -9.
//
// A BPF ring reserves slots under a lock: a call that begins after another has returned has a later slot, in whatever
// thread. Times of independent calls may cross between processors by less than a call; they are kept monotonic.
package kernel

//go:generate -command compile go tool bpf2go -target amd64,arm64 -no-global-types -cflags "-I../../internal/wire -I/usr/include/x86_64-linux-gnu -std=gnu11 -ffreestanding -Wall -Wextra -Werror -Wshadow -Wno-unused-parameter"
//go:generate compile calls bpf/calls.bpf.c
//go:generate compile process bpf/process.bpf.c

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ringBytes is the default size of the ring. It holds 400,000 calls, 160,000 with copies, or 3,500 with their stacks and
// then 50,000 without.
const ringBytes = 64 << 20

// maxFillForStacks returns how full a ring may be, in bytes, for calls to come with their stacks: losing a stack is better than
// losing a call. An eighth is reserved for calls without. In 64 MiB that holds a tenth of a second at 500,000 calls a
// second, as long as a busy machine may keep us from reading. Stacks may fill the rest, so that a short delay costs no
// call sites.
func maxFillForStacks(ringBytes int) uint64 { return uint64(ringBytes) / 8 * 7 }

// Options say what to report.
type Options struct {
	// Shapes say what to report of each function; the index is its number. At most wire.Functions.
	Shapes []wire.Shape
	// RingBytes is the size of the ring, a power of two and whole pages. 0 means 64 MiB.
	RingBytes int
	// WatchAll also reports processes without a verdict.
	WatchAll bool
	// Stacks reports the caller's stack for the functions whose shapes ask for it.
	Stacks bool
	// Uses reports functions that use memory, which are called often.
	Uses bool
	// Follow watches children of watched processes from their first instruction on, as WatchAll does.
	Follow bool
	// Types are the kernel's types, as a rights.System has them. nil: they are decoded here.
	Types *btf.Cache

	single bool // no multi links even if the kernel has them; for tests
}

// Verdict says whether the calls of a process are reported.
type Verdict uint32

// The numbers are those of enum verdict in bpf/shared.h.
const (
	Forget Verdict = iota // no verdict
	Watch
	Ignore
)

// Kernel holds the programs. Any goroutine may call its methods; only one at a time may call Poll.
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

// LoadPrograms loads the programs. Errors wrap ErrUnsupported or ErrPermission where these are the reason.
func LoadPrograms(o Options) (*Kernel, error) {
	if o.RingBytes == 0 {
		o.RingBytes = ringBytes
	}
	if len(o.Shapes) > wire.Functions {
		return nil, fmt.Errorf("%d functions: at most %d can be probed", len(o.Shapes), wire.Functions)
	}
	if o.Types == nil {
		o.Types = btf.NewCache()
	}
	k := &Kernel{options: o, links: map[*Link]struct{}{}}
	err := k.loadPrograms()
	k.options.Types = nil // they take megabytes
	if err != nil {
		_ = k.Close()
		return nil, err
	}
	return k, nil
}

// Close detaches and unloads everything. A second Close does nothing. No Poll may be running: see Wake.
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
		errs = append(errs, closeAll(l.takeLinks()))
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

// SetVerdict sets the verdict on a process, for calls that begin later. If the process may have ended, the caller must
// check that it still exists, and otherwise set Forget: a later process may get its pid.
func (k *Kernel) SetVerdict(pid int, v Verdict) error {
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
		return fmt.Errorf("set the verdict on process %d: %w", pid, err)
	}
	return nil
}

// IsWatched reports whether the verdict on a process is Watch, set by SetVerdict or inherited from its parent.
func (k *Kernel) IsWatched(pid int) bool {
	var v Verdict
	return k.calls.Maps[callsMapVerdicts].Lookup(uint32(pid), &v) == nil && v == Watch
}

// SetPaused switches all reporting of calls off or on. It is off while only some of the probes are attached: a create
// must not be reported without the release.
func (k *Kernel) SetPaused(paused bool) error {
	if err := k.calls.Variables[callsVarPaused].Set(paused); err != nil {
		return fmt.Errorf("switch the eBPF program: %w", err)
	}
	return nil
}

// loss is struct loss of bpf/shared.h.
type loss struct{ Calls, Uses uint64 }

// LostCalls returns how many calls of a process were lost since New, mostly because the ring was full, and how many of them
// were uses. Forget resets the counts.
func (k *Kernel) LostCalls(pid int) (calls, uses uint64) {
	var lost loss
	if k.calls.Maps[callsMapLosses].Lookup(uint32(pid), &lost) != nil {
		return 0, 0 // none
	}
	return lost.Calls, lost.Uses
}

// LostCallsOfAll returns the sum of Lost over all processes, also those for which there was no room to count separately.
func (k *Kernel) LostCallsOfAll() (calls, uses uint64) {
	var lost loss
	if k.calls.Maps[callsMapTotalloss].Lookup(uint32(0), &lost) != nil {
		return 0, 0
	}
	return lost.Calls, lost.Uses
}

// CallsWithoutStack returns how many calls came without their stack since New, because the ring was too full. Only their
// innermost frame is known.
func (k *Kernel) CallsWithoutStack() uint64 { return k.shortened.Load() }

// ReportsLifecycle reports whether the kernel reports forks, execs and exits of watched processes.
func (k *Kernel) ReportsLifecycle() bool {
	return k.isProgramAttached(processProgForked) && k.isProgramAttached(processProgExecuted) && k.isProgramAttached(processProgExited)
}

func (k *Kernel) isProgramAttached(program string) bool {
	for _, l := range k.life {
		if l.program == program {
			return true
		}
	}
	return false
}

// lifecycle is an attached program of process.bpf.c.
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
