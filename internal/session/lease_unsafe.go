package session

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lease shows whether a process still maps its region, also after it closed all descriptors and when its children have
// inherited some. Region and process share one open file, which is locked. The kernel drops the lock when the last
// mapping of that open file is gone. The lease is another open file of the same region, which asks for the lock.
type lease int

const noLease lease = -1

// lockSentFile locks the file that a process sent, and opens it a second time. The caller closes the first.
func lockSentFile(fd int) lease {
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return noLease
	}
	own, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return noLease
	}
	return lease(own)
}

// isRegionHeld reports whether the process has its region; false without a lease.
func (l lease) isRegionHeld() bool {
	return l != noLease && unix.Flock(int(l), unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}

func (l lease) release() {
	if l != noLease {
		_ = unix.Close(int(l))
	}
}

// wakeAll wakes all threads that wait for a futex, in any process.
func wakeAll(bell *uint32) {
	const futexWake, waiters = 1, 1
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(bell)), futexWake, waiters)
}
