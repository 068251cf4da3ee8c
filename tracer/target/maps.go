package target

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds on /proc/PID/maps: more mappings would be too slow to read again and again. The kernel's own default limit is
// 65530 (vm.max_map_count).
const (
	mappingsMax = 1 << 20
	lineMax     = 4*4096 + 128 // a path of 4095 bytes, all of them escaped
)

// ReadMappings returns the mappings of the process, by address. The kernel writes them page by page, so that a concurrent change
// may show in part. The error wraps ErrGone, as where the process is ending, or ErrDenied where that is the reason.
func (p *Process) ReadMappings() ([]Mapping, error) {
	list, err := p.readMappings()
	if len(list) > 0 {
		p.rememberCodeFiles(list)
	}
	return list, err
}

// rememberCodeFiles keeps the files with code for OpenablePath.
func (p *Process) rememberCodeFiles(list []Mapping) {
	var files []Mapping
	for i := range list {
		if list[i].Exec && isMappingOfFile(&list[i]) {
			files = append(files, list[i])
		}
	}
	p.files.Store(&files)
}

func (p *Process) readMappings() ([]Mapping, error) {
	if p.parent != nil {
		return nil, goneError(p.PID) // another process may have its pid by now
	}
	file, err := os.Open(p.fs.pathOfFile(p.PID, "maps"))
	if err != nil {
		return nil, p.deniedError(err)
	}
	defer file.Close() //nolint:errcheck // only read
	list, err := parseMaps(file)
	if meansProcessGone(err) || err == nil && !isReadable(file) {
		return nil, goneError(p.PID)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.fs.pathOfFile(p.PID, "maps"), err)
	}
	return list, nil
}

// isReadable reports whether a file of mappings still has any: once the process has given up its memory, as it does while it
// ends, it reads as empty, and what was read before may lack the rest.
func isReadable(file *os.File) bool {
	n, _ := file.ReadAt(make([]byte, 1), 0)
	return n > 0
}

func parseMaps(r io.Reader) ([]Mapping, error) {
	var list []Mapping
	last := "" // a file has several lines: keep its path once
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, lineMax), lineMax)
	for lines.Scan() {
		m, path, ok := parseMapping(lines.Bytes())
		switch {
		case !ok:
			return nil, fmt.Errorf("line %d is not a mapping: %.80q", len(list)+1, lines.Bytes())
		case len(list) == mappingsMax:
			return nil, fmt.Errorf("more than %d mappings", mappingsMax)
		case string(path) != last:
			last = string(path)
		}
		m.Path = last
		list = append(list, m)
	}
	return list, lines.Err()
}

// parseMapping reads a line as fs/proc/task_mmu.c writes it: start-end permissions offset major:minor inode path. It
// returns the path separately, as part of the line.
func parseMapping(line []byte) (m Mapping, path []byte, ok bool) {
	var fields [5][]byte
	rest := line
	for i := range fields {
		fields[i], rest, _ = bytes.Cut(bytes.TrimLeft(rest, " "), []byte(" "))
	}
	start, end, dashed := bytes.Cut(fields[0], []byte("-"))
	major, minor, coloned := bytes.Cut(fields[3], []byte(":"))
	ok = dashed && coloned && len(fields[1]) >= 4
	number := func(text []byte, base, bits int) uint64 {
		n, err := strconv.ParseUint(string(text), base, bits)
		ok = ok && err == nil
		return n
	}
	m.Start, m.End, m.Offset = number(start, 16, 64), number(end, 16, 64), number(fields[2], 16, 64)
	m.Device = unix.Mkdev(uint32(number(major, 16, 32)), uint32(number(minor, 16, 32)))
	m.Inode = number(fields[4], 10, 64)
	if !ok || m.End < m.Start {
		return Mapping{}, nil, false
	}
	m.Exec = fields[1][2] == 'x'
	path = bytes.TrimLeft(rest, " ")
	if m.Inode != 0 {
		path = bytes.TrimSuffix(path, []byte(deleted))
	}
	// The kernel escapes only the byte that would end the line.
	return m, bytes.ReplaceAll(path, []byte(`\012`), []byte("\n")), true
}

// deleted follows the path of a file without a name. A file name can end like that, too, so that is tried as well.
const deleted = " (deleted)"

// isMappingOfFile reports whether a path is that of a file, not of memory that only has a name.
func isMappingOfFile(m *Mapping) bool { return m.Inode != 0 && strings.HasPrefix(m.Path, "/") }
