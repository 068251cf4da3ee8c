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

// text names the pass where there are several.
func (w *watched) text() string {
	if w.pass == 1 {
		return w.label
	}
	return fmt.Sprintf("%s, pass %d", w.label, w.pass)
}

// surveyed is a recording that is looked through, which is shown when it takes long.
type surveyed struct {
	*trace.Reader
	watched trace.Source
}

// survey is watch for those who ask a recording for more than its records.
func survey(reader *trace.Reader, path string) surveyed { return surveyed{reader, watch(reader, path)} }

// Next implements trace.Source.
func (s surveyed) Next(r *wire.Record) error { return s.watched.Next(r) }

// Rewind implements trace.Source.
func (s surveyed) Rewind() error { return s.watched.Rewind() }

// together shows how far the reading of several recordings at a time has come.
type together struct {
	readers []*trace.Reader
	total   int64
	n       int
}

// merged is one of them.
type merged struct {
	trace.Source
	all *together
}

// watch adds a recording, which is read through src.
func (t *together) watch(reader *trace.Reader, src trace.Source) trace.Source {
	t.readers = append(t.readers, reader)
	t.total += reader.Size()
	return merged{src, t}
}

// Next implements trace.Source.
func (m merged) Next(r *wire.Record) error {
	if m.all.n%watchEvery == 0 {
		done := int64(0)
		for _, reader := range m.all.readers {
			done += reader.Offset()
		}
		meter().Set(fmt.Sprintf("merging %d recordings", len(m.all.readers)), done, m.all.total)
	}
	m.all.n++
	return m.Source.Next(r)
}

// watchedFile is a file of some other format, whose reading is shown when it takes long.
type watchedFile struct {
	file        io.Reader
	label       string
	done, total int64
}

// watchFile returns a file as a reader that shows how far it has come, where that can be told from its size. As with
// watch, its end takes the line away.
func watchFile(file *os.File, info fs.FileInfo) io.Reader {
	if !info.Mode().IsRegular() {
		return file
	}
	return &watchedFile{file: file, label: "reading " + info.Name(), total: info.Size()}
}

// Read implements io.Reader.
func (w *watchedFile) Read(b []byte) (int, error) {
	n, err := w.file.Read(b)
	w.done += int64(n)
	meter().Set(w.label, w.done, w.total)
	if err != nil {
		meter().Clear()
	}
	return n, err
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
