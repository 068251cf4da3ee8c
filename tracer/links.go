package tracer

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// place is a file, and the process in which it is probed: 0 for all that map it.
type place struct {
	device, inode uint64
	pid           int
}

// links are the probes that are there.
type links struct {
	kernel     *kernel.Kernel
	everywhere bool // into files, for processes that come later; else into the processes that were named alone
	places     map[place]*probed
	numbers    map[string]uint16 // of functions
}

// probed is a file in which functions are probed.
type probed struct {
	path  string
	links []*kernel.Link
	there map[uint64]uint16 // functions by their offsets
}

func newLinks(k *kernel.Kernel, everywhere bool) *links {
	l := &links{kernel: k, everywhere: everywhere, places: map[place]*probed{}, numbers: map[string]uint16{}}
	for i := range calls.Functions {
		l.numbers[calls.Functions[i].Name] = uint16(i)
	}
	l.numbers[target.LinkerHook] = uint16(len(calls.Functions))
	return l
}

// probe puts probes into what of a library has none yet, and returns how many functions of it have one then.
func (l *links) probe(library *target.Library, pid int) (int, error) {
	if l.everywhere {
		pid = 0
	}
	at := place{library.Device, library.Inode, pid}
	file := l.places[at]
	if file == nil {
		file = &probed{path: library.Open, there: map[uint64]uint16{}}
	}
	wanted := map[uint64]uint16{}
	for name, offset := range library.Functions {
		if _, there := file.there[offset]; !there {
			wanted[offset] = l.numbers[name]
		}
	}
	if len(wanted) == 0 {
		return len(file.there), nil
	}
	link, err := l.attach(library.Open, pid, wanted)
	if err != nil {
		return len(file.there), err
	}
	file.links = append(file.links, link)
	maps.Copy(file.there, wanted)
	l.places[at] = file
	return len(file.there), nil
}

// drop takes the probes out of one process.
func (l *links) drop(pid int) {
	for at, file := range l.places {
		if at.pid == pid {
			_ = file.close() // the process is gone
			delete(l.places, at)
		}
	}
}

// renew probes a process anew that executes another program: probes of a single process end with its memory.
func (l *links) renew(pid int) {
	if l.everywhere {
		return
	}
	for at, file := range l.places {
		if at.pid != pid {
			continue
		}
		_ = file.close()
		link, err := l.attach(file.path, pid, file.there)
		if err != nil {
			delete(l.places, at) // it is tried again when the process maps the file
			continue
		}
		file.links = []*kernel.Link{link}
	}
}

// attach probes functions by their offsets in a file, each where that costs least.
func (l *links) attach(path string, pid int, functions map[uint64]uint16) (*kernel.Link, error) {
	offsets := slices.Collect(maps.Keys(functions))
	probes := make([]kernel.Probe, len(offsets))
	for i, entry := range target.Entries(path, offsets) {
		probes[i] = kernel.Probe{Function: functions[offsets[i]], Offset: entry}
	}
	return l.kernel.Attach(path, pid, probes)
}

func (f *probed) close() error {
	var errs []error
	for _, link := range f.links {
		errs = append(errs, link.Close())
	}
	f.links = nil
	return errors.Join(errs...)
}

func (l *links) close() error {
	var errs []error
	for at, file := range l.places {
		errs = append(errs, file.close())
		delete(l.places, at)
	}
	return errors.Join(errs...)
}

// look probes the libraries that a process has mapped, and returns how many there are.
func (t *Tracer) look(p *target.Process) int {
	mappings, err := p.Maps()
	if err != nil {
		return 0
	}
	if target.Preloaded(mappings) {
		t.warn(fmt.Sprintf("%s (pid %d) runs under gpumemtop already: next to nothing is seen from here, for its calls go past the ICD loader", nameOf(p), p.PID))
	}
	if linker, ok := t.catalog.Linker(p, mappings); ok {
		t.probe(&linker, p.PID)
	}
	n := 0
	libraries := t.catalog.Libraries(p, mappings)
	for i := range libraries {
		if t.probe(&libraries[i], p.PID) {
			n++
		}
		t.ask(&libraries[i])
	}
	return n
}

// probe probes a library and says once what stands in the way.
func (t *Tracer) probe(library *target.Library, pid int) bool {
	err := library.Err
	n := 0
	if err == nil {
		n, err = t.links.probe(library, pid)
	}
	if err != nil {
		t.warn(fmt.Sprintf("calls into %s are not seen: %v", library.Path, err))
	}
	return n > 0
}

// toldMax bounds what is remembered of what the user was told.
const toldMax = 1024

// warn tells the user something once.
func (t *Tracer) warn(text string) {
	if t.told[text] || len(t.told) == toldMax {
		return
	}
	t.told[text] = true
	t.options.Warn(text)
}
