package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// keys shows how much the dashboard writes for a frame on a large screen, and how soon a key has its effect there.
func (b *bench) keys() error {
	const quiet = 3 * time.Second
	cmd := exec.Command(b.gpumemtop(), "--no-replay", "--", b.example("train"), "1000000000")
	cmd.Env = append(os.Environ(), append(b.env, "TERM=xterm-256color", "CI=", "XDG_STATE_HOME=/dev/null")...)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 200, Rows: 60})
	if err != nil {
		return fmt.Errorf("start gpumemtop: %w", err)
	}
	s := newScreen(terminal)
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // the program ends by it, which is no failure
		for range s {                           // until it has written all
		}
		_ = errors.Join(cmd.Wait(), terminal.Close())
	}()
	if _, _, err := s.frames(quiet); err != nil { // until it has all that it shows
		return err
	}
	frames, size, err := s.frames(quiet)
	if err != nil {
		return err
	}
	var took []float64
	for range 10 * b.runs {
		one, err := typed(terminal, s, "?", "scroll")
		if err != nil {
			return err
		}
		took = append(took, milliseconds(one))
		if _, err := typed(terminal, s, "\x1b", "\x1b["); err != nil { // back, which draws something
			return err
		}
		if _, _, err := s.frames(70 * time.Millisecond); err != nil { // so that keys come at any time between two frames
			return err
		}
	}
	b.row("screen", "frames/s", "KB/frame", "key to screen ms, median")
	b.row("200x60", fixed(float64(frames)/quiet.Seconds(), 1), fixed(float64(size)/1e3/float64(max(frames, 1)), 2), fixed(middle(took), 1))
	return nil
}

// typed types a key, and returns how soon it had its effect.
func typed(terminal io.Writer, s screen, key, effect string) (time.Duration, error) {
	if _, err := io.WriteString(terminal, key); err != nil {
		return 0, err
	}
	return s.until(effect)
}

// screen is the terminal's side of a dashboard: what that writes, in pieces. It is closed when the dashboard has ended.
type screen chan []byte

func newScreen(terminal io.Reader) screen {
	s := make(screen, 1024)
	go func() {
		defer close(s)
		for {
			piece := make([]byte, 64<<10)
			n, err := terminal.Read(piece)
			if err != nil {
				return
			}
			s <- piece[:n]
		}
	}()
	return s
}

var errEnded = errors.New("the dashboard ended")

// frames counts for a while what is drawn: what comes without a pause of 5 ms is one frame.
func (s screen) frames(while time.Duration) (count, size int, err error) {
	var last time.Time
	for end := time.After(while); ; {
		select {
		case piece, more := <-s:
			if !more {
				return 0, 0, errEnded
			}
			if time.Since(last) > 5*time.Millisecond {
				count++
			}
			size += len(piece)
			last = time.Now()
		case <-end:
			return count, size, nil
		}
	}
}

// until waits for something to be on the screen, and returns how long that took.
func (s screen) until(effect string) (time.Duration, error) {
	start := time.Now()
	var seen []byte
	for timeout := time.After(10 * time.Second); ; {
		select {
		case piece, more := <-s:
			if !more {
				return 0, errEnded
			}
			if seen = append(seen, piece...); bytes.Contains(seen, []byte(effect)) {
				return time.Since(start), nil
			}
		case <-timeout:
			return 0, fmt.Errorf("the key has no effect: no %q", effect)
		}
	}
}
