package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// outlet is one file that a run is recorded into.
type outlet struct {
	session.Recorder
	path string
	what string // for the note about its end
	err  error  // that ended it early
}

// tee records into several files. One that breaks does not end the others.
type tee []*outlet

// Append implements session.Recorder. It fails when nothing is left to record into.
func (t tee) Append(r *wire.Record) error {
	return t.each(func(o *outlet) error { return o.Append(r) })
}

// Flush implements session.Recorder.
func (t tee) Flush() error { return t.each((*outlet).Flush) }

// Bytes implements session.Recorder: those of the first file.
func (t tee) Bytes() uint64 { return t[0].Bytes() }

func (t tee) each(do func(*outlet) error) error {
	whole, last := 0, error(nil)
	for _, o := range t {
		if o.err == nil {
			o.err = do(o)
		}
		if o.err == nil {
			whole++
		} else {
			last = o.err
		}
	}
	if whole > 0 {
		return nil
	}
	return last
}

// Ended implements session.Keeper.
func (t tee) Ended(process uint32, status session.Status) {
	for _, o := range t {
		if keeper, ok := o.Recorder.(session.Keeper); ok {
			keeper.Ended(process, status)
		}
	}
}

// record creates what the run is recorded into.
func (r *runner) record() error {
	header := r.header()
	switch {
	case r.recording == nil:
	case r.recording.single():
		path := r.recording.String()
		writer, err := trace.Create(path, header, r.config.force)
		if err != nil {
			return err
		}
		writer.Summarize(func() trace.Summary { return trace.Summary(r.model.Interval()) })
		r.outlets = append(r.outlets, &outlet{Recorder: writer, path: path, what: "recording"})
	default:
		r.outlets = append(r.outlets, &outlet{Recorder: newSplit(r.recording, header, r.model, r.config.force, r.notes.add)})
	}
	if r.trace == "" {
		return nil
	}
	live, err := export.CreateLive(r.trace, export.FactsOf(header), r.config.force)
	if err != nil {
		r.discard()
		return err
	}
	r.outlets = append(r.outlets, &outlet{Recorder: live, path: r.trace, what: "trace"})
	return nil
}

// header says what is recorded.
func (r *runner) header() trace.Header {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	values := trace.Limits{}
	for _, l := range r.plan.policy.Limits() {
		values[l.Name] = l.Text
	}
	return trace.Header{
		Created: time.Now(), ClockNS: session.Now(), Host: host, Program: r.command[0], Arguments: r.command[1:],
		Policy: r.plan.policy.Name(), Limits: values, Tags: r.plan.tags.String(),
		Scrub: scrubText(r.plan.scrub), DeviceMemory: r.plan.memory, Environment: recorded(os.Environ()),
	}
}

// discard removes what nothing was recorded into: it would only be in the way.
func (r *runner) discard() {
	_ = r.close(trace.Footer{Status: -1})
	for _, o := range r.outlets {
		if o.path != "" {
			_ = os.Remove(o.path)
		}
	}
}

// close completes the files and says which of them break off, and which files there are for each process.
func (r *runner) close(footer trace.Footer) []string {
	var notes []string
	for _, o := range r.outlets {
		var err error
		switch file := o.Recorder.(type) {
		case *trace.Writer:
			err = file.Close(footer)
		case *export.Live:
			err = file.Close()
		case *split:
			file.close()
			notes = append(notes, file.said()...)
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("%v: the %s ends there, what is in %s is whole", err, o.what, o.path))
		}
	}
	return notes
}

// checkFiles refuses names that cannot be recorded into.
func (r *runner) checkFiles() error {
	now := time.Now()
	if r.config.output != "" {
		var err error
		if r.recording, err = expand(r.config.output, r.command[0], now); err != nil {
			return err
		}
		if err := r.recording.check(); err != nil {
			return err
		}
	}
	if r.config.json == "" {
		return nil
	}
	name, err := expand(r.config.json, r.command[0], now)
	if err != nil {
		return err
	}
	r.trace = name.String()
	switch {
	case !name.single():
		return errors.New("--json writes one trace for all processes: leave %p out of its name")
	case strings.HasSuffix(r.trace, ".gz"):
		return fmt.Errorf("%s: a packed trace that breaks off has lost its end: leave .gz out and pack it afterwards", r.trace)
	}
	return writable("json", r.trace, r.config.force)
}

// checkDistinct refuses one name for two files, however it is written: the later one would take the other's place.
func (r *runner) checkDistinct() error {
	files := []struct{ flag, path string }{{"--json", r.trace}, {"--summary", r.config.summary}}
	if r.recording.single() {
		files = append(files, struct{ flag, path string }{"-o", r.recording.String()})
	}
	for i, file := range files {
		for _, other := range files[i+1:] {
			if file.path != "" && other.path != "" && samePlace(file.path, other.path) {
				return fmt.Errorf("%s and %s name the same file %s: name another", file.flag, other.flag, file.path)
			}
		}
	}
	return nil
}

// samePlace reports whether two names lead to the same file, which need not exist yet.
func samePlace(a, b string) bool { return sameFile(a, b) || resolved(a) == resolved(b) }

// resolved returns a name without links, as far as its folder exists.
func resolved(path string) string {
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		folder = filepath.Dir(path)
	}
	if full, err := filepath.Abs(folder); err == nil {
		folder = full
	}
	return filepath.Join(folder, filepath.Base(path))
}
