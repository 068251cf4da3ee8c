package kernel

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// initialNamespace is the inode of the initial pid namespace (PROC_PID_INIT_INO of include/linux/proc_ns.h).
const initialNamespace = 0xEFFFFFFC

// raiseLockedMemoryLimit lets maps be made where the kernel charges them to RLIMIT_MEMLOCK: before 5.11, and without memory
// cgroups. Where it is refused but needed, making a map says so. Cilium's package rlimit would try at each start of gpumemtop,
// with bpf(2).
func raiseLockedMemoryLimit() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return
	}
	all := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if unix.Setrlimit(unix.RLIMIT_MEMLOCK, &all) != nil {
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit)
	}
}

func (k *Kernel) loadPrograms() error {
	raiseLockedMemoryLimit()
	device, inode, err := pidNamespace()
	if err != nil {
		return err
	}
	_, noTypes := k.options.Types.Kernel()
	constants := map[string]any{
		callsVarWatchall: k.options.WatchAll, callsVarStacks: k.options.Stacks,
		callsVarStacklimit: maxFillForStacks(k.options.RingBytes), processVarFollow: k.options.Follow,
		callsVarNamespacedev: device, callsVarNamespaceino: inode, callsVarHastypes: inode != 0 && noTypes == nil,
	}
	if err := k.loadCalls(constants); err != nil {
		return err
	}
	k.loadLifecyclePrograms(constants)
	if k.ring, err = openRing(k.calls.Maps[callsMapRing]); err != nil {
		return err
	}
	k.poller, err = openPoller()
	return err
}

// pidNamespace identifies our pid namespace as the kernel does. Zeros mean the initial one.
func pidNamespace() (device, inode uint64, err error) {
	var s unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &s); err != nil {
		return 0, 0, fmt.Errorf("find the pid namespace: %w", &os.PathError{Op: "stat", Path: "/proc/self/ns/pid", Err: err})
	}
	if s.Ino == initialNamespace {
		return 0, 0, nil
	}
	// The kernel's own encoding of device numbers: MKDEV of include/linux/kdev_t.h.
	return uint64(unix.Major(s.Dev))<<20 | uint64(unix.Minor(s.Dev)), s.Ino, nil
}

func (k *Kernel) loadCalls(constants map[string]any) error {
	spec, err := loadCalls()
	if err != nil {
		return fmt.Errorf("read the eBPF programs for calls: %w", err)
	}
	if err := setConstants(spec, constants); err != nil {
		return err
	}
	spec.Maps[callsMapRing].MaxEntries = uint32(k.options.RingBytes)
	for i, shape := range k.options.Shapes {
		shapes := spec.Maps[callsMapShapes]
		shapes.Contents = append(shapes.Contents, ebpf.MapKV{Key: uint32(i), Value: shape})
	}
	o := ebpf.CollectionOptions{Cache: k.options.Types}
	if constants[callsVarHastypes] == false {
		o.Programs.KernelTypes = spec.Types // the code that needs the kernel's does not run
	}
	k.multi = !k.options.single && features.HaveBPFLinkUprobeMulti() == nil
	if k.calls, err = loadCollection(spec, k.multi, o); err != nil {
		return explainKernelError("load the eBPF programs for calls", err)
	}
	if k.multi && !doesMultiLinkCoverProcess(k.calls.Programs[callsProgEnter]) {
		k.calls.Close()
		k.multi = false
		if k.calls, err = loadCollection(spec, false, o); err != nil {
			return explainKernelError("load the eBPF programs for calls", err)
		}
	}
	return nil
}

// loadCollection loads programs and maps. The kind of link must be known when a program is loaded.
func loadCollection(spec *ebpf.CollectionSpec, multi bool, o ebpf.CollectionOptions) (*ebpf.Collection, error) {
	kind := ebpf.AttachNone
	if multi {
		kind = ebpf.AttachTraceUprobeMulti
	}
	for _, program := range spec.Programs {
		program.AttachType = kind
	}
	return ebpf.NewCollectionWithOptions(spec, o)
}

// doesMultiLinkCoverProcess reports whether a multi link for one pid covers the whole process. Before commit 46ba0e49b642 (Linux
// 6.10) it covered one thread. Kernels with that commit reject a negative pid, others find no such process. libbpf tests
// it the same way.
func doesMultiLinkCoverProcess(program *ebpf.Program) bool {
	self, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return false
	}
	l, err := self.UprobeMulti(nil, program, &link.UprobeMultiOptions{Addresses: []uint64{1}, PID: math.MaxUint32})
	if err == nil {
		_ = l.Close()
	}
	return errors.Is(err, unix.EINVAL)
}

// setConstants sets the constants that the object declares.
func setConstants(spec *ebpf.CollectionSpec, constants map[string]any) error {
	for name, variable := range spec.Variables {
		if !variable.Constant() {
			continue
		}
		if err := variable.Set(constants[name]); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// loadLifecyclePrograms loads and attaches the programs of process.bpf.c that this kernel accepts.
func (k *Kernel) loadLifecyclePrograms(constants map[string]any) {
	for _, name := range []string{processProgForked, processProgExecuted, processProgExited} {
		objects, err := k.loadLifecycle(name, constants)
		if err != nil {
			continue
		}
		l, err := link.AttachTracing(link.TracingOptions{Program: objects.Programs[name]})
		if err != nil {
			objects.Close()
			continue
		}
		k.life = append(k.life, lifecycle{program: name, objects: objects, link: l})
	}
}

func (k *Kernel) loadLifecycle(name string, constants map[string]any) (*ebpf.Collection, error) {
	spec, err := loadProcess()
	if err != nil {
		return nil, err
	}
	if err := setConstants(spec, constants); err != nil {
		return nil, err
	}
	for other := range spec.Programs {
		if other != name {
			delete(spec.Programs, other)
		}
	}
	shared := map[string]*ebpf.Map{}
	for _, m := range []string{processMapRing, processMapVerdicts, processMapLosses, processMapTotalloss} {
		shared[m] = k.calls.Maps[m]
		spec.Maps[m].MaxEntries = shared[m].MaxEntries()
	}
	return ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: shared, Cache: k.options.Types})
}
