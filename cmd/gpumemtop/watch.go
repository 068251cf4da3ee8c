package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/progress"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/unfinished"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// meter is the line on stderr that tells how far reading has come, nil where there shall be none.
var meter = sync.OnceValue(func() *progress.Line { return progress.On(os.Stderr, os.LookupEnv) })

// watchEvery is how many records are read between two looks at the clock.
const watchEvery = 4096

// watched is a recording whose reading is shown when it takes long.
type watched struct {
	reader *trace.Reader
	label  string
	pass   int
	n      int
}

// watch returns a recording as a source that shows how far reading has come. Whoever reads it must come to its end, or
// say something, before anything else is written to the terminal: both take the line away.
func watch(reader *trace.Reader, path string) trace.Source {
	return &watched{reader: reader, label: "reading " + filepath.Base(path), pass: 1}
}

// Next implements trace.Source.
func (w *watched) Next(r *wire.Record) error {
	if w.n%watchEvery == 0 {
		meter().Set(w.text(), w.reader.Offset(), w.reader.Size())
	}
	w.n++
	err := w.reader.Next(r)
	if err != nil {
		meter().Clear()
	}
	return err
}

// Rewind implements trace.Source.
func (w *watched) Rewind() error {
	if w.n > 0 {
		w.pass++
	}
	w.n = 0
	return w.reader.Rewind()
}

// Damage says what could not be read so far.
func (w *watched) Damage() string { return w.reader.Damage() }

// Cut reports whether the run goes on behind the last record.
func (w *watched) Cut() bool { return w.reader.Cut() }

// Definitions gives the records that define what others refer to, without reading the others where that can be.
func (w *watched) Definitions(fn func(*wire.Record) error) error { return w.reader.Definitions(fn) }

// surveyed is a recording whose reading is shown.
type surveyed struct {
	*trace.Reader
	shown trace.Source
}

// Next implements trace.Source.
func (s surveyed) Next(r *wire.Record) error { return s.shown.Next(r) }

// together shows how far several recordings have been read.
type together struct {
	label       string
	done, total int64
}

// watch returns a source that is shown as one of several.
func (t *together) watch(src trace.Source, reader *trace.Reader) trace.Source {
	t.total += reader.Size()
	return &merging{Source: src, reader: reader, of: t}
}

// merging is one of several recordings that are read together.
type merging struct {
	trace.Source
	reader *trace.Reader
	of     *together
	at     int64
	n      int
}

// Next implements trace.Source.
func (o *merging) Next(r *wire.Record) error {
	if o.n%watchEvery == 0 {
		o.of.done, o.at = o.of.done+o.reader.Offset()-o.at, o.reader.Offset()
		meter().Set(o.of.label, o.of.done, o.of.total)
	}
	o.n++
	return o.Source.Next(r)
}

// foreign is a file of another format that is read as one of bytes.
type foreign struct {
	io.Reader
	label       string
	done, total int64
}

// Read implements io.Reader.
func (f *foreign) Read(b []byte) (int, error) {
	n, err := f.Reader.Read(b)
	f.done += int64(n)
	if f.total > 0 { // of a pipe nobody knows
		meter().Set(f.label, f.done, f.total)
	}
	return n, err
}

// text names the pass where there are several.
func (w *watched) text() string {
	if w.pass == 1 {
		return w.label
	}
	return fmt.Sprintf("%s, pass %d", w.label, w.pass)
}

// toTerminal reports whether an output is a terminal, or may be one.
func toTerminal(output string) bool {
	if output == "-" {
		_, err := unix.IoctlGetTermios(int(os.Stdout.Fd()), unix.TCGETS)
		return err == nil
	}
	info, err := os.Stat(output)
	return err == nil && info.Mode()&fs.ModeCharDevice != 0 && output != os.DevNull
}

// interruptible lets signals end the command as they would anyway, but first removes what would stay behind: files that
// are not whole, and the line of the meter. The function that it returns ends that.
func interruptible() func() {
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	over := make(chan struct{})
	go func() {
		select {
		case sig := <-signals:
			unfinished.Abandon()
			meter().Hide()
			number, _ := sig.(syscall.Signal)
			session.Status{Signal: int(number)}.Exit()
		case <-over:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
	}
}
