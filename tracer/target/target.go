// Package target finds the processes that use OpenCL, the libraries that they have mapped, and the functions in those
// files. It reads /proc and the files, and neither stops nor changes a process.
//
// Breakpoints belong to the inode that a path leads to, not to processes. So we must never open another file than the one
// that a process has mapped. The path alone does not ensure that: the process may live in a container, and a package may
// have been upgraded while it runs. See [Process.MappingPath].
package target

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Reasons why a process cannot be watched, which errors of this package wrap.
var (
	// ErrGone says that the process does not exist, or no longer.
	ErrGone = errors.New("no such process")
	// ErrDenied says that we lack a right to inspect the process; the text says which.
	ErrDenied = errors.New("no right to inspect it")
	// ErrRefused says that the process cannot be watched with any rights.
	ErrRefused = errors.New("cannot be watched")
)

// procfs is where processes are described: "/proc", or a folder that a test made.
type procfs string

const proc = procfs("/proc")

// pathOfFile returns the path of a file of a process.
func (fs procfs) pathOfFile(pid int, name string) string {
	return filepath.Join(string(fs), strconv.Itoa(pid), name)
}

// RunningPIDs returns the pids of all processes that we may see, ascending.
func RunningPIDs() ([]int, error) { return proc.runningPIDs() }

func (fs procfs) runningPIDs() ([]int, error) {
	dir, err := os.Open(string(fs))
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // only read
	// Names only: more would query the kernel for each entry.
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
