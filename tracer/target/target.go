// Package target finds the processes that use OpenCL, the libraries that they have really mapped, and where the
// functions lie in those files. Everything comes from /proc and from the files themselves; nothing in a process is
// stopped or changed.
//
// Breakpoints are put into files, not into processes: into the inode that a path leads to. So the one thing that must
// not happen is to open another file than the one that a process has mapped, and a path alone does not tell: the
// process may live in a container, and a package may have been upgraded while it runs. See [Process.File].
package target

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// What keeps a process from being watched. Errors of this package wrap one of these where it is the reason.
var (
	// ErrGone says that there is no such process, or not any more.
	ErrGone = errors.New("no such process")
	// ErrDenied says that the rights to look into a process are missing; the text of the error says which.
	ErrDenied = errors.New("no right to look into it")
	// ErrRefused says that it is no process that could be watched, whatever the rights.
	ErrRefused = errors.New("cannot be watched")
)

// procfs is where the kernel tells of processes: "/proc", or what a test has built.
type procfs string

const proc = procfs("/proc")

// of returns the path of a file of a process.
func (fs procfs) of(pid int, name string) string {
	return filepath.Join(string(fs), strconv.Itoa(pid), name)
}

// Running returns the ids of all processes that we may know of, in ascending order.
func Running() ([]int, error) { return proc.running() }

func (fs procfs) running() ([]int, error) {
	dir, err := os.Open(string(fs))
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // only read
	// Names alone: the kernel would be asked about each of them otherwise.
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}
