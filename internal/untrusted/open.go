// Package untrusted opens files that others chose or wrote: modules that a program maps, debug files, maps of generated code,
// flight logs. Opening such a file has no effects, and waits for nothing.
package untrusted

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a file system may take to open a file: a server of a network may be gone.
const patience = 2 * time.Second

// unreal are the file systems whose files have no contents of their own: the kernel answers reads, waits in them, or takes what
// is read away (/proc/kmsg, trace_pipe). See statfs(2).
var unreal = map[int64]bool{
	unix.PROC_SUPER_MAGIC: true, unix.SYSFS_MAGIC: true, unix.DEBUGFS_MAGIC: true, unix.TRACEFS_MAGIC: true, unix.SECURITYFS_MAGIC: true,
	unix.CGROUP_SUPER_MAGIC: true, unix.CGROUP2_SUPER_MAGIC: true, unix.BPF_FS_MAGIC: true, unix.SELINUX_MAGIC: true, unix.SMACK_MAGIC: true,
	unix.PSTOREFS_MAGIC: true, unix.EFIVARFS_MAGIC: true, unix.BINFMTFS_MAGIC: true, unix.DEVPTS_SUPER_MAGIC: true, unix.AUTOFS_SUPER_MAGIC: true,
	unix.NSFS_MAGIC: true, unix.PIPEFS_MAGIC: true, unix.SOCKFS_MAGIC: true, unix.RDTGROUP_SUPER_MAGIC: true, unix.BINDERFS_SUPER_MAGIC: true,
	unix.ANON_INODE_FS_MAGIC: true, configFS: true, fuseControl: true, messageQueues: true, rpcPipes: true,
}

// File systems that golang.org/x/sys/unix does not name.
const (
	configFS      = 0x62656570
	fuseControl   = 0x65735543
	messageQueues = 0x19800202
	rpcPipes      = 0x67596969
)

// OpenRegular opens a regular file of a real file system for reading. flags are more for open(2), as O_NOFOLLOW.
func OpenRegular(path string, flags int) (*os.File, error) {
	var file *os.File
	err := os.ErrDeadlineExceeded
	if !CallWithPatience(path, patience, func() { file, err = checkAndOpen(path, flags) }) {
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrDeadlineExceeded}
	}
	return file, err
}

// StatRegular is os.Stat for such a path.
func StatRegular(path string) (os.FileInfo, error) {
	var info os.FileInfo
	err := os.ErrDeadlineExceeded
	if !CallWithPatience(path, patience, func() { info, err = os.Stat(path) }) {
		return nil, &os.PathError{Op: "stat", Path: path, Err: os.ErrDeadlineExceeded}
	}
	return info, err
}

// stuck are the folders of paths for which a call is late. Others in them need not wait as long.
var stuck sync.Map

// CallWithPatience calls f on a goroutine of its own, for a path. False: f takes too long. Its results must not be used then, ever.
func CallWithPatience(path string, patience time.Duration, f func()) bool {
	folder := filepath.Dir(path)
	if _, late := stuck.Load(folder); late {
		return false
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	}
	stuck.Store(folder, true)
	go func() {
		<-done
		stuck.Delete(folder)
	}()
	return false
}

// checkAndOpen checks what the path leads to before it opens that: opening a device or a pipe can block or have effects.
func checkAndOpen(path string, flags int) (*os.File, error) {
	place, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(place) //nolint:errcheck // only a place
	if err := CheckRegular(place); err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	// Without O_NONBLOCK it would wait for a process that has a lease on the file.
	file, err := unix.Open("/proc/self/fd/"+strconv.Itoa(place), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(file), path), nil
}

// CheckRegular returns nil for an open regular file of a real file system, else ErrNotRegular or the kernel's error.
func CheckRegular(fd int) error {
	var info unix.Stat_t
	var system unix.Statfs_t
	if err := errors.Join(unix.Fstat(fd, &info), unix.Fstatfs(fd, &system)); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFREG || unreal[int64(system.Type)] { //nolint:unconvert // narrower on some machines
		return ErrNotRegular
	}
	return nil
}

// ErrNotRegular is why a path is not opened that leads to something else than a regular file of a real file system.
var ErrNotRegular = errors.New("not a regular file")
