package main

import (
	"errors"
	"fmt"
	"os"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/splice"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// summarized writes records with summaries of their blocks.
type summarized struct {
	writer *trace.Writer
	model  *model.Model
}

func summarize(w *trace.Writer, h trace.Header) splice.Sink {
	s := summarized{w, model.New(model.Options{Started: h.ClockNS})}
	w.Summarize(func() trace.Summary { return trace.Summary(s.model.Interval()) })
	return s
}

// Append implements splice.Sink.
func (s summarized) Append(r *wire.Record) error {
	s.model.Apply(r)
	return s.writer.Append(r)
}

// writeRecording makes a recording, which appears under its name when it is whole. fill writes the records and returns
// the footer.
func writeRecording(path string, force bool, header trace.Header, fill func(splice.Sink) (trace.Footer, error)) error {
	return export.Beside(path, force, func(beside string) error {
		w, err := trace.Create(beside, header, false)
		if err != nil {
			return err
		}
		footer, err := fill(summarize(w, header))
		return errors.Join(err, w.Close(footer))
	})
}

// checkOutput demands a file to write that is none of those to read.
func checkOutput(output string, inputs ...string) error {
	if output == "" {
		return errors.New("no file to write: name one with -o")
	}
	return checkNotRead(output, inputs...)
}

// checkNotRead demands that what is written is none of the files to read.
func checkNotRead(output string, inputs ...string) error {
	for _, input := range inputs {
		if sameFile(output, input) {
			return fmt.Errorf("%s is what is read: name another file to write", output)
		}
	}
	return nil
}

func sameFile(a, b string) bool {
	of, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(of, other)
}
