package session

import (
	"debug/elf"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// Snapshots with 100,000 call sites are large, as is what naming these takes once, and what is known of as many buffers. With many
// of them garbage gets less memory, and none once hardly anything has come for a while.
const (
	many       = 20_000
	fewGarbage = 20 // percent of what is in use
	calmNS     = 2_000_000_000
	calmEvents = 1000
)

// garbage limits the memory of what is not used any more.
type garbage struct {
	limited bool
	events  uint64 // at that time
	since   uint64 // ns; 0: nothing has come since the last was given back
}

// limit is called now and then, with how many call sites or live buffers there are and how many events came so far.
func (g *garbage) limit(things, events, now uint64) {
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
			dropCode()
		}()
	}
}

// dropCode gives back the pages of this program's code: Linux maps whole regions of the file around what is used at the
// start. What is needed comes again. A debugger's breakpoints lie in such pages, so under one all stay.
func dropCode() {
	start, size := ownCode()
	status, _ := os.ReadFile("/proc/self/status")
	if size > 0 && strings.Contains(string(status), "TracerPid:\t0\n") {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, size, unix.MADV_DONTNEED)
	}
}

// ownCode returns where the code of this program lies, 0 when its file does not say so.
func ownCode() (start, size uintptr) {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return 0, 0
	}
	defer f.Close() //nolint:errcheck // it was only read
	page := uint64(os.Getpagesize())
	for _, p := range f.Progs {
		if f.Type == elf.ET_EXEC && p.Type == elf.PT_LOAD && p.Flags == elf.PF_R|elf.PF_X {
			from := p.Vaddr &^ (page - 1)
			return uintptr(from), uintptr(p.Vaddr + p.Memsz - from)
		}
	}
	return 0, 0
}
