// Package stack turns the registers and stack bytes of a call into the frames that _Unwind_Backtrace would find in the
// process, and these into tags equal to the shim's, without running code in the process. It unwinds with the call frame
// information that every library for amd64 has for exceptions. It reads no clock.
//
// bpf_get_stack follows frame pointers, which most libraries lack; tags would differ from the shim's, which unwinds by
// .eh_frame. So the eBPF program copies registers and up to 16 KiB of stack at a create, and tracer/stack unwinds by the
// same tables. Stacks may fill seven eighths of the ring: a call with one frame is better than a lost one.
package stack

import (
	"os"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// Space is the address space of a process; *target.Process is one.
type Space interface {
	// ReadMappings returns the current mappings, by address, or an error if the process is gone.
	ReadMappings() ([]target.Mapping, error)
	// MappingPath returns the path under which we can open the file of a mapping, even if another file has its name now.
	MappingPath(target.Mapping) (string, error)
}

// rowsMax bounds the cached rows, of some 400 bytes each.
const rowsMax = 1 << 14

// Walker walks the stacks of one process. It is for one goroutine at a time.
type Walker struct {
	modules   modules
	rows      map[uint64]*row // by address; nil: no unwind information
	machine   machine
	truncated uint64
}

// New returns a walker. It reads the mappings of the process when it first needs them, or on Renew.
func New(space Space, files *Files) *Walker {
	return &Walker{modules: modules{space: space, files: files}, rows: map[uint64]*row{}}
}

// Clone returns a walker for a forked child. The two share mappings and rows until those of the child turn out to differ.
// It is cheap. Only one goroutine at a time may use the two.
func (w *Walker) Clone(space Space) *Walker {
	clone := New(space, w.modules.files)
	clone.modules.mappings, clone.modules.found, clone.rows = w.modules.mappings, w.modules.found, w.rows
	return clone
}

// WalkStack appends the return addresses of a call's stack, innermost first, beginning with s.Ip, up to the capacity of frames.
// Like _Unwind_Backtrace it ends at the outermost frame, or after the first frame without unwind information, even if
// there is a frame pointer. It also ends where another probed function will return, since only the kernel knows where to,
// and at the end of the stack in the sample: see Truncated.
func (w *Walker) WalkStack(s *wire.Sample, frames []uint64) []uint64 {
	if s.Ip == 0 || len(frames) == cap(frames) {
		return frames
	}
	frames = append(frames, s.Ip)
	if len(s.Memory) == 0 {
		return frames
	}
	m := &w.machine
	m.takeRegistersAndStack(s)
	// A return address is that of the instruction after the call, which may belong to another function. If a signal
	// interrupted the caller, it is that of the instruction itself.
	interrupted := false
	for len(frames) < cap(frames) {
		at := m.value[rip]
		if !interrupted {
			at--
		}
		row := w.unwindRowAt(at)
		if row == nil {
			if len(frames) > 1 && w.isUprobeReturn(m.value[rip]) {
				frames = frames[:len(frames)-1]
			}
			return frames
		}
		if row.last || !m.stepToCaller(row) {
			if m.beyond {
				w.truncated++
			}
			return frames
		}
		interrupted = row.signal
		if m.value[rip] == 0 {
			return frames
		}
		frames = append(frames, m.value[rip])
	}
	return frames
}

// isUprobeReturn reports whether an address is that to which probed functions return: the beginning of a page that is
// mapped with the first of them. Since almost no other code returns to the beginning of a page, it looks for that page
// however often the mappings were read in vain.
func (w *Walker) isUprobeReturn(address uint64) bool {
	if address%uint64(os.Getpagesize()) != 0 {
		return false
	}
	module := w.moduleAt(address)
	if module == nil && !w.modules.hasUprobesPage() && w.modules.rereadMappings() {
		w.forgetRows()
		module = w.moduleAt(address)
	}
	return module == kernels
}

// takeRegistersAndStack takes the callee-saved registers and the stack.
func (m *machine) takeRegistersAndStack(s *wire.Sample) {
	*m = machine{memory: s.Memory, bottom: s.Sp}
	m.set(rip, s.Ip)
	m.set(rsp, s.Sp)
	m.set(rbp, s.Bp)
	m.set(rbx, s.Bx)
	m.set(r12, s.R12)
	m.set(r13, s.R13)
	m.set(r14, s.R14)
	m.set(r15, s.R15)
}

// TruncatedCount returns how many walks ended because the stack was longer than its copy in the sample.
func (w *Walker) TruncatedCount() uint64 { return w.truncated }

// RenewMappings reads the mappings now. Unknown addresses cause this by themselves; call it when one module may have replaced
// another, or the process may soon be gone. If it is gone, Renew keeps what is known.
func (w *Walker) RenewMappings() {
	w.modules.renewModules()
	w.forgetRows()
}

// unwindRowAt returns the rules at a place in the code, nil if there are none.
func (w *Walker) unwindRowAt(at uint64) *row {
	if r, ok := w.rows[at]; ok {
		return r
	}
	module := w.moduleAt(at)
	if module == nil || module.image == nil {
		return nil
	}
	if len(w.rows) >= rowsMax {
		clear(w.rows)
	}
	r := module.image.unwindRowAt(at - module.bias)
	w.rows[at] = r
	return r
}

// moduleAt returns the module of an address, nil if nothing is mapped there.
func (w *Walker) moduleAt(address uint64) *module {
	module, changed := w.modules.moduleAt(address)
	if changed {
		w.forgetRows()
	}
	return module
}

// forgetRows drops the rows after the mappings have changed. Those of a clone may still be valid.
func (w *Walker) forgetRows() { w.rows = map[uint64]*row{} }

// ModuleOfAddress returns the module at an address: its path as the process sees it, and its lowest address, which dladdr calls
// dli_fbase. ok is false for addresses outside of modules.
func (w *Walker) ModuleOfAddress(address uint64) (path string, base uint64, ok bool) {
	module := w.moduleAt(address)
	if module == nil || !module.known {
		return "", 0, false
	}
	return module.path, module.base, true
}
