package machine

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "nvml.h"
*/
import "C"

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// usesMax bounds what is read of all processes on all of NVIDIA's devices.
const usesMax = 1024

// nvml is NVIDIA's management library. It is loaded at the first question.
type nvml struct {
	library string
	asked   bool
	failed  int16 // the errno of loading it
	uses    [usesMax]C.struct_nvml_use
}

// readNVIDIAFigures returns what NVIDIA's library says of a process. It is asked once in a round.
func (m *Machine) readNVIDIAFigures(pid int) []Figure {
	if m.named == nil {
		m.named = m.nvml.readFiguresByPID()
	}
	if everyone := m.named[0]; len(everyone) > 0 { // it could not be asked
		return everyone
	}
	return m.named[pid]
}

// loadNVML loads the library at the first call; 0, or an errno.
func (n *nvml) loadNVML() int16 {
	if !n.asked {
		library := C.CString(n.library)
		defer C.free(unsafe.Pointer(library))
		n.asked, n.failed = true, int16(C.nvml_load(library))
	}
	return n.failed
}

// readDeviceMemory returns how much memory the device at a PCI address has, and how much of it is free.
func (n *nvml) readDeviceMemory(device uint64) (total, free uint64, ok bool) {
	var all, unused C.ulonglong
	if n.loadNVML() != 0 || C.nvml_memory(C.ulonglong(device), &all, &unused) != 0 {
		return 0, 0, false
	}
	return uint64(all), uint64(unused), true
}

// readFiguresByPID returns the figures of all processes by their pids; those of pid 0 are of all that are not named.
func (n *nvml) readFiguresByPID() map[int][]Figure {
	figures := map[int][]Figure{}
	fail := func(number int16) map[int][]Figure {
		figures[0] = []Figure{{Source: wire.MachineNVML, Unread: number}}
		return figures
	}
	if number := n.loadNVML(); number != 0 {
		return fail(number)
	}
	count := int(C.nvml_uses(&n.uses[0], usesMax))
	if count < 0 {
		return fail(int16(-count))
	}
	for i := range count {
		u := &n.uses[i]
		f := Figure{Source: wire.MachineNVML, Device: uint64(u.device), Bytes: uint64(u.bytes)}
		if u.unread != 0 {
			f.Unread = int16(unix.ENODATA)
		}
		pid := int(u.pid)
		figures[pid] = append(figures[pid], f)
	}
	return figures
}
