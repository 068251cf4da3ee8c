package trace

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// Source gives the records of a run in the order of their times, as far as the session could know it; *Reader is one.
// One goroutine uses it.
type Source interface {
	// Next reads the next record, io.EOF after the last. Its payload is valid until the following call.
	Next(*wire.Record) error
	// Rewind starts again at the first record.
	Rewind() error
}
