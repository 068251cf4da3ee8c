package console

import (
	"debug/elf"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// Snapshots with 100,000 call sites are large; so are the symbol tables, and the state of 100,000 buffers. With many of them
// garbage gets less memory, and none once hardly any event has come for a while.
const (
	many        = 20_000
	someGarbage = 50 // percent of what is in use; Go's own 100 would take 2 MiB more for every program
	fewGarbage  = 20 // with many
	calmNS      = 2_000_000_000
	calmEvents  = 1000
	startNS     = 2_000_000_000 // from the first call on: what only the start needs has been used
)

// Memory limits what gpumemtop takes while it watches: the garbage of the whole process, and the pages of its file.
type Memory struct {
	limited bool
	events  uint64 // at that time
	since   uint64 // ns; 0: nothing has come since the last was given back
	first   uint64 // ns, when Limit was first called
	started bool   // the pages of the start have been given back
}

// AdjustMemoryLimit is called now and then, with how many call sites or live buffers there are and how many events came so far.
func (g *Memory) AdjustMemoryLimit(things, events, now uint64) {
	if g.first == 0 {
		g.first = now
		debug.SetGCPercent(someGarbage)
	}
	if !g.started && now > g.first+startNS {
		g.started = true
		go releaseMappedProgram()
	}
	if things < many && !g.limited {
		return
	}
	if !g.limited {
		g.limited = true
		debug.SetGCPercent(fewGarbage)
	}
	switch {
	case events > g.events+calmEvents:
		g.events, g.since = events, now
	case g.since != 0 && now > g.since+calmNS:
		g.since = 0
		go func() { // it takes a tenth of a second
			debug.FreeOSMemory()
			releaseMappedProgram()
		}()
	}
}

// releaseMappedProgram gives back what is mapped of this program's code and constants: Linux maps whole regions of the file around what
// is used. What is needed comes again. Breakpoints are written into such pages, so under a debugger we keep them all.
func releaseMappedProgram() {
	status, _ := os.ReadFile("/proc/self/status")
	if !strings.Contains(string(status), "TracerPid:\t0\n") {
		return
	}
	for _, s := range programSegments() {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.start, s.size, unix.MADV_DONTNEED)
	}
}

// segment is a mapped part of this program's file that is only read.
type segment struct{ start, size uintptr }

// programSegments returns none when the file does not say where they are.
func programSegments() (segments []segment) {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	page := uint64(os.Getpagesize())
	for _, p := range f.Progs {
		if f.Type == elf.ET_EXEC && p.Type == elf.PT_LOAD && p.Flags&elf.PF_W == 0 {
			from := p.Vaddr &^ (page - 1)
			segments = append(segments, segment{uintptr(from), uintptr(p.Vaddr + p.Memsz - from)})
		}
	}
	return segments
}
