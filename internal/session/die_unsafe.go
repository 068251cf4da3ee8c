package session

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigaction is the kernel's struct for rt_sigaction(2); all zero it means SIG_DFL with an empty mask.
type sigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

// dieBySignal ends this process by a signal, like the program that it stands for, so that a shell or a parent sees the
// same. The Go runtime keeps handlers of its own for SIGSEGV and the like even after signal.Reset, hence the system
// call. It leaves no core file: the program's own is the one of interest. It returns only if the signal does not kill.
func dieBySignal(sig unix.Signal) {
	var standard sigaction
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&standard)), 0, unsafe.Sizeof(standard.mask), 0, 0)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	self := os.Getpid()
	if unix.Kill(self, sig) == nil && self != 1 { // which no signal of its own PID namespace kills
		_ = unix.Nanosleep(&unix.Timespec{Sec: 1}, nil) // another thread may be the one that takes it
	}
}
