// Package records has what tests of everything made from recordings share. All tests use these words:
//
//   - A tape is records in memory that a test writes, and the source that plays them. Types named tape embed Tape, as labtest.Tape does.
//   - A program is an executable, or the process that runs it, as cprogram.Program is.
//   - A random run, of package randomrun, is what any correct program might have recorded.
package records

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Tape is a recording.Source of records in memory. One goroutine may use it at a time.
type Tape struct {
	Records []wire.Record
	Err     error // returned after the last record instead of io.EOF
	Part    bool  // the run goes on after the last record
	next    int
}

// IsCut says whether the run goes on.
func (t *Tape) IsCut() bool { return t.Part }

// Next implements recording.Source.
func (t *Tape) Next(r *wire.Record) error {
	if t.next == len(t.Records) {
		return cmp.Or(t.Err, io.EOF)
	}
	*r = t.Records[t.next]
	t.next++
	return nil
}

// Rewind implements recording.Source.
func (t *Tape) Rewind() error {
	t.next = 0
	return nil
}

// ErrFull is what a full disk says.
var ErrFull = errors.New("no space left")

// Full is a disk with little room: Left bytes.
type Full struct{ Left int }

// Write implements io.Writer.
func (f *Full) Write(b []byte) (int, error) {
	if f.Left -= len(b); f.Left < 0 {
		return 0, ErrFull
	}
	return len(b), nil
}

// ReadAll takes everything from a source.
func ReadAll(t interface{ Fatal(...any) }, src interface{ Next(*wire.Record) error }) []wire.Record {
	var list []wire.Record
	for {
		var r wire.Record
		err := src.Next(&r)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Payload = slices.Clone(r.Payload)
		list = append(list, r)
	}
}
