// Package stack turns what was told of a call, its registers and the bytes of its stack, into the frames that
// _Unwind_Backtrace would have found in the process, and those into tags: the same as the shim's, without anything
// running in the process. It unwinds by the call frame information of the modules, which every library for amd64 has
// because exceptions need it. The package reads no clock.
package stack

import (
	"os"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// Space is the address space of a process; *target.Process is one.
type Space interface {
	// Maps returns the mappings as they are now, by address, or an error when the process is gone.
	Maps() ([]target.Mapping, error)
	// File returns the path by which we can open the file of a mapping: that file, whatever has its name meanwhile.
	File(target.Mapping) (string, error)
}

// rowsMax bounds the places in the code whose rows are kept, some 400 bytes each.
const rowsMax = 1 << 14

// Walker walks the stacks of one process. It is for one goroutine at a time.
type Walker struct {
	modules   modules
	rows      map[uint64]*row // by the place in the code; nil: no unwind information
	machine   machine
	truncated uint64
}

// New returns a walker that reads the mappings of the process when it first needs them, or is told to: see Renew.
func New(space Space, files *Files) *Walker {
	return &Walker{modules: modules{space: space, files: files}, rows: map[uint64]*row{}}
}

// Clone returns a walker of a process that was forked from this one's: until its mappings are found to be others, it has
// the same, and both share what is found in them. It costs next to nothing. One goroutine at a time may use the two.
func (w *Walker) Clone(space Space) *Walker {
	clone := New(space, w.modules.files)
	clone.modules.mappings, clone.modules.found, clone.rows = w.modules.mappings, w.modules.found, w.rows
	return clone
}

// Walk appends the return addresses of a call's stack, innermost first and beginning with the sample's Ip, as far as
// frames has room. Like _Unwind_Backtrace it ends at the outermost frame and behind the first frame whose code has no
// unwind information, frame pointer or not; and where another probed function is to return, for the kernel alone knows
// where to. It also ends where the sample has no more of the stack: see Truncated.
func (w *Walker) Walk(s *wire.Sample, frames []uint64) []uint64 {
	if s.Ip == 0 || len(frames) == cap(frames) {
		return frames
	}
	frames = append(frames, s.Ip)
	if len(s.Memory) == 0 {
		return frames
	}
	m := &w.machine
	m.begin(s)
	// A return address is that of the instruction behind the call, which may belong to another function. Where the
	// caller was interrupted by a signal it is that of the instruction itself.
	interrupted := false
	for len(frames) < cap(frames) {
		at := m.value[rip]
		if !interrupted {
			at--
		}
		row := w.row(at)
		if row == nil {
			if len(frames) > 1 && w.returnsToKernel(m.value[rip]) {
				frames = frames[:len(frames)-1]
			}
			return frames
		}
		if row.last || !m.up(row) {
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

// returnsToKernel reports whether an address is where functions return to whose return is being watched: the beginning of a
// page that comes with the first of them. Hardly any code returns to the beginning of a page, so that it is looked for
// there, however often the mappings were read in vain before.
func (w *Walker) returnsToKernel(address uint64) bool {
	if address%uint64(os.Getpagesize()) != 0 {
		return false
	}
	module := w.module(address)
	if module == nil && !w.modules.watched() && w.modules.read() {
		w.forget()
		module = w.module(address)
	}
	return module == kernels
}

// begin takes the registers that survive a call, and the stack.
func (m *machine) begin(s *wire.Sample) {
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

// Truncated returns how many walks have ended because the stack was longer than what was told of it.
func (w *Walker) Truncated() uint64 { return w.truncated }

// Renew reads the mappings, at once: when they are needed the process may be gone. Addresses in no known mapping do so
// by themselves: it is for when the process has put one module where another was, and for one that may not live long.
// Of a process that is gone, what is known is kept.
func (w *Walker) Renew() {
	w.modules.renew()
	w.forget()
}

// row returns how to go on from a place in the code, nil when nothing says it.
func (w *Walker) row(at uint64) *row {
	if r, ok := w.rows[at]; ok {
		return r
	}
	module := w.module(at)
	if module == nil || module.image == nil {
		return nil
	}
	if len(w.rows) >= rowsMax {
		clear(w.rows)
	}
	r := module.image.row(at - module.bias)
	w.rows[at] = r
	return r
}

// module returns the module of an address, nil when it is in no mapping.
func (w *Walker) module(address uint64) *module {
	module, changed := w.modules.at(address)
	if changed {
		w.forget()
	}
	return module
}

// forget begins anew with the rows: the mappings are others now. Those of a clone may be as they were.
func (w *Walker) forget() { w.rows = map[uint64]*row{} }

// Locate returns the module that holds an address: its path as the process sees it and its lowest address, which is
// what dladdr calls dli_fbase. ok is false for addresses in no module.
func (w *Walker) Locate(address uint64) (path string, base uint64, ok bool) {
	module := w.module(address)
	if module == nil || !module.known {
		return "", 0, false
	}
	return module.path, module.base, true
}
