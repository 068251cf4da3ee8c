package console

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestGarbageGoesWhenItIsCalm: with many call sites or buffers, memory that is not used goes back once no events have come for
// a while, but not before, and not again.
func TestGarbageGoesWhenItIsCalm(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // nothing else frees
	g := Memory{first: 1}
	waste := func() { _ = make([]byte, 64<<20) }
	released := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapReleased
	}
	debug.FreeOSMemory()
	waste()
	before := released()
	if g.AdjustMemoryLimit(many-1, 1e6, 1); g.limited {
		t.Error("few are many")
	}
	g.limited = true
	g.AdjustMemoryLimit(many, 2e6, 1)
	g.AdjustMemoryLimit(many, 2e6+calmEvents, calmNS)
	if g.since == 0 {
		t.Fatal("it was given back while events came")
	}
	g.AdjustMemoryLimit(0, 2e6+calmEvents, calmNS+2) // all were released
	for end := time.Now().Add(time.Minute); released() < before+60<<20; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d MiB given back, want 64", (released()-before)>>20)
		}
	}
	if g.AdjustMemoryLimit(0, 2e6+calmEvents, 3*calmNS); g.since != 0 {
		t.Error("it is given back again, though nothing came")
	}
}

// TestProgramsFileIsGivenBack: what is not needed goes, and what is comes again.
func TestProgramsFileIsGivenBack(t *testing.T) {
	size, before := 0, 0
	// The kernel takes pages back itself when memory is short, as beside a compiler: then they are read in again.
	for end := time.Now().Add(time.Minute); before <= size>>10*9/10; before = fileResident(t) {
		if time.Now().After(end) {
			t.Fatalf("only %d KB of the file's %d are in memory", before, size>>10)
		}
		size = 0
		for _, s := range programSegments() {
			if _, _, err := unix.Syscall(unix.SYS_MADVISE, s.start, s.size, unix.MADV_POPULATE_READ); err != 0 {
				t.Fatal(err)
			}
			size += int(s.size)
		}
	}
	releaseMappedProgram()
	if after := fileResident(t); after >= before {
		t.Errorf("of %d KB of the file %d were in memory, and %d still are", size>>10, before, after)
	}
}

// TestStartIsOverOnce: after two seconds, whatever comes.
func TestStartIsOverOnce(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	var g Memory
	g.AdjustMemoryLimit(0, 0, 1)
	if debug.SetGCPercent(someGarbage) != someGarbage {
		t.Error("garbage may take as much as without limits")
	}
	if g.AdjustMemoryLimit(0, 0, startNS); g.started {
		t.Error("the start is over at once")
	}
	if g.AdjustMemoryLimit(0, 0, startNS+2); !g.started {
		t.Error("the start is not over after its time")
	}
}

// fileResident returns the KB of this program's file that are in memory to be read.
func fileResident(t *testing.T) (kb int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	ours := false
	for line := range strings.Lines(string(maps)) {
		switch fields := strings.Fields(line); {
		case strings.Contains(fields[0], "-"):
			ours = fields[1][1] == '-' && strings.HasSuffix(strings.TrimSpace(line), exe)
		case ours && fields[0] == "Rss:":
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			kb += n
		}
	}
	return kb
}
