package symbol

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
)

// The records of a jitdump that name code (tools/perf/Documentation/jitdump-specification.txt in Linux), and bounds on
// reading it.
const (
	jitMagic   = 0x4a695444 // "JiTD", in the byte order of the machine that wrote it
	jitLoad    = 0
	jitMove    = 1
	jitLines   = 2
	jitPrefix  = 16
	jitHeader  = 40
	jitBodyMax = 64 << 10 // bytes that are read of a record; code follows the name
	jitTries   = 16       // most looks for the file, since most programs write none
)

// jitDump is the file in which node --perf-prof, agents of Java and others describe the code that they generate. They map it, so
// that tools find it among their mappings.
type jitDump struct {
	pid    int
	folder string // working folder of the process at the start
	path   string // "": not found yet
	tries  int
	read   int64 // bytes read so far, in whole records
	broken bool
	lines  map[uint64][]codeLine // of code that is not loaded yet, by address
	names  map[uint64]string     // of code that may move, by address
}

// codeLine says that the code from an address on belongs to a line.
type codeLine struct {
	address uint64
	file    string
	line    int
}

// newJitDump notes the working folder of the process, where node puts its file.
func newJitDump(pid int) *jitDump {
	folder, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)) // "": it has ended
	return &jitDump{pid: pid, folder: folder}
}

// findDumpFile looks for the file among the mappings of the process, or in its folder if it has ended.
func (d *jitDump) findDumpFile() {
	if d.path != "" || d.tries >= jitTries {
		return
	}
	d.tries++
	name := fmt.Sprintf("/jit-%d.dump", d.pid)
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", d.pid))
	if err != nil || len(maps) == 0 {
		if info, err := untrusted.StatRegular(d.folder + name); d.folder != "" && err == nil && info.Mode().IsRegular() {
			d.path = d.folder + name
		}
		return
	}
	for line := range strings.Lines(string(maps)) {
		line = strings.TrimSuffix(line, "\n")
		if at := strings.IndexByte(line, '/'); at >= 0 && strings.HasSuffix(line, name) {
			d.path = line[at:]
			return
		}
	}
}

// readAdded reads what was added to the file. An incomplete record is read later.
func (d *jitDump) readAdded(m *PerfMap) {
	d.findDumpFile()
	if d.path == "" || d.broken {
		return
	}
	file := openTrustedFile(d.path)
	if file == nil {
		return
	}
	defer file.Close() //nolint:errcheck // it was only read
	d.readRecords(io.NewSectionReader(file, d.read, perfMapMax-d.read), m)
}

func (d *jitDump) readRecords(src io.Reader, m *PerfMap) {
	in := bufio.NewReader(src)
	if d.read == 0 && !d.readHeader(in) {
		return
	}
	for !m.warnIfFull() {
		prefix, err := in.Peek(jitPrefix)
		if err != nil {
			return
		}
		id, size := binary.LittleEndian.Uint32(prefix), int64(binary.LittleEndian.Uint32(prefix[4:]))
		if size < jitPrefix {
			d.broken = true
			return
		}
		record := make([]byte, min(size, jitBodyMax))
		if _, err := io.ReadFull(in, record); err != nil {
			return
		}
		if n, err := io.CopyN(io.Discard, in, size-int64(len(record))); err != nil || n < size-int64(len(record)) {
			return
		}
		d.read += size
		d.addCodeOfRecord(id, record[jitPrefix:], m)
	}
}

// readHeader reads the head of the file. False: it is incomplete, or the file is no jitdump.
func (d *jitDump) readHeader(in *bufio.Reader) bool {
	head, err := in.Peek(jitHeader)
	if err != nil {
		return false
	}
	size := int64(binary.LittleEndian.Uint32(head[8:]))
	if binary.LittleEndian.Uint32(head) != jitMagic || size < jitHeader || size > jitBodyMax {
		d.broken = true
		return false
	}
	if _, err := in.Discard(int(size)); err != nil {
		return false
	}
	d.read = size
	return true
}

// addCodeOfRecord takes a record without its prefix. It ignores records that name no code.
func (d *jitDump) addCodeOfRecord(id uint32, b []byte, m *PerfMap) {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	switch {
	case id == jitLoad && len(b) > 40:
		text, _, _ := bytes.Cut(b[40:], []byte{0})
		name, start := string(text[:min(len(text), perfLineMax)]), word(16)
		m.addPiece(piece{start: start, end: start + word(24), name: name, lines: d.lines[start]})
		delete(d.lines, start)
		d.keepNameOfMovable(m, start, name)
	case id == jitMove && len(b) >= 48:
		if name := d.names[word(16)]; name != "" {
			m.addPiece(piece{start: word(24), end: word(24) + word(32), name: name})
			d.keepNameOfMovable(m, word(24), name)
		}
	case id == jitLines && len(b) >= 16:
		lines := parseLines(b[16:])
		if !m.keep.Charge(pieceBytes + linesBytes(lines)) {
			return
		}
		if d.lines == nil {
			d.lines = map[uint64][]codeLine{}
		}
		d.lines[word(0)] = lines
	}
}

// keepNameOfMovable keeps the name of code that may move.
func (d *jitDump) keepNameOfMovable(m *PerfMap, start uint64, name string) {
	if d.names == nil {
		d.names = map[uint64]string{}
	}
	if m.keep.Charge(pieceBytes) {
		d.names[start] = name
	}
}

// linesBytes returns the memory that lines take. Lines of one file share its name.
func linesBytes(lines []codeLine) int64 {
	bytes := int64(0)
	for i := range lines {
		bytes += pieceBytes
		if i == 0 || lines[i].file != lines[i-1].file {
			bytes += int64(len(lines[i].file))
		}
	}
	return bytes
}

// parseLines reads entries: address, line, discriminator and file; "\xff" stands for the file of the previous entry.
func parseLines(b []byte) (lines []codeLine) {
	for len(b) > 16 {
		l := codeLine{address: binary.LittleEndian.Uint64(b), line: int(int32(binary.LittleEndian.Uint32(b[8:])))} //nolint:gosec // it is signed in the file
		file, rest, whole := bytes.Cut(b[16:], []byte{0})
		if !whole {
			break
		}
		l.file = string(file)
		if l.file == "\xff" && len(lines) > 0 {
			l.file = lines[len(lines)-1].file
		}
		lines = append(lines, l)
		b = rest
	}
	return lines
}

// lineAt returns file and line of an address in a piece of code; empty if unknown.
func (p *piece) lineAt(address uint64) (file string, line int) {
	var best *codeLine
	for i := range p.lines {
		if l := &p.lines[i]; l.address <= address && (best == nil || l.address >= best.address) {
			best = l
		}
	}
	if best == nil || best.line <= 0 {
		return "", 0
	}
	return best.file, best.line
}
