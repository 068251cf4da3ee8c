// Package symbol turns an address in a module of a target program into a function, a file and a line. It reads ELF
// symbol tables and DWARF from the module, or from the debug file that a distribution puts beside it. Unknown fields
// stay empty: module and offset always identify the place.
package symbol

import (
	"os"
	"sync"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
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

const (
	// modulesMax bounds the modules kept in memory.
	modulesMax = 512
	// clearedMax bounds how often all modules are dropped to make room for another: reading them again takes time.
	clearedMax = 16
	// loadPatience is how long reading a module may take: its file system may hang.
	loadPatience = 30 * time.Second
)

// Options say how names are found. All may be left out.
type Options struct {
	Budget *budget.Budget    // for the memory that is kept; nil: half of what a session may take
	Say    func(line string) // gets a line about parts that were left out, once for each module
	Still  bool              // files do not change meanwhile
}

// Resolver resolves addresses and keeps what it read of each module. All methods may be called from any goroutine.
type Resolver struct {
	root   string // of debug files
	budget *budget.Budget
	say    func(line string)
	still  bool

	mu      sync.Mutex
	modules map[string]*entry
	cleared int             // how often all modules were dropped
	refused uint64          // refusals of the budget before the latest of these times
	said    map[string]bool // modules whose omissions we have reported
}

// entry is one module, read by the first who needs it.
type entry struct {
	id     identity
	once   sync.Once
	module *module
}

// identity changes when a file is replaced.
type identity struct {
	info    os.FileInfo
	size    int64
	changed time.Time
}

func (a identity) isSameFile(b identity) bool {
	return os.SameFile(a.info, b.info) && a.size == b.size && a.changed.Equal(b.changed)
}

// NewResolver returns a resolver that has read nothing yet.
func NewResolver(o Options) *Resolver {
	r := &Resolver{root: debugRoot, budget: o.Budget, say: o.Say, still: o.Still, modules: map[string]*entry{}, said: map[string]bool{}}
	if r.budget == nil {
		r.budget = budget.New(budget.Session / 2)
	}
	return r
}

// FramesAt names the place of a return address: the function that made the call, then those into which it was inlined; the last
// one has the machine's frame. offset is the address minus the module's lowest mapped address (dli_fbase). There is at least
// one frame, and all have the same Module and Offset. If the module is no readable regular file in ELF, they have nothing else.
func (r *Resolver) FramesAt(module string, offset uint64) []Frame {
	frames := r.findFrames(module, offset)
	if r.dropModulesForRoom() {
		frames = r.findFrames(module, offset)
	}
	if len(frames) == 0 {
		frames = []Frame{{}}
	}
	for i := range frames {
		frames[i].Module, frames[i].Offset = module, offset
	}
	return frames
}

// findFrames returns the frames of a return address, as far as known.
func (r *Resolver) findFrames(path string, offset uint64) (frames []Frame) {
	if m := r.moduleOf(path); m != nil && offset > 0 {
		// The call is the instruction before the one it returns to.
		frames = m.framesAtOffset(offset - 1)
		r.warnOfLeftOut(path, m)
	}
	return frames
}

// moduleOf returns the module of a file, nil if it is no regular file.
func (r *Resolver) moduleOf(path string) *module {
	if r.still {
		r.mu.Lock()
		e, known := r.modules[path]
		r.mu.Unlock()
		if known {
			return r.readModule(path, e)
		}
	}
	info, err := untrusted.StatRegular(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	id := identity{info: info, size: info.Size(), changed: info.ModTime()}
	r.mu.Lock()
	e := r.modules[path]
	if e == nil || !e.id.isSameFile(id) {
		r.dropModule(path)
		for other := range r.modules {
			if len(r.modules) < modulesMax {
				break
			}
			r.dropModule(other)
		}
		e = &entry{id: id}
		r.modules[path] = e
	}
	r.mu.Unlock()
	return r.readModule(path, e)
}

// readModule reads an entry's module, if it has not been read.
func (r *Resolver) readModule(path string, e *entry) *module {
	e.once.Do(func() {
		var m *module
		if untrusted.CallWithPatience(path, loadPatience, func() { m = readModule(path, r.root, r.budget) }) {
			e.module = m
		}
	})
	return e.module
}

// dropModule forgets a module, which others may still use.
func (r *Resolver) dropModule(path string) {
	if e := r.modules[path]; e != nil {
		e.once.Do(func() {})
		if e.module != nil {
			e.module.keep.ReleaseAll()
		}
		delete(r.modules, path)
	}
}

// dropModulesForRoom drops all modules if they left no room for a part of another one. True: they were dropped.
func (r *Resolver) dropModulesForRoom() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	refused := r.budget.RefusedCount()
	if refused == r.refused || r.cleared == clearedMax {
		return false
	}
	r.refused = refused
	r.cleared++
	for path := range r.modules {
		r.dropModule(path)
	}
	return true
}

// warnOfLeftOut says that there was no room for all of a module.
func (r *Resolver) warnOfLeftOut(path string, m *module) {
	if r.say == nil || !m.isIncomplete() {
		return
	}
	r.mu.Lock()
	said := r.said[path] || len(r.said) == modulesMax
	r.said[path] = true
	r.mu.Unlock()
	if !said {
		r.say(path + ": its names or lines take more memory than they may have, so some call sites are shown without (--memory-budget)")
	}
}
