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

// DamageOf returns what a source could not read so far, empty when it cannot tell.
func DamageOf(src Source) string {
	if s, ok := src.(interface{ Damage() string }); ok {
		return s.Damage()
	}
	return ""
}

// GoesOn reports of a source that has given io.EOF whether the run goes on behind its last record: what lives then is no
// leak. A source that cannot tell gives all of a run.
func GoesOn(src Source) bool {
	s, ok := src.(interface{ Cut() bool })
	return ok && s.Cut()
}
