package session

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Status is how the target ended.
type Status struct {
	Code   int // exit status, 0 to 255, when Signal is 0
	Signal int // number of the signal that killed it, 0 for none
}

// newStatus converts the result of wait4(2).
func newStatus(state *os.ProcessState) Status {
	w, ok := state.Sys().(syscall.WaitStatus)
	if ok && w.Signaled() {
		return Status{Signal: int(w.Signal())}
	}
	return Status{Code: state.ExitCode()}
}

// ShellCode returns the status as a shell shows it: 128 + n after signal n.
func (s Status) ShellCode() int {
	if s.Signal != 0 {
		return 128 + s.Signal
	}
	return s.Code
}

// String returns the status in words: "exit status 7", "SIGSEGV".
func (s Status) String() string {
	if s.Signal == 0 {
		return fmt.Sprintf("exit status %d", s.Code)
	}
	if name := unix.SignalName(syscall.Signal(s.Signal)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", s.Signal)
}

// EndLikeTarget ends this process the way the target ended: with its status, or by its signal (the contract of strace(1)).
func (s Status) EndLikeTarget() {
	if s.Signal != 0 {
		dieBySignal(syscall.Signal(s.Signal))
	}
	os.Exit(s.ShellCode())
}

// forwarded are the signals that the target gets when we do.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// CatchSignals starts to receive the signals that we forward to a target. A signal that was ignored when we started stays ignored, also
// by the target: nohup(1) and shells that start commands in the background rely on it. signal.Stop ends receiving.
func CatchSignals() chan os.Signal {
	signals := make(chan os.Signal, 16)
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	return signals
}

// passSignalsOn passes signals on until the channel is closed.
func (s *Session) passSignalsOn(signals <-chan os.Signal) {
	for sig := range signals {
		if s.streams.output == nil && isFromKeyboard(sig) {
			continue
		}
		s.SignalProgram(sig)
	}
}

// isFromKeyboard reports whether the terminal sends a signal to its whole foreground process group. The
// target is in ours when no stream is captured, so it has that signal already; a second one would mean "at once" to
// many programs.
func isFromKeyboard(sig os.Signal) bool {
	if sig != syscall.SIGINT && sig != syscall.SIGQUIT {
		return false
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close() //nolint:errcheck // only asked
	return MayUseTerminal(tty)
}

// stopCatchingSignals ends forward and gives the signals their usual meaning back.
func stopCatchingSignals(signals chan os.Signal) {
	signal.Stop(signals)
	close(signals)
}
