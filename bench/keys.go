package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// measureKeyDelays shows how much the dashboard writes for a frame on a large screen, how soon a key has its effect there, and how
// much is written before it: that must not grow where the line is slow.
func (b *bench) measureKeyDelays() error {
	b.printRow("screen", "frames/s", "KB/frame", "key to screen ms, median", "p99", "KB before it, most")
	for _, line := range []struct {
		name  string
		delay time.Duration
	}{{"200x60", 0}, {"200x60, 100 ms each way", 100 * time.Millisecond}} {
		if err := b.measureKeyDelaysOver(line.name, line.delay); err != nil {
			return err
		}
	}
	return nil
}

// measureKeyDelaysOver measures over a line that takes a time each way.
func (b *bench) measureKeyDelaysOver(name string, delay time.Duration) error {
	const quiet = 3 * time.Second
	cmd := exec.Command(b.gpumemtopPath(), "--no-replay", "--", b.examplePath("train"), "1000000000")
	cmd.Env = append(os.Environ(), append(b.env, "TERM=xterm-256color", "CI=", "XDG_STATE_HOME=/dev/null")...)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 200, Rows: 60})
	if err != nil {
		return fmt.Errorf("start gpumemtop: %w", err)
	}
	s := newScreen(terminal).withDelay(delay)
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // the program ends by it, which is no failure
		for range s {                           // until it has written all
		}
		_ = errors.Join(cmd.Wait(), terminal.Close())
	}()
	if _, _, err := s.countFrames(quiet); err != nil { // until it has all that it shows
		return err
	}
	frames, size, err := s.countFrames(quiet)
	if err != nil {
		return err
	}
	var took []float64
	most := 0
	for range 40 * b.runs { // so that the slowest of a hundred is not the slowest of all
		one, before, err := timeKeyEffect(terminal, s, delay, "?", "(granted") // on rows that are blank otherwise
		if err != nil {
			return err
		}
		took, most = append(took, milliseconds(one)), max(most, before)
		if _, err := io.WriteString(terminal, "q"); err != nil { // back
			return err
		}
		if _, _, err := s.countFrames(delay + 170*time.Millisecond); err != nil { // so that keys come at any time between two frames
			return err
		}
	}
	slices.Sort(took)
	b.printRow(name, formatFixed(float64(frames)/quiet.Seconds(), 1), formatFixed(float64(size)/1e3/float64(max(frames, 1)), 2), formatFixed(medianOf(took), 1),
		formatFixed(took[len(took)*99/100], 1), formatFixed(float64(most)/1e3, 1))
	return nil
}

// timeKeyEffect types a key at the end of a line that takes a time, and returns how soon it had its effect there, and what was
// written before.
func timeKeyEffect(terminal io.Writer, s screen, delay time.Duration, key, effect string) (took time.Duration, before int, err error) {
	start := time.Now()
	time.Sleep(delay)
	if _, err := io.WriteString(terminal, key); err != nil {
		return 0, 0, err
	}
	before, err = s.waitForText(effect)
	return time.Since(start), before, err
}

// screen is the terminal's side of a dashboard: the output of the dashboard, in pieces. It is closed when the dashboard has
// ended.
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

// withDelay is the screen at the end of a line that takes a time.
func (s screen) withDelay(delay time.Duration) screen {
	if delay == 0 {
		return s
	}
	type sent struct {
		piece []byte
		at    time.Time
	}
	line, end := make(chan sent, cap(s)), make(screen, cap(s))
	go func() {
		defer close(line)
		for piece := range s {
			line <- sent{piece, time.Now()}
		}
	}()
	go func() {
		defer close(end)
		for one := range line {
			time.Sleep(time.Until(one.at.Add(delay)))
			end <- one.piece
		}
	}()
	return end
}

var errEnded = errors.New("the dashboard ended")

// countFrames counts the frames that are drawn in a while: output without a pause of 5 ms is one frame.
func (s screen) countFrames(while time.Duration) (count, size int, err error) {
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

// waitForText waits for a text on the screen, and returns how many bytes were written before it.
func (s screen) waitForText(effect string) (before int, err error) {
	var seen []byte
	for timeout := time.After(10 * time.Second); ; {
		select {
		case piece, more := <-s:
			if !more {
				return 0, errEnded
			}
			seen = append(seen, piece...)
			if at := bytes.Index(seen, []byte(effect)); at >= 0 {
				return at, nil
			}
		case <-timeout:
			return 0, fmt.Errorf("the key has no effect: no %q", effect)
		}
	}
}
