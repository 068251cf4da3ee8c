package recording

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

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
// with a nil record. Meanwhile the source is another goroutine's: see Batches.
func Records(src Source) iter.Seq2[*wire.Record, error] {
	return func(yield func(*wire.Record, error) bool) {
		for batch, err := range RecordBatches(src) {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range batch {
				if !yield(&batch[i], nil) {
					return
				}
			}
		}
	}
}

// RecordBatches is Records for several records at a time. Another goroutine reads the source ahead, and has stopped when the
// iteration ends.
func RecordBatches(src Source) iter.Seq2[[]wire.Record, error] {
	return func(yield func([]wire.Record, error) bool) {
		if err := src.Rewind(); err != nil {
			yield(nil, fmt.Errorf("go to the start of the recording: %w", err))
			return
		}
		read, free := make(chan *recordBatch, batchesAhead), make(chan *recordBatch, batchesAhead)
		for range batchesAhead {
			free <- new(recordBatch)
		}
		go readBatches(src, free, read)
		defer func() {
			close(free)
			for range read { // until the goroutine has stopped
			}
		}()
		for b := range read {
			if !yield(b.records, nil) {
				return
			}
			if b.err != nil && !errors.Is(b.err, io.EOF) {
				yield(nil, b.err)
			}
			free <- b
		}
	}
}

// A batch ends with batchRecords records, or when their payloads have batchBytes. All together have about a megabyte.
const (
	batchesAhead = 4
	batchRecords = 2048
	batchBytes   = 64 << 10
)

// recordBatch is records that follow each other, and the error after them.
type recordBatch struct {
	records  []wire.Record
	payloads []byte
	err      error
}

// readBatches reads until the first error, or until no more batches are wanted.
func readBatches(src Source, free <-chan *recordBatch, read chan<- *recordBatch) {
	defer close(read)
	for b := range free {
		b.fillFromSource(src)
		read <- b
		if b.err != nil {
			return
		}
	}
}

func (b *recordBatch) fillFromSource(src Source) {
	b.records, b.payloads = b.records[:0], b.payloads[:0]
	for len(b.records) < batchRecords && len(b.payloads) < batchBytes {
		b.records = append(b.records, wire.Record{})
		last := len(b.records) - 1
		r := &b.records[last]
		if b.err = src.Next(r); b.err != nil {
			b.records = b.records[:last]
			return
		}
		from := len(b.payloads)
		b.payloads = append(b.payloads, r.Payload...)
		r.Payload = slices.Clip(b.payloads[from:])
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
