package rights_test

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setFilter puts this thread, and the program that it executes, behind a seccomp filter.
func setFilter(filter []unix.SockFilter) error {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	runtime.KeepAlive(filter)
	return err
}
