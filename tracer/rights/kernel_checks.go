package rights

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Check is a test of what the kernel supports and permits.
type Check string

// The checks.
const (
	// CheckMaps: the kinds of map that the programs use. It comes first, and shows whether there is bpf(2) at all.
	CheckMaps Check = "maps"
	// CheckPrograms: programs of type kprobe, which uprobes run.
	CheckPrograms Check = "programs"
	// CheckHelpers: the kernel functions that the programs call.
	CheckHelpers Check = "helpers"
	// CheckMulti: links of many uprobes (Linux 6.6).
	CheckMulti Check = "multi"
	// CheckMultiProcess: whether such a link for one pid covers the whole process, not one thread.
	CheckMultiProcess Check = "multi process"
	// CheckSingle: single uprobes by perf_event_open(2).
	CheckSingle Check = "single"
	// CheckLifecycle: programs on typed tracepoints, which report forks, execs and exits.
	CheckLifecycle Check = "lifecycle"
)

// What the programs use.
var (
	mapTypes = []ebpf.MapType{ebpf.Array, ebpf.Hash, ebpf.LRUHash, ebpf.RingBuf}
	helpers  = []asm.BuiltinFunc{asm.FnProbeReadUser, asm.FnRingbufReserve, asm.FnGetAttachCookie, asm.FnGetNsCurrentPidTgid}
)

func (s *System) runCheck(q Check) error {
	switch q {
	case CheckMaps:
		for _, t := range mapTypes {
			if err := features.HaveMapType(t); err != nil {
				return fmt.Errorf("maps of type %s: %w", t, err)
			}
		}
		return nil
	case CheckPrograms:
		return features.HaveProgramType(ebpf.Kprobe)
	case CheckHelpers:
		for _, h := range helpers {
			if err := features.HaveProgramHelper(ebpf.Kprobe, h); err != nil {
				return fmt.Errorf("%s: %w", h, err)
			}
		}
		return nil
	case CheckMulti:
		return features.HaveBPFLinkUprobeMulti()
	case CheckMultiProcess:
		return tryMultiUprobe()
	case CheckSingle:
		return s.openUprobe()
	case CheckLifecycle:
		return tryLifecycle(s.Types)
	}
	return fmt.Errorf("unknown check %s", q)
}

// loadEmptyProgram loads a program that does nothing, as "nothing". types: the kernel's; nil for programs that need none.
func loadEmptyProgram(spec ebpf.ProgramSpec, types *btf.Cache) (*ebpf.Collection, error) {
	spec.License = "GPL"
	spec.Instructions = asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}
	return ebpf.NewCollectionWithOptions(&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"nothing": &spec}},
		ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogDisabled: true}, Cache: types})
}

// tryMultiUprobe tests as libbpf does: kernels with commit 46ba0e49b642 (Linux 6.10) reject a negative pid as such, those
// before it look for that process. Neither makes a link.
func tryMultiUprobe() error {
	loaded, err := loadEmptyProgram(ebpf.ProgramSpec{Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti}, nil)
	if err != nil {
		return err
	}
	defer loaded.Close()
	self, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return err
	}
	l, err := self.UprobeMulti(nil, loaded.Programs["nothing"], &link.UprobeMultiOptions{Addresses: []uint64{1}, PID: math.MaxUint32})
	switch {
	case err == nil:
		return errors.Join(errors.New("a link for the process -1 was made"), l.Close())
	case errors.Is(err, unix.EINVAL):
		return nil
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("multi-uprobe links for a process: %w", ebpf.ErrNotSupported)
	}
	return err
}

const uprobeUnit = "/sys/bus/event_source/devices/uprobe/type"

// openUprobe opens a uprobe without a file. The kernel checks rights first (perf_uprobe_event_init in kernel/events/core.c);
// if they suffice it reports that the file is missing.
func (s *System) openUprobe() error {
	kind, err := strconv.ParseUint(s.readSmallFile(uprobeUnit), 10, 32)
	if err != nil {
		return fmt.Errorf("no %s: %w", uprobeUnit, ebpf.ErrNotSupported)
	}
	attr := unix.PerfEventAttr{Type: uint32(kind), Size: unix.PERF_ATTR_SIZE_VER5}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	switch {
	case err == nil:
		return errors.Join(errors.New("a uprobe in no file was opened"), unix.Close(fd))
	case errors.Is(err, unix.EINVAL):
		return nil
	}
	return os.NewSyscallError("perf_event_open", err)
}

func tryLifecycle(types *btf.Cache) error {
	loaded, err := loadEmptyProgram(ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "sched_process_exec"}, types)
	if err != nil {
		return err
	}
	loaded.Close()
	return nil
}
