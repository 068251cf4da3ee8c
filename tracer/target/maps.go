package target

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bounds on /proc/PID/maps: programs with more mappings would be slow to look at again and again, and the kernel's own
// bound is 65530 unless somebody raised it (vm.max_map_count).
const (
	mappingsMax = 1 << 20
	lineMax     = 4*4096 + 128 // a path of 4095 bytes, all of them escaped
)

// Maps returns what lies in the process's memory, by address. It may be empty: a process that is ending has no memory
// any more. The kernel tells page by page, so that what changes meanwhile can be there in part. The error wraps ErrGone
// or ErrDenied where that is the reason.
func (p *Process) Maps() ([]Mapping, error) {
	list, err := p.maps()
	if len(list) > 0 {
		p.remember(list)
	}
	return list, err
}

// remember keeps the files of code for when the process is gone.
func (p *Process) remember(list []Mapping) {
	var files []Mapping
	for i := range list {
		if list[i].Exec && isFile(&list[i]) {
			files = append(files, list[i])
		}
	}
	p.files.Store(&files)
}

func (p *Process) maps() ([]Mapping, error) {
	if p.parent != nil {
		return nil, gone(p.PID) // its id may be another's by now
	}
	file, err := os.Open(p.fs.of(p.PID, "maps"))
	if err != nil {
		return nil, p.denied(err)
	}
	defer file.Close() //nolint:errcheck // only read
	list, err := parseMaps(file)
	if vanished(err) {
		return nil, gone(p.PID)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.fs.of(p.PID, "maps"), err)
	}
	return list, nil
}

func parseMaps(r io.Reader) ([]Mapping, error) {
	var list []Mapping
	last := "" // files come in several lines: their path is kept once
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, lineMax), lineMax)
	for lines.Scan() {
		m, path, ok := parseMapping(lines.Bytes())
		switch {
		case !ok:
			return nil, fmt.Errorf("line %d is none of a map: %.80q", len(list)+1, lines.Bytes())
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

// parseMapping reads one line, as fs/proc/task_mmu.c writes it: start-end permissions offset major:minor inode path.
// The path is given apart, and lies in the line.
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
	// Of all bytes only the one that would end the line is escaped.
	return m, bytes.ReplaceAll(path, []byte(`\012`), []byte("\n")), true
}

// deleted stands behind the path of a file that has no name any more. The name of a file can end like that, too: so it is
// tried as well.
const deleted = " (deleted)"

// Preloaded reports whether gpumemtop's own library is in a process: what is seen of its calls are then those to the
// driver, below the pool.
func Preloaded(maps []Mapping) bool {
	return slices.ContainsFunc(maps, func(m Mapping) bool { return m.Inode != 0 && filepath.Base(m.Path) == wire.ShimName })
}

// isFile reports whether a path is one of a file, not of memory that only has a name.
func isFile(m *Mapping) bool { return m.Inode != 0 && strings.HasPrefix(m.Path, "/") }
