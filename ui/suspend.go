package ui

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	tea "charm.land/bubbletea/v2"
)

type (
	suspendMsg struct{} // another process asks us to stop (SIGTSTP)
	resumeMsg  struct{} // we were stopped, and go on
)

// catchStopSignal turns SIGTSTP into a message until the function that it returns is called: the terminal has to be restored
// before we stop.
func catchStopSignal(p *tea.Program) (restore func()) {
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGTSTP)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-stops:
				p.Send(suspendMsg{})
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(stops)
		close(done)
	}
}

// stopToShell stops us and the program, and gives the terminal to the shell. While we stand still, what the program does would
// be lost.
func (d *dashboard) stopToShell() tea.Cmd {
	if !d.o.JobControl {
		d.sayMessage(warnStyle, "no shell waits here that could continue the dashboard")
		return nil
	}
	if d.suspended = d.o.Signal != nil && !d.hasProgramEnded(); d.suspended {
		d.o.Signal(syscall.SIGSTOP)
	}
	return tea.Exec(&stop{}, func(error) tea.Msg { return resumeMsg{} })
}

// continueAfterStop continues after suspend.
func (d *dashboard) continueAfterStop() {
	if d.suspended {
		d.o.Signal(syscall.SIGCONT)
	}
	d.suspended, d.dirty = false, true
}

// stop is a command that Bubble Tea runs without the terminal: it ends when the shell continues us. Once SIGTSTP was asked
// for, Go never gives it its usual effect again, so that this is SIGSTOP, for the whole process group like the terminal's.
type stop struct{ terminal io.Writer }

func (*stop) SetStdin(io.Reader)      {}
func (s *stop) SetStdout(w io.Writer) { s.terminal = w }
func (*stop) SetStderr(io.Writer)     {}

// Run also waits to be continued: other threads than this one may take the signal, and this one would go on until then.
func (s *stop) Run() error {
	_, _ = io.WriteString(s.terminal, formerTitle)
	defer io.WriteString(s.terminal, keepTitle) //nolint:errcheck // as in Run
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(0, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	<-continued
	return nil
}
