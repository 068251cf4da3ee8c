package disk

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// file is a disk that can stop answering, or be full.
type file struct {
	mu      sync.Mutex // held: it does not answer
	data    []byte
	space   int
	closed  bool
	failing error
}

var errFull = errors.New("no space left on device")

func (f *file) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(len(b), f.space-len(f.data))
	f.data = append(f.data, b[:n]...)
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

func (f *file) Truncate(size int64) error { f.data = f.data[:size]; return f.failing }
func (f *file) Close() error              { f.closed = true; return nil }

func write(t *testing.T, w *Writer, text string) {
	t.Helper()
	if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
}

func TestWriterWritesInOrder(t *testing.T) {
	f := &file{space: 1 << 20}
	w := NewWriter(f)
	var want bytes.Buffer
	for i := range 1000 {
		text := strings.Repeat("x", i%7) + "\n"
		want.WriteString(text)
		write(t, w, text)
	}
	if err := w.Close(); err != nil || !f.closed || !bytes.Equal(f.data, want.Bytes()) || w.BytesTaken() != uint64(want.Len()) {
		t.Errorf("%v, closed %v, %d bytes", err, f.closed, len(f.data))
	}
}

// A full disk keeps what was written before, and nothing of what did not fit.
func TestFullDisk(t *testing.T) {
	f := &file{space: 10}
	w := NewWriter(f)
	write(t, w, "12345678")
	for range 3 { // a busy machine may report it later
		if _, err := w.Write([]byte("abcd")); err != nil {
			break
		}
	}
	if err := w.Close(); !errors.Is(err, errFull) || !errors.Is(w.FirstFailure(), errFull) || string(f.data) != "12345678" {
		t.Errorf("%v, %q", err, f.data)
	}
}

// A disk that stops answering holds its writer up for a moment only.
func TestDiskStopsAnswering(t *testing.T) {
	over := make(chan struct{})
	f := &file{space: 1 << 20}
	w := newWriter(f, over)
	write(t, w, "first")
	f.mu.Lock()
	defer f.mu.Unlock()
	start := time.Now()
	for range waiting {
		write(t, w, "12345678")
	}
	if took := time.Since(start); took > 5*time.Second { // one write waits for patience
		t.Errorf("%d writes took %v", waiting, took)
	}
	time.AfterFunc(20*time.Millisecond, func() { close(over) })
	var err error
	for range 3 { // it has no room for all of these
		_, err = w.Write([]byte("more"))
	}
	if err == nil || !strings.Contains(err.Error(), "does not answer, the last 5") {
		t.Errorf("a write behind a full queue: %v", err)
	}
	if got := w.Close(); got == nil || got.Error() != err.Error() {
		t.Errorf("closed with %v", got)
	}
}

// What was written before StopWaiting is no failure if the disk answers.
func TestGiveUpLosesNothingOnADiskThatAnswers(t *testing.T) {
	over := make(chan struct{})
	f := &file{space: 100}
	w := newWriter(f, over)
	write(t, w, "first")
	time.AfterFunc(grace, func() { close(over) }) // as StopWaiting
	write(t, w, "second")
	if err := w.Close(); err != nil || string(f.data) != "firstsecond" {
		t.Errorf("%v, %q", err, f.data)
	}
}

// What waits for the reader of a pipe is left when all waiting ends.
func TestAwait(t *testing.T) {
	over, answer := make(chan struct{}), make(chan struct{})
	defer close(answer)
	if err := awaitWriteUntil("x", func() error { return errFull }, over); !errors.Is(err, errFull) {
		t.Errorf("it failed with %v", err)
	}
	close(over)
	if err := awaitWriteUntil("x", func() error { <-answer; return nil }, over); err == nil {
		t.Error("it has been written")
	}
}
