package session

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// relay passes our terminal's keys to the target's terminal, once the dashboard has left: every key as it is, so
// that the target's own terminal does the echo, the line editing and the signals.
type relay struct {
	terminal *os.File
	before   *unix.Termios
}

// newRelay starts to copy. Where input is no terminal that we own it does nothing.
func newRelay(input, master *os.File) *relay {
	if master == nil || !Terminal(input) || !Foreground(input) {
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

// stop puts the terminal back.
func (r *relay) stop() {
	if r != nil {
		_ = unix.IoctlSetTermios(int(r.terminal.Fd()), unix.TCSETS, r.before)
	}
}

// Foreground reports whether this process may use a terminal: others in the background are stopped for it.
func Foreground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
