package session

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Status is how the target ended.
type Status struct {
	Code   int // exit status, 0 to 255, when Signal is 0
	Signal int // number of the signal that killed it, 0 for none
}

// newStatus reads what wait4(2) said.
func newStatus(state *os.ProcessState) Status {
	w, ok := state.Sys().(syscall.WaitStatus)
	if ok && w.Signaled() {
		return Status{Signal: int(w.Signal())}
	}
	return Status{Code: state.ExitCode()}
}

// Shell returns the status as a shell shows it: 128 + n after signal n.
func (s Status) Shell() int {
	if s.Signal != 0 {
		return 128 + s.Signal
	}
	return s.Code
}

// String says it in words: "exit status 7", "SIGSEGV".
func (s Status) String() string {
	if s.Signal == 0 {
		return fmt.Sprintf("exit status %d", s.Code)
	}
	if name := unix.SignalName(syscall.Signal(s.Signal)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", s.Signal)
}

// Exit ends this process the way the target ended: with its status, or by its signal (the contract of strace(1)).
func (s Status) Exit() {
	if s.Signal != 0 {
		dieBy(syscall.Signal(s.Signal))
	}
	os.Exit(s.Shell())
}
