// Package disk writes files beside the program that makes them: a disk that is slow, or answers no more, holds it up for a
// moment only.
package disk

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	patience = 50 * time.Millisecond  // how long a write waits for a disk that has kept up
	grace    = 100 * time.Millisecond // how long everything waits after StopWaiting
	waiting  = 64                     // writes that a disk may be behind
)

var (
	over    = make(chan struct{})
	giveUp  sync.Once
	forever = make(chan time.Time)
)

// StopWaiting ends all waiting for disks in this process, a tenth of a second from now and for good: it is about to end.
func StopWaiting() {
	giveUp.Do(func() { time.AfterFunc(grace, func() { close(over) }) })
}

// AwaitWrite calls write, which may wait for the reader of a pipe, and returns its error. Once StopWaiting has ended all waiting, Await returns
// an error that names the pipe, and write goes on by itself.
func AwaitWrite(pipe string, write func() error) error { return awaitWriteUntil(pipe, write, over) }

func awaitWriteUntil(pipe string, write func() error, over <-chan struct{}) error {
	done := make(chan error, 1)
	go func() { done <- write() }()
	select {
	case err := <-done:
		return err
	case <-over:
		return fmt.Errorf("write %s: nothing takes it", pipe)
	}
}

// File is what a Writer writes to.
type File interface {
	io.WriteCloser
	Truncate(size int64) error
}

// Writer appends to a file in order, one Write after the other. When one fails, what it has left in the file is cut off, and
// nothing more is written. One goroutine uses it.
type Writer struct {
	file   File
	queue  chan *chunk
	over   <-chan struct{}
	begun  bool
	ended  bool         // by Close
	behind atomic.Int64 // writes
	taken  uint64       // bytes
	stored atomic.Uint64
	failed atomic.Pointer[error]
	closed chan struct{}
	end    error // of Close, when closed is
}

type chunk struct {
	data    []byte
	written chan struct{}
}

// NewWriter returns a writer that owns a file, which is empty.
func NewWriter(file File) *Writer { return newWriter(file, over) }

func newWriter(file File, over <-chan struct{}) *Writer {
	w := &Writer{file: file, queue: make(chan *chunk, waiting), over: over, closed: make(chan struct{})}
	go w.writeQueuedChunks()
	return w
}

// Write implements io.Writer. The first one waits for the disk, the others only for a moment, or for room: the error may be
// that of an earlier one.
func (w *Writer) Write(data []byte) (int, error) {
	if err := w.FirstFailure(); err != nil || w.ended {
		return 0, cmp.Or(err, os.ErrClosed)
	}
	c := &chunk{bytes.Clone(data), make(chan struct{})}
	keptUp := w.behind.Add(1) == 1
	select {
	case w.queue <- c:
	case <-w.over:
		w.endFileAfterStop()
		return 0, w.FirstFailure()
	}
	w.taken += uint64(len(data))
	if keptUp {
		w.awaitWrite(c)
	}
	if err := w.FirstFailure(); err != nil {
		return 0, err
	}
	return len(data), nil
}

// awaitWrite waits for a write.
func (w *Writer) awaitWrite(c *chunk) {
	limit := (<-chan time.Time)(forever)
	if w.begun {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		limit = timer.C
	}
	w.begun = true
	select {
	case <-c.written:
	case <-limit:
	case <-w.over:
	}
}

// FirstFailure returns the error that ended the file, nil while there is none.
func (w *Writer) FirstFailure() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// noteFailure notes the first error.
func (w *Writer) noteFailure(err error) { w.failed.CompareAndSwap(nil, &err) }

// endFileAfterStop ends the file as StopWaiting has it.
func (w *Writer) endFileAfterStop() {
	w.noteFailure(fmt.Errorf("the disk does not answer, the last %d bytes or more may be missing", w.taken-w.stored.Load()))
}

// BytesTaken returns how many bytes were written, or wait to be.
func (w *Writer) BytesTaken() uint64 { return w.taken }

// Close waits for the disk and closes the file. It returns the error that ended the file, if there was one.
func (w *Writer) Close() error {
	if w.ended {
		return os.ErrClosed
	}
	w.ended = true
	close(w.queue)
	select {
	case <-w.closed:
		return errors.Join(w.FirstFailure(), w.end)
	case <-w.over:
		w.endFileAfterStop()
		return w.FirstFailure()
	}
}

// writeQueuedChunks writes.
func (w *Writer) writeQueuedChunks() {
	for c := range w.queue {
		if w.FirstFailure() == nil {
			if n, err := w.file.Write(c.data); err == nil {
				w.stored.Add(uint64(n))
			} else {
				w.noteFailure(errors.Join(err, w.file.Truncate(int64(w.stored.Load()))))
			}
		}
		w.behind.Add(-1)
		close(c.written)
	}
	w.end = w.file.Close()
	close(w.closed)
}
