package target

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// OpenPath returns a path by which we can open the file that a process has mapped and sees under a path, "" when there is
// none or we lack the rights. See [Process.File]. Of a process that is gone, or executes another program, it knows the
// files of code that it had mapped when Maps was called last.
func (p *Process) OpenPath(path string) string {
	if p.parent != nil {
		return p.parent.OpenPath(path)
	}
	maps, _ := p.maps()
	if files := p.files.Load(); files != nil {
		maps = append(maps, *files...)
	}
	for i := range maps {
		if m := &maps[i]; m.Path == path && isFile(m) {
			open, _, err := p.file(m)
			if err != nil {
				return ""
			}
			return open
		}
	}
	return ""
}

// File returns a path by which we can open the file of a mapping: the path itself, the same path below the root that the
// process sees (containers), or the kernel's own link to what is mapped (files that were deleted or replaced meanwhile).
// The path is good as long as the process is there.
//
// What the path leads to is compared with what is mapped, always: it must have the same inode and device. Two kinds of
// file system tell another device by stat(2) than in /proc/PID/maps: btrfs has one for every subvolume, and overlayfs one
// for every mount, where maps tells of the file below. There the inode decides, together with the file's first bytes,
// which are compared with the process's memory. The error wraps ErrDenied or ErrGone where that is the reason.
func (p *Process) File(m Mapping) (string, error) {
	open, _, err := p.file(&m)
	return open, err
}

func (p *Process) file(m *Mapping) (string, *unix.Stat_t, error) {
	if !isFile(m) {
		return "", nil, fmt.Errorf("no file is mapped at %#x", m.Start)
	}
	candidates := []string{p.fs.of(p.PID, "root") + m.Path, m.Path}
	if p.near {
		candidates[0], candidates[1] = candidates[1], candidates[0]
	}
	for _, path := range append(candidates, candidates[0]+deleted) {
		if info := p.matches(m, path); info != nil {
			return path, info, nil
		}
	}
	link := p.fs.of(p.PID, "map_files") + "/" + strconv.FormatUint(m.Start, 16) + "-" + strconv.FormatUint(m.End, 16)
	var info unix.Stat_t
	switch err := unix.Stat(link, &info); {
	case err == nil && info.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", nil, fmt.Errorf("%s is no regular file", m.Path)
	case err == nil && info.Ino == m.Inode:
		return link, &info, nil
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "", nil, fmt.Errorf("%s was deleted or replaced after process %d had loaded it, or lies where we cannot go: %w: CAP_CHECKPOINT_RESTORE opens what is loaded (another user's only with CAP_DAC_READ_SEARCH), or start the program again",
			m.Path, p.PID, ErrDenied)
	}
	if !p.Same() {
		return "", nil, gone(p.PID)
	}
	return "", nil, fmt.Errorf("%s is not what process %d has loaded, and that cannot be opened: start the program again", m.Path, p.PID)
}

// matches returns what stat tells of a path that leads to the file of a mapping, nil if it leads elsewhere.
func (p *Process) matches(m *Mapping, path string) *unix.Stat_t {
	var info unix.Stat_t
	if unix.Stat(path, &info) != nil || info.Ino != m.Inode || info.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	if info.Dev == m.Device || p.alike(m, path) {
		return &info
	}
	return nil
}

// alike reports whether a file with another device than the mapping's is the same nevertheless. Its beginning tells:
// layout, symbol tables' places and mostly the build id lie there. Where memory must not be read (/proc/PID/mem wants
// more rights than /proc/PID/maps), a file system that is known to tell other devices has to do.
func (p *Process) alike(m *Mapping, path string) bool {
	const enough = 1024 // no code lies there, in which breakpoints would differ
	if begin := p.beginning(m); begin != nil {
		loaded, err := readAt(p.fs.of(p.PID, "mem"), int64(begin.Start), enough)
		if err == nil {
			stored, err := readAt(path, 0, enough)
			return err == nil && bytes.Equal(loaded, stored)
		}
	}
	switch fileSystem(path) {
	case unix.OVERLAYFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
		return true
	}
	return false
}

// beginning returns the mapping of a file's first bytes, given any of its mappings; nil when these are not mapped.
func (p *Process) beginning(m *Mapping) *Mapping {
	if m.Offset == 0 {
		return m
	}
	list, err := p.Maps()
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

func fileSystem(path string) int64 {
	var info unix.Statfs_t
	if unix.Statfs(path, &info) != nil {
		return 0
	}
	return info.Type
}

func readAt(path string, offset int64, size int) ([]byte, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	data := make([]byte, size)
	_, err = file.ReadAt(data, offset)
	return data, err
}

// Identity tells files apart for the kernel's breakpoints, which it puts into inodes: files with the same Device and Inode
// share one copy of the code. They are those of stat(2), but for Device on overlayfs.
type Identity struct {
	Device, Inode uint64
	// Written changes when the file is written anew, or its inode is given to another file: where functions were says
	// nothing any more then, and a breakpoint there would break what is there now.
	Written uint64
}

// Identify returns the identity of the file that has a path now.
func Identify(path string) (Identity, error) {
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		return Identity{}, err
	}
	return identify(path, &info), nil
}

// identify returns the identity of an open file. Each container sees a file of its image on an overlayfs of its own, with
// a device of its own, but the breakpoints go into the one file below: the same for all, and told twice if it were probed
// twice. No call tells which file that is, but inode number, size and times are passed through.
func identify(path string, info *unix.Stat_t) Identity {
	id := Identity{Device: info.Dev, Inode: info.Ino, Written: mix(info.Size, info.Mtim.Sec, info.Mtim.Nsec)}
	if fileSystem(path) == unix.OVERLAYFS_SUPER_MAGIC {
		// No device that stat tells is that large.
		id.Device = mix(info.Size, info.Mtim.Sec, info.Mtim.Nsec, info.Ctim.Sec, info.Ctim.Nsec) | 1<<63
	}
	return id
}

// mix makes one number of several: FNV-1a, by words.
func mix(parts ...int64) uint64 {
	const prime = 1099511628211
	mixed := uint64(14695981039346656037)
	for _, part := range parts {
		mixed = (mixed ^ uint64(part)) * prime
	}
	return mixed
}
