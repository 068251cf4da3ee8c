package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// drainPatience is how long output may stay away, after the target's end, while descendants still hold its terminal.
const drainPatience = 50 * time.Millisecond

// streams connect the target. A stream that is not captured is passed as it is.
type streams struct {
	files  [3]*os.File // what the target gets
	output *output
	// The target's terminals, our side: the first is its controlling terminal, with stdin and stdout; stderr has one
	// of its own, so that they stay separate and both are still terminals for the target.
	masters [2]*os.File
	slaves  [2]*os.File
	readers []chan struct{} // closed when a master has been read to its end
}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// uncapturedStreams leaves everything as it is.
func uncapturedStreams(files [3]*os.File) *streams { return &streams{files: files} }

// capturedStreams replaces each stream that is a terminal by a terminal of ours.
func capturedStreams(files [3]*os.File, cols, rows int) (*streams, error) {
	s := &streams{files: files, output: newOutput(files[1], files[2])}
	var wanted [3]bool
	for i, f := range files {
		wanted[i] = IsTerminal(f)
	}
	err := s.openTerminals(0, wanted[0] || wanted[1], cols, rows)
	if err == nil {
		err = s.openTerminals(1, wanted[2], cols, rows)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	for i := range files {
		if wanted[i] {
			s.files[i] = s.slaves[i/2] // stdin and stdout share the first
		}
	}
	return s, nil
}

func (s *streams) openTerminals(which int, wanted bool, cols, rows int) error {
	if !wanted {
		return nil
	}
	master, slave, err := openTerminal()
	if err != nil {
		return err
	}
	s.masters[which], s.slaves[which] = master, slave
	s.resize(cols, rows)
	return setRawOutput(slave)
}

// setRawOutput makes a terminal pass output on as it was written: by default it makes each LF a CR LF.
func setRawOutput(slave *os.File) error {
	t, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	t.Oflag &^= unix.OPOST
	return unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, t)
}

// giveStreamsTo gives a command its streams. With captured ones it becomes the leader of a session of its own, so that
// neither the keys of our terminal nor our suspension reach it.
func (s *streams) giveStreamsTo(cmd *exec.Cmd) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.files[0], s.files[1], s.files[2]
	if s.output == nil {
		return
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for i, f := range s.files {
		if f != nil && (f == s.slaves[0] || f == s.slaves[1]) {
			cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, i
			return
		}
	}
}

// beginReading closes our copies of the target's files and begins to read.
func (s *streams) beginReading() {
	for which, master := range s.masters {
		if master == nil {
			continue
		}
		_ = s.slaves[which].Close()
		done := make(chan struct{})
		s.readers = append(s.readers, done)
		go func() {
			defer close(done)
			s.copyUntilClosed(master, which)
		}()
	}
}

// copyUntilClosed copies a terminal's output until its last holder closes it, which shows as EIO, or until drain sets a
// deadline and nothing more comes.
func (s *streams) copyUntilClosed(master *os.File, stream int) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := master.Read(buffer)
		if n > 0 {
			s.output.takeOutputChunk(stream, buffer[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.copyAvailable(master, stream, buffer)
			return
		}
		if err != nil {
			return
		}
	}
}

// copyAvailable copies what is there without waiting.
func (s *streams) copyAvailable(master *os.File, stream int, buffer []byte) {
	_ = withDescriptor(master, func(fd int) error {
		for {
			n, err := unix.Read(fd, buffer)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n <= 0 || err != nil {
				return err
			}
			s.output.takeOutputChunk(stream, buffer[:n])
		}
	})
}

// readRestAfterEnd reads the rest after the target's end. Descendants that live on may keep the terminals open; what they print
// later is not waited for.
func (s *streams) readRestAfterEnd() {
	for i, done := range s.readers {
		select {
		case <-done:
			continue
		case <-time.After(drainPatience):
		}
		for _, master := range s.masters {
			if master != nil {
				_ = master.SetReadDeadline(time.Now())
			}
		}
		<-s.readers[i]
	}
}

// resize tells the target's terminals their size in cells.
func (s *streams) resize(cols, rows int) {
	if cols <= 0 || rows <= 0 {
		return
	}
	for _, master := range s.masters {
		if master != nil {
			_ = setTerminalSize(master, cols, rows)
		}
	}
}

// close closes the terminals.
func (s *streams) close() {
	for which := range s.masters {
		if s.masters[which] != nil {
			_ = s.masters[which].Close()
			_ = s.slaves[which].Close() // a second time does no harm
		}
	}
}

// openTerminal makes a pseudo-terminal. The master stays with the runtime's poller, so that reads take a deadline:
// nothing here may call its Fd, which would make it blocking (and creack/pty does).
func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var number uint32
	err = withDescriptor(master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return fmt.Errorf("unlock terminal: %w", err)
		}
		number, err = unix.IoctlGetUint32(fd, unix.TIOCGPTN)
		return err
	})
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}

// setTerminalSize sets a terminal's size in cells.
func setTerminalSize(master *os.File, cols, rows int) error {
	size := unix.Winsize{Col: uint16(min(cols, 1<<15)), Row: uint16(min(rows, 1<<15))}
	return withDescriptor(master, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size) })
}

// withDescriptor calls fn with the descriptor of a file or connection without changing its mode.
func withDescriptor(f syscall.Conn, fn func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = fn(int(fd)) })
	return errors.Join(err, failed)
}

// relay passes our terminal's keys to the target's terminal, once the dashboard has left: every key as it is, so
// that the target's own terminal does the echo, the line editing and the signals.
type relay struct {
	terminal *os.File
	before   *unix.Termios
}

// newRelay starts to copy. Where input is no terminal that we own it does nothing.
func newRelay(input, master *os.File) *relay {
	if master == nil || !IsTerminal(input) || !MayUseTerminal(input) {
		return nil
	}
	fd := int(input.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil
	}
	raw := *before
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(fd, unix.TCSETS, &raw) != nil {
		return nil
	}
	go func() { _, _ = io.Copy(master, input) }() // ends with us: a read from a terminal cannot be taken back
	return &relay{terminal: input, before: before}
}

// restoreTerminal sets the terminal back to its state before the relay.
func (r *relay) restoreTerminal() {
	if r != nil {
		_ = unix.IoctlSetTermios(int(r.terminal.Fd()), unix.TCSETS, r.before)
	}
}

// MayUseTerminal reports whether this process may use a terminal: others in the background are stopped for it.
func MayUseTerminal(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
