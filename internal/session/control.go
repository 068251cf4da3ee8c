package session

// The methods that a dashboard calls while the session runs.

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// killAfter is the time that a program has to obey SIGTERM when the user asked for its end.
const killAfter = 5 * time.Second

// SetLimit asks every process of the target, present and future, for an allocator limit, whose value is written as the
// allocator takes it. It returns the sequence number of the request; the answers come as LIMIT events into the model. The
// error says that name and value are too long to be one.
func (s *Session) SetLimit(name, value string) (sequence uint64, err error) {
	sequence = s.sequence.Add(1)
	return sequence, s.collector.setLimit(name, value, sequence)
}

// SetPolicy asks every process of the target, present and future, to switch to another allocator policy, whose limits
// have their defaults except settings, written as the allocator takes them. It returns the sequence number of the request;
// the answers come as LIMIT events into the model. The error says that the target was started without a pool, or what is
// wrong with policy or settings.
func (s *Session) SetPolicy(name string, settings []allocator.Setting) (sequence uint64, err error) {
	if !s.options.Config.Pooling {
		return 0, fmt.Errorf("policy %s stays: the program was started without the library that pools; start it with policy %s",
			s.options.Config.Policy, name)
	}
	return s.collector.setPolicy(name, settings, func() uint64 { return s.sequence.Add(1) })
}

// SetPlan gives one process of the target a plan for its policy. The answers come as LIMIT events.
func (s *Session) SetPlan(process uint32, plan *allocator.Layout) error {
	return s.collector.setPlan(process, plan, func() uint64 { return s.sequence.Add(1) })
}

// ToggleRecording starts a recording of the rest of the run, or stops the present one, where the Recorder is a Switched. It
// returns what to show.
func (s *Session) ToggleRecording() (text string, err error) {
	answered := make(chan struct{})
	s.collector.queueCall(func() {
		text, err = s.collector.startOrStopRecording()
		close(answered)
	})
	select {
	case <-answered:
		return text, err
	case <-s.collector.done:
		return "", errors.New("the program has ended")
	}
}

// SignalProgram sends a signal to the program; to its whole process group when it is in a session of its own.
func (s *Session) SignalProgram(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	if s.streams.output == nil {
		_ = s.cmd.Process.Signal(number) // it may have ended meanwhile
		return
	}
	select {
	case <-s.ended: // the number may be another's by now
	default:
		_ = syscall.Kill(-s.PID(), number)
	}
}

// Terminate asks the program to end, and kills it after five seconds.
func (s *Session) Terminate() {
	s.SignalProgram(syscall.SIGTERM)
	time.AfterFunc(killAfter, func() { s.SignalProgram(syscall.SIGKILL) })
}

// OutputSince returns what the program printed on captured streams since a position, oldest first, and the position to
// ask from next time. The first position is 0. Only the latest 10 000 lines or 4 MiB are kept for this.
func (s *Session) OutputSince(since uint64) ([]view.OutputLine, uint64) {
	if s.streams.output == nil {
		return nil, since
	}
	return s.streams.output.linesFrom(since)
}

// typeTimeout bounds how long a program that does not read its input keeps what is typed.
const typeTimeout = 100 * time.Millisecond

// TypeKeys gives the program keys as its terminal would. The error says why it cannot.
func (s *Session) TypeKeys(keys []byte) error {
	master := s.streams.masters[0]
	if master == nil || s.streams.files[0] != s.streams.slaves[0] {
		return errors.New("the program's input is no terminal: nothing can be typed into it")
	}
	if err := master.SetWriteDeadline(time.Now().Add(typeTimeout)); err != nil {
		return err
	}
	_, err := master.Write(keys)
	if err != nil {
		err = fmt.Errorf("the program does not read its input: %w", err)
	}
	return errors.Join(err, master.SetWriteDeadline(time.Time{})) // the relay waits
}

// UsesFullScreen reports whether the program draws on the whole screen, which only a terminal of its own can show.
func (s *Session) UsesFullScreen() bool {
	return s.streams.output != nil && s.streams.output.isFullScreen()
}

// ResizeTerminal tells the program's terminal its size in cells.
func (s *Session) ResizeTerminal(cols, rows int) { s.streams.resize(cols, rows) }

// EndCapture ends the capture: what was kept is replayed to the real streams, if that is wanted, and everything that
// follows passes straight through, keys included. Call it when the dashboard has left the screen.
func (s *Session) EndCapture(replay bool) error {
	if s.streams.output == nil {
		return nil
	}
	err := s.streams.output.endCapture(replay)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ended := s.Status(); !ended && s.relay == nil && s.streams.files[0] == s.streams.slaves[0] {
		s.relay = newRelay(s.options.Stdin, s.streams.masters[0])
	}
	if err != nil {
		return fmt.Errorf("replay the program's output: %w", err)
	}
	return nil
}
