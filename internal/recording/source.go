package recording

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Source gives the records of a run in the order of their times, as far as the session could know it; *Reader is one.
// One goroutine uses it.
type Source interface {
	// Next reads the next record, io.EOF after the last. Its payload is valid until the following call.
	Next(*wire.Record) error
	// Rewind starts again at the first record.
	Rewind() error
}

// DamageOf returns the damage that a source has skipped so far; empty: none, or the source does not report it.
func DamageOf(src Source) string {
	if s, ok := src.(interface{ Damage() string }); ok {
		return s.Damage()
	}
	return ""
}

// RunGoesOn reports whether the run goes on after the last record of a source that has returned io.EOF: memory in use is then no leak.
// A source without a method Cut has all of a run.
func RunGoesOn(src Source) bool {
	s, ok := src.(interface{ IsCut() bool })
	return ok && s.IsCut()
}

// Records rewinds a source and iterates over its records. A record is valid until the next one. An error comes last,
// with a nil record.
func Records(src Source) iter.Seq2[*wire.Record, error] {
	return func(yield func(*wire.Record, error) bool) {
		if err := src.Rewind(); err != nil {
			yield(nil, fmt.Errorf("go to the start of the recording: %w", err))
			return
		}
		var r wire.Record
		for {
			switch err := src.Next(&r); {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, err)
				return
			}
			if !yield(&r, nil) {
				return
			}
		}
	}
}

// UpgradeRecord turns a record of an earlier version into one of the current version, so that code that reads it, or writes it
// again, need not know its origin. Before version 4 a use did not say where in its object it was, and the use of a copy had
// the tag of the memory: both are unknown now.
func UpgradeRecord(version int, r *wire.Record) {
	if version < 4 && r.Kind == wire.KindUse {
		r.AsUse().ForgetPlace()
	}
}
