package rights_test

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setFilter puts a seccomp filter in front of this thread, and of what it becomes.
func setFilter(filter []unix.SockFilter) error {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	runtime.KeepAlive(filter)
	return err
}
