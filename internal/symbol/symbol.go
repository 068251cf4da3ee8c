// Package symbol turns an address in a module of a target program into a function, a file and a line. It reads ELF
// symbol tables and DWARF from the module, or from the debug file that a distribution puts beside it. What cannot be
// found stays empty: module and offset always name the place.
package symbol

import (
	"os"
	"sync"
	"time"
)

// Frame is one place in a program. Function, File and Line are empty or 0 when they are unknown.
type Frame struct {
	Function string // demangled, without parameters
	File     string // as the compiler wrote it, usually absolute
	Line     int    // from 1
	Module   string // path of the module
	Offset   uint64 // of the return address, from the module's lowest mapped address
}

// debugRoot is where distributions put debug files.
const debugRoot = "/usr/lib/debug"

// modulesMax bounds the modules kept in memory; a program that loads more makes the resolver start anew.
const modulesMax = 512

// Resolver resolves addresses and keeps what it read of each module. All methods may be called from any goroutine.
type Resolver struct {
	root string // of debug files

	mu      sync.Mutex
	modules map[string]*entry
}

// entry is one module, read by the first who needs it.
type entry struct {
	id     identity
	once   sync.Once
	module *module
}

// identity shows when a file was replaced.
type identity struct {
	info    os.FileInfo
	size    int64
	changed time.Time
}

func (a identity) same(b identity) bool {
	return os.SameFile(a.info, b.info) && a.size == b.size && a.changed.Equal(b.changed)
}

// New returns a resolver that has read nothing yet.
func New() *Resolver { return &Resolver{root: debugRoot, modules: map[string]*entry{}} }

// Frames names the place of a return address: the function that made the call, then those that it was inlined into,
// the function that really has the frame last. offset is the address minus the module's lowest mapped address
// (dli_fbase). There is at least one frame, and all have the same Module and Offset: of a module that is not a readable
// regular file in ELF, they have nothing else.
func (r *Resolver) Frames(module string, offset uint64) []Frame {
	var frames []Frame
	if m := r.module(module); m != nil && offset > 0 {
		// The call is the instruction before the one it returns to.
		frames = m.frames(offset - 1)
	}
	if len(frames) == 0 {
		frames = []Frame{{}}
	}
	for i := range frames {
		frames[i].Module, frames[i].Offset = module, offset
	}
	return frames
}

// module returns what is known of a file, nil when it is no regular file.
func (r *Resolver) module(path string) *module {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	id := identity{info: info, size: info.Size(), changed: info.ModTime()}
	r.mu.Lock()
	e := r.modules[path]
	if e == nil || !e.id.same(id) {
		if len(r.modules) >= modulesMax {
			clear(r.modules)
		}
		e = &entry{id: id}
		r.modules[path] = e
	}
	r.mu.Unlock()
	e.once.Do(func() { e.module = load(path, r.root) })
	return e.module
}
