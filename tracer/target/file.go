package target

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
)

// OpenablePath returns a path under which we can open a mapped file, given by the path that the process sees, or "". See
// [Process.MappingPath]. For a process that is gone or has executed another program, it knows the files of code that the latest
// call of Maps returned.
func (p *Process) OpenablePath(path string) string {
	if p.parent != nil {
		return p.parent.OpenablePath(path)
	}
	maps, _ := p.readMappings()
	if files := p.files.Load(); files != nil {
		maps = append(maps, *files...)
	}
	for i := range maps {
		if m := &maps[i]; m.Path == path && isMappingOfFile(m) {
			open, _, err := p.openableFile(m)
			if err != nil {
				return ""
			}
			return open
		}
	}
	return ""
}

// MappingPath returns a path under which we can open the file of a mapping: the path itself, the same path below the root of the
// process (containers), or the kernel's link to the mapped file (if it was deleted or replaced). The path is valid while
// the process exists.
//
// File always checks that the path leads to the mapped inode and device. On two kinds of file system, stat(2) returns
// another device than /proc/PID/maps: on btrfs one per subvolume, on overlayfs one per mount, where maps shows the file
// below. There the inode must match, and the first bytes of the file must match the memory of the process. The error
// wraps ErrDenied or ErrGone where that is the reason.
func (p *Process) MappingPath(m Mapping) (string, error) {
	open, _, err := p.openableFile(&m)
	return open, err
}

func (p *Process) openableFile(m *Mapping) (string, *unix.Stat_t, error) {
	if !isMappingOfFile(m) {
		return "", nil, fmt.Errorf("no file is mapped at %#x", m.Start)
	}
	candidates := []string{p.fs.pathOfFile(p.PID, "root") + m.Path, m.Path}
	if p.sameMounts {
		candidates[0], candidates[1] = candidates[1], candidates[0]
	}
	for _, path := range append(candidates, candidates[0]+deleted) {
		if info := p.statusIfSame(m, path); info != nil {
			return path, info, nil
		}
	}
	link := p.fs.pathOfFile(p.PID, "map_files") + "/" + strconv.FormatUint(m.Start, 16) + "-" + strconv.FormatUint(m.End, 16)
	var info unix.Stat_t
	switch err := unix.Stat(link, &info); {
	case err == nil && info.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", nil, fmt.Errorf("%s is not a regular file", m.Path)
	case err == nil && info.Ino == m.Inode:
		return link, &info, nil
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "", nil, fmt.Errorf("%s was deleted or replaced after process %d had loaded it, or is not accessible: %w: CAP_CHECKPOINT_RESTORE opens loaded files (with CAP_DAC_READ_SEARCH, also other users'), or restart the program",
			m.Path, p.PID, ErrDenied)
	}
	if !p.StillExists() {
		return "", nil, goneError(p.PID)
	}
	return "", nil, fmt.Errorf("%s is not the file that process %d has loaded, which cannot be opened: restart the program", m.Path, p.PID)
}

// statusIfSame returns the status of the file at a path if it is the file of a mapping, otherwise nil.
func (p *Process) statusIfSame(m *Mapping, path string) *unix.Stat_t {
	var info unix.Stat_t
	if unix.Stat(path, &info) != nil || info.Ino != m.Inode || info.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	if info.Dev == m.Device || p.hasSameContent(m, path) {
		return &info
	}
	return nil
}

// hasSameContent reports whether a file on another device than the mapping's is the same nevertheless. It compares the beginning,
// which has the layout, the place of the symbol tables and mostly the build id. If memory must not be read (/proc/PID/mem
// takes more rights than /proc/PID/maps), it accepts a file system that is known to report other devices.
func (p *Process) hasSameContent(m *Mapping, path string) bool {
	const enough = 1024 // no code is there, where breakpoints would differ
	if begin := p.firstMapping(m); begin != nil {
		loaded, err := readFileAt(os.Open, p.fs.pathOfFile(p.PID, "mem"), int64(begin.Start), enough)
		if err == nil {
			stored, err := readFileAt(openFile, path, 0, enough)
			return err == nil && bytes.Equal(loaded, stored)
		}
	}
	switch fileSystemType(path) {
	case unix.OVERLAYFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
		return true
	}
	return false
}

// firstMapping returns the mapping of a file's first bytes, given any of its mappings, or nil.
func (p *Process) firstMapping(m *Mapping) *Mapping {
	if m.Offset == 0 {
		return m
	}
	list, err := p.ReadMappings()
	if err != nil {
		return nil
	}
	for i := range list {
		if l := &list[i]; l.Offset == 0 && l.Device == m.Device && l.Inode == m.Inode && l.Path == m.Path {
			return l
		}
	}
	return nil
}

func fileSystemType(path string) int64 {
	var info unix.Statfs_t
	if unix.Statfs(path, &info) != nil {
		return 0
	}
	return info.Type
}

func openFile(path string) (*os.File, error) { return untrusted.OpenRegular(path, 0) }

func readFileAt(open func(path string) (*os.File, error), path string, offset int64, size int) ([]byte, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	data := make([]byte, size)
	_, err = file.ReadAt(data, offset)
	return data, err
}

// Identity identifies a file as the kernel's breakpoints do: files with the same Device and Inode share one copy of the
// code. Both are those of stat(2), except for Device on overlayfs.
type Identity struct {
	Device, Inode uint64
	// Written changes when the file is rewritten, or its inode reused. Functions may then lie elsewhere, and a breakpoint
	// at an old offset would damage the new code.
	Written uint64
}

// IdentifyFile returns the identity of the file that a path leads to now.
func IdentifyFile(path string) (Identity, error) {
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		return Identity{}, err
	}
	return identifyOpenFile(path, &info), nil
}

// identifyOpenFile returns the identity of an open file. Each container sees the files of its image on an overlayfs with its own
// device, but breakpoints go into the one file below. Probing it once per container would report each call several times.
// No system call identifies that file, but overlayfs passes on its inode number, size and times.
func identifyOpenFile(path string, info *unix.Stat_t) Identity {
	id := Identity{Device: info.Dev, Inode: info.Ino, Written: hashOfNumbers(info.Size, info.Mtim.Sec, info.Mtim.Nsec)}
	if fileSystemType(path) == unix.OVERLAYFS_SUPER_MAGIC {
		// stat never returns so large a device.
		id.Device = hashOfNumbers(info.Size, info.Mtim.Sec, info.Mtim.Nsec, info.Ctim.Sec, info.Ctim.Nsec) | 1<<63
	}
	return id
}

// hashOfNumbers hashes numbers into one: FNV-1a, by words.
func hashOfNumbers(parts ...int64) uint64 {
	const prime = 1099511628211
	mixed := uint64(14695981039346656037)
	for _, part := range parts {
		mixed = (mixed ^ uint64(part)) * prime
	}
	return mixed
}
