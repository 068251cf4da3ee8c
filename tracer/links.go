package tracer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// everybody stands for all processes that map a file, in the place of a pid.
const everybody = 0

// idleNS is how long probes stay in a file that no process has mapped any more. While they are there its file system cannot
// be unmounted; but taking them away and putting them in again takes longer than a short program from its start to its first
// call.
const idleNS = 60e9

// inode tells a file by what the kernel's breakpoints belong to, see target.Identity.
type inode struct{ device, number uint64 }

func inodeOf(id target.Identity) inode { return inode{id.Device, id.Inode} }

// links are the probes that are there.
type links struct {
	kernel     *kernel.Kernel
	everywhere bool // into files, for processes that come later; else into the processes that were named alone
	files      map[inode]*file
	pids       map[int]map[inode]bool // files that a process has mapped
	loaders    map[int][]string       // that a process has mapped, by the paths that it knows
	numbers    map[string]uint16      // of functions
	closed     bool
}

// file is one that is probed.
type file struct {
	written uint64          // see target.Identity
	probed  map[int]*probed // by process, or for everybody
	users   map[int]bool    // processes that were seen to have it mapped
	kept    bool            // programs that start later will probably map it
	idle    uint64          // since when it has no users, 0: it has, or nobody has looked
}

// probed are probes in a file, for one process or for everybody.
type probed struct {
	path  string // by which the file can be opened, for as long as it is this one
	file  target.Identity
	links []*kernel.Link
	there map[uint64]uint16 // functions by their offsets, and those that cannot be probed: they are not tried again
	dead  int               // of these
}

func newLinks(k *kernel.Kernel, everywhere bool) *links {
	l := &links{
		kernel: k, everywhere: everywhere, files: map[inode]*file{}, pids: map[int]map[inode]bool{},
		loaders: map[int][]string{}, numbers: map[string]uint16{},
	}
	for i := range calls.Functions {
		l.numbers[calls.Functions[i].Name] = uint16(i)
	}
	l.numbers[target.LinkerHook] = uint16(len(calls.Functions))
	return l
}

// probe puts probes into what of a library has none yet, and returns how many functions of it have one then. The error is
// about those that have none.
func (l *links) probe(library *target.Library, pid int) (int, error) {
	id := l.use(library.Identity, pid)
	if library.Loader && !slices.Contains(l.loaders[pid], library.Path) {
		l.loaders[pid] = append(l.loaders[pid], library.Path)
	}
	if l.everywhere {
		pid = everybody
	}
	p := l.probes(library.Identity, pid, library.Open)
	wanted := map[uint64]uint16{}
	for name, offset := range library.Functions {
		if _, there := p.there[offset]; !there {
			wanted[offset] = l.numbers[name]
		}
	}
	var err error
	if pid == everybody && len(wanted) > 0 {
		err = l.replace(id, wanted)
	}
	err = errors.Join(err, l.add(p, pid, wanted))
	return len(p.there) - p.dead, err
}

// probeOnly puts probes for functions into one process alone, where they are not there yet. Nobody else must have a
// breakpoint where a process says that its function is: it may say anything.
func (l *links) probeOnly(list []target.Extension, pid int) error {
	var errs []error
	wanted := map[string]map[uint64]uint16{} // by the path by which the file can be opened
	ids := map[string]target.Identity{}
	for i := range list {
		e := &list[i]
		id := l.use(e.Identity, pid)
		if f := l.files[id]; f.has(everybody, e.Offset) || f.has(pid, e.Offset) {
			continue
		}
		if wanted[e.Open] == nil {
			wanted[e.Open], ids[e.Open] = map[uint64]uint16{}, e.Identity
		}
		wanted[e.Open][e.Offset] = l.numbers[e.Name]
	}
	for open, functions := range wanted {
		errs = append(errs, l.add(l.probes(ids[open], pid, open), pid, functions))
	}
	return errors.Join(errs...)
}

func (f *file) has(pid int, offset uint64) bool {
	if p := f.probed[pid]; p != nil {
		_, there := p.there[offset]
		return there
	}
	return false
}

// use notes that a process has a file mapped. When that was written anew, probes are where they do not belong, and taken
// away.
func (l *links) use(identity target.Identity, pid int) inode {
	id := inodeOf(identity)
	f := l.files[id]
	switch {
	case f == nil:
		f = &file{probed: map[int]*probed{}, users: map[int]bool{}}
		l.files[id] = f
	case f.written != identity.Written:
		for _, p := range f.probed {
			_ = p.close() // those who still have the old one mapped are not seen any more
		}
		clear(f.probed)
	}
	f.written = identity.Written
	if pid == everybody {
		f.kept = true
		return id
	}
	if l.pids[pid] == nil {
		l.pids[pid] = map[inode]bool{}
	}
	l.pids[pid][id], f.users[pid] = true, true
	return id
}

// probes returns the probes in a file, for one process or for everybody.
func (l *links) probes(id target.Identity, pid int, path string) *probed {
	f := l.files[inodeOf(id)]
	if f.probed[pid] == nil {
		f.probed[pid] = &probed{there: map[uint64]uint16{}}
	}
	f.probed[pid].path, f.probed[pid].file = path, id
	return f.probed[pid]
}

// replace takes away what single processes have of functions that everybody gets: they would be told of twice.
func (l *links) replace(id inode, wanted map[uint64]uint16) error {
	var errs []error
	for pid, p := range l.files[id].probed {
		rest := maps.Clone(p.there)
		maps.DeleteFunc(rest, func(offset uint64, _ uint16) bool { _, too := wanted[offset]; return too })
		if pid != everybody && len(rest) < len(p.there) {
			errs = append(errs, p.close(), l.add(p, pid, rest))
		}
	}
	return errors.Join(errs...)
}

// add probes functions by their offsets in a file, each where that costs least. One that cannot be probed does not keep
// the others from it.
func (l *links) add(p *probed, pid int, functions map[uint64]uint16) error {
	if l.closed || len(functions) == 0 {
		return nil
	}
	if found, err := target.Identify(p.path); err != nil || found != p.file {
		return fmt.Errorf("%s is another file than it was: %w", p.path, kernel.ErrGone) // an upgrade has put it there
	}
	var errs []error
	offsets := slices.Collect(maps.Keys(functions))
	entries := target.Entries(p.path, offsets)
	for len(offsets) > 0 {
		probes := make([]kernel.Probe, len(offsets))
		for i := range offsets {
			probes[i] = kernel.Probe{Function: functions[offsets[i]], Offset: entries[i]}
		}
		link, err := l.kernel.Attach(p.path, pid, probes)
		if err == nil {
			p.links = append(p.links, link)
			for _, offset := range offsets {
				p.there[offset] = functions[offset]
			}
			break
		}
		errs = append(errs, err)
		var one *kernel.ProbeError
		if !errors.As(err, &one) || !unprobeable(err) {
			break
		}
		i := slices.Index(entries, one.Offset)
		p.there[offsets[i]] = functions[offsets[i]]
		p.dead++
		offsets, entries = slices.Delete(offsets, i, i+1), slices.Delete(entries, i, i+1)
	}
	return errors.Join(errs...)
}

// errNotSupported is ENOTSUPP, which the kernel has for itself and lets out here.
const errNotSupported = syscall.Errno(524)

// unprobeable reports whether it is the function's fault that it cannot be probed: it lies nowhere in the file, or begins
// with an instruction that the kernel does not execute elsewhere.
func unprobeable(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, errNotSupported) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EIO)
}

// executed forgets what a process had mapped. Probes that are for it alone stay: they are its main thread's, whatever
// program that executes (uprobe_multi_link_filter in kernel/trace/bpf_trace.c of Linux).
func (l *links) executed(pid int) {
	if l.everywhere {
		l.drop(pid)
	}
}

// renew probes a process anew in which another thread than the main one executes a program. What is called before the
// probes are there again is not seen.
func (l *links) renew(pid int) {
	if l.everywhere {
		l.drop(pid)
		return
	}
	for id := range l.pids[pid] {
		f := l.files[id]
		p := f.probed[pid]
		if p == nil {
			continue // it was written anew
		}
		there := p.there
		_ = p.close() // that thread is gone
		if l.add(p, pid, there) != nil {
			delete(f.probed, pid) // it is tried again when the process maps the file
		}
	}
}

// drop forgets a process, and takes out the probes that are for it alone.
func (l *links) drop(pid int) {
	for id := range l.pids[pid] {
		f := l.files[id]
		delete(f.users, pid)
		if p := f.probed[pid]; p != nil {
			_ = p.close() // the process is gone
			delete(f.probed, pid)
		}
		if len(f.probed) == 0 {
			delete(l.files, id)
		}
	}
	delete(l.pids, pid)
	delete(l.loaders, pid)
}

// sweep takes probes out of files that nobody has mapped for long.
func (l *links) sweep(now uint64) {
	for id, f := range l.files {
		switch {
		case f.kept || len(f.users) > 0:
			f.idle = 0
		case f.idle == 0:
			f.idle = now
		case now >= f.idle+idleNS:
			for _, p := range f.probed {
				_ = p.close() // nobody is there who could be told of
			}
			delete(l.files, id)
		}
	}
}

func (p *probed) close() error {
	var errs []error
	for _, link := range p.links {
		errs = append(errs, link.Close())
	}
	p.links, p.there, p.dead = nil, map[uint64]uint16{}, 0
	return errors.Join(errs...)
}

// close takes all probes away; afterwards none are put anywhere.
func (l *links) close() error {
	var errs []error
	for _, f := range l.files {
		for _, p := range f.probed {
			errs = append(errs, p.close())
		}
	}
	clear(l.files)
	clear(l.pids)
	l.closed = true
	return errors.Join(errs...)
}
