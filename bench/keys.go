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
	cmd.Env = append(os.Environ(), append(b.env, "TERM=xterm-256color", "CI=")...)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 200, Rows: 60})
	if err != nil {
		return fmt.Errorf("start gpumemtop: %w", err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // the program ends by it, which is no failure
		_, _ = io.Copy(io.Discard, terminal)
		_ = errors.Join(cmd.Wait(), terminal.Close())
	}()
	s := screen{terminal}
	if _, _, err := s.frames(quiet); err != nil { // until it has all that it shows
		return err
	}
	frames, size, err := s.frames(quiet)
	if err != nil {
		return err
	}
	var took []float64
	for range 10 * b.runs {
		one, err := s.press("?", " scroll ")
		if err != nil {
			return err
		}
		took = append(took, milliseconds(one))
		if _, err := s.press("\x1b", "\x1b["); err != nil { // back, which draws something
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

// screen is the terminal's side of a dashboard.
type screen struct{ *os.File }

// frames counts for a while what is drawn: what comes without a pause of 5 ms is one frame.
func (s screen) frames(while time.Duration) (count, size int, err error) {
	buffer := make([]byte, 64<<10)
	var last time.Time
	for end := time.Now().Add(while); ; {
		if err := s.SetReadDeadline(end); err != nil {
			return 0, 0, err
		}
		n, err := s.Read(buffer)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return count, size, nil
		case err != nil:
			return 0, 0, fmt.Errorf("the dashboard ended: %w", err)
		case time.Since(last) > 5*time.Millisecond:
			count++
		}
		size += n
		last = time.Now()
	}
}

// press types a key and waits until something is on the screen.
func (s screen) press(key, effect string) (time.Duration, error) {
	start := time.Now()
	if _, err := io.WriteString(s, key); err != nil {
		return 0, err
	}
	if err := s.SetReadDeadline(start.Add(10 * time.Second)); err != nil {
		return 0, err
	}
	var seen []byte
	buffer := make([]byte, 64<<10)
	for !bytes.Contains(seen, []byte(effect)) {
		n, err := s.Read(buffer)
		if err != nil {
			return 0, fmt.Errorf("no effect of the key %q: %w", key, err)
		}
		seen = append(seen, buffer[:n]...)
	}
	return time.Since(start), nil
}
