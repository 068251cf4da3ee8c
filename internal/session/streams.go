package session

import (
	"errors"
	"os"
	"os/exec"
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
	// of its own, so that the two can be told apart and both are still terminals for the target.
	masters [2]*os.File
	slaves  [2]*os.File
	readers []chan struct{} // closed when a master has nothing more to say
}

// Terminal reports whether a file is a terminal.
func Terminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// plainStreams leaves everything as it is.
func plainStreams(files [3]*os.File) *streams { return &streams{files: files} }

// captureStreams puts a terminal of ours in the place of each stream that is a terminal.
func captureStreams(files [3]*os.File, cols, rows int) (*streams, error) {
	s := &streams{files: files, output: newOutput(files[1], files[2])}
	var wanted [3]bool
	for i, f := range files {
		wanted[i] = Terminal(f)
	}
	err := s.open(0, wanted[0] || wanted[1], cols, rows)
	if err == nil {
		err = s.open(1, wanted[2], cols, rows)
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

func (s *streams) open(which int, wanted bool, cols, rows int) error {
	if !wanted {
		return nil
	}
	master, slave, err := openTerminal()
	if err != nil {
		return err
	}
	s.masters[which], s.slaves[which] = master, slave
	s.resize(cols, rows)
	return rawOutput(slave)
}

// rawOutput makes a terminal pass output on as it was written: by default it makes each LF a CR LF.
func rawOutput(slave *os.File) error {
	t, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	t.Oflag &^= unix.OPOST
	return unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, t)
}

// attach gives a command its streams. With captured ones it becomes the leader of a session of its own, so that
// neither the keys of our terminal nor our suspension reach it.
func (s *streams) attach(cmd *exec.Cmd) {
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

// started closes what only the target needs and begins to read.
func (s *streams) started() {
	for which, master := range s.masters {
		if master == nil {
			continue
		}
		_ = s.slaves[which].Close()
		done := make(chan struct{})
		s.readers = append(s.readers, done)
		go func() {
			defer close(done)
			s.read(master, which)
		}()
	}
}

// read copies a terminal's output until its last holder closes it, which shows as EIO, or until drain sets a
// deadline and nothing more comes.
func (s *streams) read(master *os.File, stream int) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := master.Read(buffer)
		if n > 0 {
			s.output.write(stream, buffer[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.readNow(master, stream, buffer)
			return
		}
		if err != nil {
			return
		}
	}
}

// readNow copies what is there without waiting.
func (s *streams) readNow(master *os.File, stream int, buffer []byte) {
	_ = control(master, func(fd int) error {
		for {
			n, err := unix.Read(fd, buffer)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n <= 0 || err != nil {
				return err
			}
			s.output.write(stream, buffer[:n])
		}
	})
}

// drain reads the rest after the target's end. Descendants that live on may keep the terminals open; what they print
// later is not waited for.
func (s *streams) drain() {
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
			_ = setSize(master, cols, rows)
		}
	}
}

// close gives the terminals back.
func (s *streams) close() {
	for which := range s.masters {
		if s.masters[which] != nil {
			_ = s.masters[which].Close()
			_ = s.slaves[which].Close() // a second time does no harm
		}
	}
}
