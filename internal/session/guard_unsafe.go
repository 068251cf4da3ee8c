package session

import (
	"runtime"
	"runtime/debug"
	"unsafe"
)

// runCatchingFault runs fn, which reads memory that another process can take away: it may shorten the file behind a mapping
// at any time, and a read beyond the end is a SIGBUS. It returns the address of such a fault, 0 when fn finished.
// It does not catch any other panic.
func runCatchingFault(fn func()) (fault uintptr) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		thrown := recover()
		if thrown == nil {
			return
		}
		at, ok := thrown.(interface {
			runtime.Error
			Addr() uintptr
		})
		if !ok {
			panic(thrown)
		}
		fault = at.Addr()
	}()
	fn()
	return 0
}

// isMapped reports whether an address lies in a mapping.
func isMapped(mem []byte, address uintptr) bool {
	if len(mem) == 0 {
		return false
	}
	start := uintptr(unsafe.Pointer(&mem[0]))
	return address >= start && address-start < uintptr(len(mem))
}
