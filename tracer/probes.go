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

// allProcesses stands for all processes that map a file, in place of a pid.
const allProcesses = 0

// idleNS is how long probes stay in a file that no process maps. They keep its file system from being
// unmounted; but attaching them again takes longer than a short program needs from its start to its first call.
const idleNS = 60e9

// inode identifies a file as the kernel's breakpoints do, see target.Identity.
type inode struct{ device, number uint64 }

func inodeOfFile(id target.Identity) inode { return inode{id.Device, id.Inode} }

// probes are all probes that are attached.
type probes struct {
	kernel     *kernel.Kernel
	everywhere bool // probe files for all processes, also later ones; else only the processes that are named
	files      map[inode]*file
	mapped     map[int]*mappedFiles // by pid
	numbers    map[string]uint16    // of functions
	closed     bool
}

// mappedFiles are the probed files that a process has mapped.
type mappedFiles struct {
	files   map[inode]bool
	loaders []string // paths of the ICD loaders among them, as the process knows them
}

// file is a probed file.
type file struct {
	written uint64              // see target.Identity
	probes  map[int]*fileProbes // by pid, or allProcesses
	users   map[int]bool        // pids of processes that have it mapped
	kept    bool                // later programs will probably map it
	idle    uint64              // when a sweep first found it without users, ns; 0: it has users
}

// fileProbes are the probes in a file, for one process or for all.
type fileProbes struct {
	path      string // under which we can open the file while it is still this one
	file      target.Identity
	links     []*kernel.Link
	functions map[uint64]uint16 // by offset; those that cannot be probed are included, so that they are not tried again
	failed    int               // functions that cannot be probed
}

func newProbes(k *kernel.Kernel, everywhere bool) *probes {
	s := &probes{
		kernel: k, everywhere: everywhere, files: map[inode]*file{}, mapped: map[int]*mappedFiles{}, numbers: map[string]uint16{},
	}
	for i := range calls.Functions {
		s.numbers[calls.Functions[i].Name] = uint16(i)
	}
	s.numbers[target.LinkerHook] = uint16(len(calls.Functions))
	return s
}

// mappedLoaders returns the ICD loaders that a process has mapped.
func (s *probes) mappedLoaders(pid int) []string {
	if m := s.mapped[pid]; m != nil {
		return m.loaders
	}
	return nil
}

// attachToLibrary probes the functions of a library that have no probe yet, and returns how many have one then. The error is
// about the others.
func (s *probes) attachToLibrary(library *target.Library, pid int) (int, error) {
	id := s.noteFileMapped(library.Identity, pid)
	if m := s.mapped[pid]; m != nil && library.Loader && !slices.Contains(m.loaders, library.Path) {
		m.loaders = append(m.loaders, library.Path)
	}
	if s.everywhere {
		pid = allProcesses
	}
	p := s.probesInFile(library.Identity, pid, library.Open)
	wanted := map[uint64]uint16{}
	for name, offset := range library.Functions {
		if _, there := p.functions[offset]; !there {
			wanted[offset] = s.numbers[name]
		}
	}
	var err error
	if pid == allProcesses && len(wanted) > 0 {
		err = s.removeSingleProcessProbes(id, wanted)
	}
	err = errors.Join(err, s.addProbes(p, pid, wanted))
	return len(p.functions) - p.failed, err
}

// attachExtensions probes functions in one process alone, unless they have a probe. A process may claim any address as
// that of its function, so no other process must get a breakpoint there.
func (s *probes) attachExtensions(list []target.Extension, pid int) error {
	var errs []error
	wanted := map[string]map[uint64]uint16{} // by the path under which we can open the file
	ids := map[string]target.Identity{}
	for i := range list {
		e := &list[i]
		id := s.noteFileMapped(e.Identity, pid)
		if f := s.files[id]; f.hasProbe(allProcesses, e.Offset) || f.hasProbe(pid, e.Offset) {
			continue
		}
		if wanted[e.Open] == nil {
			wanted[e.Open], ids[e.Open] = map[uint64]uint16{}, e.Identity
		}
		wanted[e.Open][e.Offset] = s.numbers[e.Name]
	}
	for open, functions := range wanted {
		errs = append(errs, s.addProbes(s.probesInFile(ids[open], pid, open), pid, functions))
	}
	return errors.Join(errs...)
}

func (f *file) hasProbe(pid int, offset uint64) bool {
	if p := f.probes[pid]; p != nil {
		_, there := p.functions[offset]
		return there
	}
	return false
}

// noteFileMapped notes that a process has a file mapped. If the file was rewritten, its probes are in the wrong places, and are
// removed.
func (s *probes) noteFileMapped(identity target.Identity, pid int) inode {
	id := inodeOfFile(identity)
	f := s.files[id]
	switch {
	case f == nil:
		f = &file{probes: map[int]*fileProbes{}, users: map[int]bool{}}
		s.files[id] = f
	case f.written != identity.Written:
		for _, p := range f.probes {
			_ = p.close() // processes that still map the former content are no longer recorded
		}
		clear(f.probes)
	}
	f.written = identity.Written
	if pid == allProcesses {
		f.kept = true
		return id
	}
	if s.mapped[pid] == nil {
		s.mapped[pid] = &mappedFiles{files: map[inode]bool{}}
	}
	s.mapped[pid].files[id], f.users[pid] = true, true
	return id
}

// probesInFile returns the probes in a file, for one process or for all.
func (s *probes) probesInFile(id target.Identity, pid int, path string) *fileProbes {
	f := s.files[inodeOfFile(id)]
	if f.probes[pid] == nil {
		f.probes[pid] = &fileProbes{functions: map[uint64]uint16{}}
	}
	f.probes[pid].path, f.probes[pid].file = path, id
	return f.probes[pid]
}

// removeSingleProcessProbes removes the probes of single processes from functions that are to be probed for all: their calls would be
// reported twice.
func (s *probes) removeSingleProcessProbes(id inode, wanted map[uint64]uint16) error {
	var errs []error
	for pid, p := range s.files[id].probes {
		rest := maps.Clone(p.functions)
		maps.DeleteFunc(rest, func(offset uint64, _ uint16) bool { _, too := wanted[offset]; return too })
		if pid != allProcesses && len(rest) < len(p.functions) {
			errs = append(errs, p.close(), s.addProbes(p, pid, rest))
		}
	}
	return errors.Join(errs...)
}

// addProbes probes functions of a file, given by offset, each where that costs least. A function that cannot be probed does
// not prevent the others.
func (s *probes) addProbes(p *fileProbes, pid int, functions map[uint64]uint16) error {
	if s.closed || len(functions) == 0 {
		return nil
	}
	if found, err := target.IdentifyFile(p.path); err != nil || found != p.file {
		return fmt.Errorf("%s was replaced: %w", p.path, kernel.ErrGone) // by an upgrade
	}
	var errs []error
	offsets := slices.Collect(maps.Keys(functions))
	entries := target.ProbePlaces(p.path, offsets)
	for len(offsets) > 0 {
		list := make([]kernel.Probe, len(offsets))
		for i := range offsets {
			list[i] = kernel.Probe{Function: functions[offsets[i]], Offset: entries[i]}
		}
		link, err := s.kernel.Attach(p.path, pid, list)
		if err == nil {
			p.links = append(p.links, link)
			for _, offset := range offsets {
				p.functions[offset] = functions[offset]
			}
			break
		}
		errs = append(errs, err)
		var failed *kernel.ProbeError
		if !errors.As(err, &failed) || !isUnprobeable(err) {
			break
		}
		i := slices.Index(entries, failed.Offset)
		p.functions[offsets[i]] = functions[offsets[i]]
		p.failed++
		offsets, entries = slices.Delete(offsets, i, i+1), slices.Delete(entries, i, i+1)
	}
	return errors.Join(errs...)
}

// errNotSupported is ENOTSUPP, a code that the kernel uses internally and returns here.
const errNotSupported = syscall.Errno(524)

// isUnprobeable reports whether the function itself is the reason: it lies outside of the file, or begins with an
// instruction that the kernel cannot execute out of line.
func isUnprobeable(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, errNotSupported) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EIO)
}

// forgetMappedFiles forgets what a process had mapped. Probes for this process alone stay: they belong to its main thread,
// whatever program that executes (uprobe_multi_link_filter in kernel/trace/bpf_trace.c of Linux).
func (s *probes) forgetMappedFiles(pid int) {
	if s.everywhere {
		s.dropProcess(pid)
	}
}

// renewProbes renews the probes of a process in which another thread than the main one executes a program. Calls made
// before they are back are missed.
func (s *probes) renewProbes(pid int) {
	if s.everywhere || s.mapped[pid] == nil {
		s.dropProcess(pid)
		return
	}
	for id := range s.mapped[pid].files {
		f := s.files[id]
		p := f.probes[pid]
		if p == nil {
			continue // the file was rewritten
		}
		functions := p.functions
		_ = p.close() // that thread is gone
		if s.addProbes(p, pid, functions) != nil {
			delete(f.probes, pid) // tried again when the process maps the file
		}
	}
}

// dropProcess forgets a process, and removes the probes that are for it alone.
func (s *probes) dropProcess(pid int) {
	m := s.mapped[pid]
	if m == nil {
		return
	}
	for id := range m.files {
		f := s.files[id]
		delete(f.users, pid)
		if p := f.probes[pid]; p != nil {
			_ = p.close() // the process is gone
			delete(f.probes, pid)
		}
		if len(f.probes) == 0 {
			delete(s.files, id)
		}
	}
	delete(s.mapped, pid)
}

// removeProbesOfUnmapped removes probes from files that no process has mapped for idleNS.
func (s *probes) removeProbesOfUnmapped(now uint64) {
	for id, f := range s.files {
		switch {
		case f.kept || len(f.users) > 0:
			f.idle = 0
		case f.idle == 0:
			f.idle = now
		case now >= f.idle+idleNS:
			for _, p := range f.probes {
				_ = p.close() // without users there is nothing left to report
			}
			delete(s.files, id)
		}
	}
}

func (p *fileProbes) close() error {
	var errs []error
	for _, link := range p.links {
		errs = append(errs, link.Close())
	}
	p.links, p.functions, p.failed = nil, map[uint64]uint16{}, 0
	return errors.Join(errs...)
}

// close removes all probes; none can be attached afterwards.
func (s *probes) close() error {
	var errs []error
	for _, f := range s.files {
		for _, p := range f.probes {
			errs = append(errs, p.close())
		}
	}
	clear(s.files)
	clear(s.mapped)
	s.closed = true
	return errors.Join(errs...)
}
