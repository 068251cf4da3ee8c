package session

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudo-terminal. The master stays with the runtime's poller, so that reads take a deadline:
// nothing here may call its Fd, which would make it blocking (and creack/pty does).
func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var number uint32
	err = control(master, func(fd int) error {
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

// setSize sets a terminal's size in cells.
func setSize(master *os.File, cols, rows int) error {
	size := unix.Winsize{Col: uint16(min(cols, 1<<15)), Row: uint16(min(rows, 1<<15))}
	return control(master, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size) })
}

// control calls fn with the descriptor of a file or connection without changing its mode.
func control(f syscall.Conn, fn func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = fn(int(fd)) })
	return errors.Join(err, failed)
}
