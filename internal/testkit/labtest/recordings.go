package labtest

import (
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// recordings is the number of the examples' recordings.
const recordings = 9

// Recordings returns the recordings of the examples in a folder, one after the other, each with its name. A reader is closed
// before the next one is opened.
func Recordings(tb testing.TB, folder string) iter.Seq2[string, *recording.Reader] {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.gmt"))
	if err != nil || len(files) < recordings {
		tb.Fatalf("%d recordings in %s, %v", len(files), folder, err)
	}
	return func(yield func(string, *recording.Reader) bool) {
		for _, file := range files {
			if !openAndYield(tb, file, yield) {
				return
			}
		}
	}
}

func openAndYield(tb testing.TB, file string, yield func(string, *recording.Reader) bool) bool {
	tb.Helper()
	reader, err := recording.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() {
		if err := reader.Close(); err != nil {
			tb.Error(err)
		}
	}()
	return yield(filepath.Base(file), reader)
}

// Write writes a whole recording.
func Write(tb rapid.TB, path string, h recording.Header, list []wire.Record, f recording.Footer) {
	tb.Helper()
	w, err := recording.Create(path, h, true)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range list {
		if err := w.Append(&list[i]); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(f); err != nil {
		tb.Fatal(err)
	}
}

// EachRecord calls take for the remaining records of a source. Their payload is valid during the call.
func EachRecord(tb testing.TB, src recording.Source, take func(*wire.Record)) {
	tb.Helper()
	var r wire.Record
	for {
		err := src.Next(&r)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			tb.Fatal(err)
		}
		take(&r)
		clear(r.Payload) // so that a test that keeps it fails
	}
}

// RewindSource returns a source at its first record.
func RewindSource(tb testing.TB, src recording.Source) recording.Source {
	tb.Helper()
	if err := src.Rewind(); err != nil {
		tb.Fatal(err)
	}
	return src
}

// Broken is a source whose reads fail.
type Broken struct{ Err error }

// Next implements recording.Source.
func (b Broken) Next(*wire.Record) error { return b.Err }

// Rewind implements recording.Source.
func (Broken) Rewind() error { return nil }

// OpenRecordedOr opens the recording that the environment variable GPUMEMTOP_RECORDING names, for benchmarks of real programs.
// Without the variable it returns otherwise.
func OpenRecordedOr(tb testing.TB, otherwise recording.Source) recording.Source {
	tb.Helper()
	file := os.Getenv("GPUMEMTOP_RECORDING")
	if file == "" {
		return otherwise
	}
	reader, err := recording.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = reader.Close() })
	return reader
}
