package main

import (
	"errors"
	"fmt"
	"os"
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

// record creates what the run is recorded into.
func (r *runner) record() error {
	header := r.header()
	if r.recording != "" {
		writer, err := trace.Create(r.recording, header, r.config.force)
		if err != nil {
			return err
		}
		r.outlets = append(r.outlets, &outlet{Recorder: writer, path: r.recording, what: "recording"})
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
		Scrub: scrubText(r.plan.scrub), DeviceMemory: r.plan.memory,
	}
}

// discard removes what nothing was recorded into: it would only be in the way.
func (r *runner) discard() {
	_ = r.close(trace.Footer{Status: -1})
	for _, o := range r.outlets {
		_ = os.Remove(o.path)
	}
}

// close completes the files and says which of them break off.
func (r *runner) close(footer trace.Footer) []string {
	var notes []string
	for _, o := range r.outlets {
		var err error
		switch file := o.Recorder.(type) {
		case *trace.Writer:
			err = file.Close(footer)
		case *export.Live:
			err = file.Close()
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("%v: the %s ends there, what is in %s is whole", err, o.what, o.path))
		}
	}
	return notes
}

// checkFiles refuses names that cannot be recorded into.
func (r *runner) checkFiles() error {
	var err error
	now := time.Now()
	if r.config.output != "" {
		if r.recording, err = expand(r.config.output, r.command[0], now); err != nil {
			return err
		}
	}
	if r.config.json != "" {
		if r.trace, err = expand(r.config.json, r.command[0], now); err != nil {
			return err
		}
	}
	switch {
	case r.trace != "" && r.trace == r.recording:
		return errors.New("--json and -o name the same file: name another")
	case strings.HasSuffix(r.trace, ".gz"):
		return fmt.Errorf("%s: a packed trace that breaks off has lost its end: leave .gz out and pack it afterwards", r.trace)
	}
	return writable("json", r.trace, r.config.force)
}
