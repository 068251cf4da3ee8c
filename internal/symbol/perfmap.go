package symbol

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
)

// Bounds on memory and reading for one process.
const (
	generatedMax = 64 << 20 // bytes kept
	pieceBytes   = 80       // of them for a piece without its name, and for a line
	perfMapMax   = 1 << 30  // bytes
	perfLineMax  = 4096     // bytes
	readAtOnce   = 256 << 10
	overlapMost  = 64 // earlier pieces in which an address is looked up
)

// PerfMap names code that the runtime of a language generated: Java, Julia, node and others write such a file for perf. It
// has a line for each piece of code, "START SIZE NAME" with hexadecimal numbers (tools/perf/Documentation/jit-interface.txt
// in Linux), and grows while the program runs. A jitdump serves as well. Only one goroutine may use it.
type PerfMap struct {
	path     string
	since    time.Time // an older file belongs to an earlier process with this pid
	dump     *jitDump  // nil: not looked for
	read     int64     // bytes so far
	partial  []byte    // a line without its end
	pieces   []piece   // by start, then order, unless unsorted
	unsorted bool
	keep     *budget.Budget
	say      func(line string) // nil: said already
}

// piece is one piece of code. It replaces earlier ones at its addresses.
type piece struct {
	start, end uint64
	order      int
	name       string
	lines      []codeLine
}

// NewPerfMap returns a map that has read nothing of its file yet.
func NewPerfMap(path string) *PerfMap { return &PerfMap{path: path} }

// NewMapOfProcess returns the map of a process at the usual path, and looks for its jitdump, too. Where the process has ended, files
// that are older than this process are taken for those of an earlier one. The caller calls Close.
func NewMapOfProcess(pid int, o Options) *PerfMap {
	return &PerfMap{
		path: fmt.Sprintf("/tmp/perf-%d.map", pid), since: cmp.Or(processStartTime(pid), processStartTime(os.Getpid())), dump: newJitDump(pid), keep: o.Budget.NewPart(generatedMax), say: o.Say,
	}
}

// Close gives the map's memory back to the budget.
func (m *PerfMap) Close() {
	if m != nil {
		m.keep.ReleaseAll()
	}
}

// warnIfFull reports whether something did not fit, and says so once.
func (m *PerfMap) warnIfFull() bool {
	if m.keep.RefusedCount() == 0 {
		return false
	}
	if m.say != nil {
		m.say(m.path + ": the program generates more code than there is memory for names of, so some call sites are shown without (--memory-budget)")
		m.say = nil
	}
	return true
}

// processStartTime returns a time shortly before a process began (proc(5), /proc/PID/stat, field 22). The zero time: it has ended, or
// the kernel does not say.
func processStartTime(pid int) time.Time {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	var real, boot unix.Timespec
	if len(fields) < 20 || unix.ClockGettime(unix.CLOCK_REALTIME, &real) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return time.Time{}
	}
	ticks, _ := strconv.ParseInt(string(fields[19]), 10, 64)
	const tick, doubt = 1e9 / 100, 1e9 // ns: a tick of USER_HZ; the error of reading two clocks one after the other
	return time.Unix(0, real.Nano()-boot.Nano()+ticks*tick-doubt)
}

// FrameAt returns the function of a return address. It is empty if the file does not exist yet or does not name the function.
func (m *PerfMap) FrameAt(address uint64) Frame {
	address-- // the call is the instruction before
	p := m.pieceAt(address)
	if p == nil {
		m.readAdded()
		p = m.pieceAt(address)
	}
	if p == nil {
		return Frame{}
	}
	f := parseGenerated(p.name)
	if file, line := p.lineAt(address); file != "" {
		f.File, f.Line = file, line
	}
	return f
}

// generated matches names with a source: of V8 ("JS:*step /src/a.js:42:9"), and of CPython ("py::step:/src/a.py").
var generated = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`^(?:JS|LazyCompile|Function|Eval|Script):[*~^+']?(?P<function>\S*) (?P<file>.+?):(?P<line>\d+)(?::\d+)?$`),
		regexp.MustCompile(`^py::(?P<function>[^:]+):(?P<file>.+?)(?P<line>)$`),
	}
})

func parseGenerated(name string) Frame {
	for _, g := range generated() {
		if parts := g.FindStringSubmatch(name); parts != nil {
			line, _ := strconv.Atoi(parts[g.SubexpIndex("line")]) // 0: unknown
			return Frame{Function: parts[g.SubexpIndex("function")], File: parts[g.SubexpIndex("file")], Line: line}
		}
	}
	return Frame{Function: name}
}

// pieceAt returns the latest piece at an address, nil if there is none.
func (m *PerfMap) pieceAt(address uint64) *piece {
	m.sortPieces()
	at, _ := slices.BinarySearchFunc(m.pieces, address, func(p piece, address uint64) int {
		if p.start <= address {
			return -1
		}
		return 1
	})
	var found *piece
	for i := at - 1; i >= max(0, at-overlapMost); i-- {
		if p := &m.pieces[i]; address < p.end && (found == nil || p.order > found.order) {
			found = p
		}
	}
	return found
}

// readAdded reads what was added to the files.
func (m *PerfMap) readAdded() {
	if m.dump != nil {
		m.dump.readAdded(m)
	}
	file := openTrustedFile(m.path)
	if file == nil {
		return
	}
	defer file.Close() //nolint:errcheck // it was only read
	if info, err := file.Stat(); err != nil || info.ModTime().Before(m.since) {
		return
	}
	in := io.NewSectionReader(file, m.read, perfMapMax-m.read)
	for b := make([]byte, readAtOnce); !m.warnIfFull(); {
		n, err := in.Read(b)
		m.read += int64(n)
		m.parseNextBytes(b[:n])
		if err != nil || n == 0 {
			return
		}
	}
}

// openTrustedFile opens a regular file of our user or of root. It returns nil for others, which any user can create in /tmp.
func openTrustedFile(path string) *os.File {
	file, err := untrusted.OpenRegular(path, unix.O_NOFOLLOW)
	if err != nil {
		return nil
	}
	if info, err := file.Stat(); err != nil || !isOwnedByUsOrRoot(info) {
		file.Close() //nolint:errcheck,gosec // nothing was read
		return nil
	}
	return file
}

func isOwnedByUsOrRoot(info os.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && (owner.Uid == 0 || int(owner.Uid) == os.Geteuid())
}

// parseNextBytes takes the next bytes of the file.
func (m *PerfMap) parseNextBytes(b []byte) {
	b = append(m.partial, b...)
	for {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			m.partial = bytes.Clone(line[:min(len(line), perfLineMax)])
			break
		}
		if p, ok := parsePiece(line); ok {
			m.addPiece(p)
		}
		b = rest
	}
}

// addPiece adds a piece, unless it is empty or has no room.
func (m *PerfMap) addPiece(p piece) {
	if p.end > p.start && p.name != "" && m.keep.Charge(int64(pieceBytes+len(p.name))) {
		p.order = len(m.pieces)
		m.pieces = append(m.pieces, p)
		m.unsorted = true
	}
}

func (m *PerfMap) sortPieces() {
	if m.unsorted {
		m.unsorted = false
		slices.SortFunc(m.pieces, func(a, b piece) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.order, b.order)) })
	}
}

// parsePiece reads a line. False: it is no piece of code.
func parsePiece(line []byte) (piece, bool) {
	start, rest, _ := bytes.Cut(line, []byte(" "))
	size, name, _ := bytes.Cut(rest, []byte(" "))
	from, err := strconv.ParseUint(string(bytes.TrimPrefix(start, []byte("0x"))), 16, 64)
	n, bad := strconv.ParseUint(string(bytes.TrimPrefix(size, []byte("0x"))), 16, 64)
	if err != nil || bad != nil || n == 0 || from+n < from || len(name) == 0 {
		return piece{}, false
	}
	return piece{start: from, end: from + n, name: string(name[:min(len(name), perfLineMax)])}, true
}
