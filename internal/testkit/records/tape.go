// Package records has what tests of everything made from recordings share.
package records

import (
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Tape is a trace.Source of records in memory. One goroutine may use it at a time.
type Tape struct {
	Records []wire.Record
	next    int
}

// Next implements trace.Source.
func (t *Tape) Next(r *wire.Record) error {
	if t.next == len(t.Records) {
		return io.EOF
	}
	*r = t.Records[t.next]
	t.next++
	return nil
}

// Rewind implements trace.Source.
func (t *Tape) Rewind() error {
	t.next = 0
	return nil
}
