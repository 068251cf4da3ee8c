package parquet

import (
	"errors"
	"maps"
	"os"
	"slices"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
)

const (
	batchRows  = 256      // rows passed to the library at a time
	batches    = 8        // batches of a kind that may wait to be written
	pageBytes  = 64 << 10 // of one column
	dictionary = 4 << 20  // bytes of a dictionary; a column with a larger one is written without
)

// codec is shared, so that its encoders share their buffers.
var codec = &zstd.Codec{Level: zstd.SpeedFastest, Concurrency: 1}

// writerOptions has the options of all tables. Columns of words have no bounds: no one searches words by range, and finding the first
// and the last takes a tenth of the time.
var writerOptions = []parquet.WriterOption{
	parquet.Compression(codec), parquet.MaxRowsPerRowGroup(rowGroup), parquet.PageBufferSize(pageBytes),
	parquet.DictionaryMaxBytes(dictionary), parquet.CreatedBy("gpumemtop", "1", ""),
	parquet.SkipPageBounds("recording"), parquet.SkipPageBounds("kind"), parquet.SkipPageBounds("op"),
	parquet.SkipPageBounds("outcome"), parquet.SkipPageBounds("reason"), parquet.SkipPageBounds("flags"),
	parquet.SkipPageBounds("memory"), parquet.SkipPageBounds("state"), parquet.SkipPageBounds("ending"),
}

// kind is one kind of table: the open ones, by process, and writers to be reused. One goroutine makes rows, and the kind's own
// goroutine writes them, because compressing rows takes longer than making them.
type kind[T any] struct {
	open  map[uint32]*table[T]
	idle  []*table[T] // used by the kind's goroutine while it runs
	work  chan job[T] // nil: there is none
	spare chan []T
	done  chan struct{}

	failed atomic.Bool
	err    error // the first error
}

// table is one file.
type table[T any] struct {
	file *os.File
	out  *parquet.GenericWriter[T]
	rows []T
}

// job is work on a table: rows to write, and perhaps its end.
type job[T any] struct {
	*table[T]
	rows []T
	last bool
}

// createProcessFile makes the file for a process.
func (k *kind[T]) createProcessFile(f *folder, name string, p *tables.Facts) error {
	file, err := f.createInStage(pathOfTable(name, p))
	if err != nil {
		return err
	}
	var t *table[T]
	if n := len(k.idle); n > 0 {
		t, k.idle = k.idle[n-1], k.idle[:n-1]
		t.out.Reset(file)
	} else {
		t = &table[T]{rows: make([]T, 0, batchRows), out: parquet.NewGenericWriter[T](file, writerOptions...)}
	}
	t.file = file
	if k.open == nil {
		k.open = map[uint32]*table[T]{}
	}
	k.open[p.Number] = t
	return nil
}

// startWriting starts the goroutine that writes.
func (k *kind[T]) startWriting() {
	k.work, k.spare, k.done = make(chan job[T], batches), make(chan []T, batches+1), make(chan struct{})
	go func() {
		defer close(k.done)
		for j := range k.work {
			if err := k.writeRowsOrClose(&j); err != nil && !k.failed.Load() {
				k.err = err
				k.failed.Store(true)
			}
		}
	}()
}

// writeRowsOrClose does a job. After a failure only files are closed.
func (k *kind[T]) writeRowsOrClose(j *job[T]) error {
	var err error
	if !k.failed.Load() {
		_, err = j.out.Write(j.rows)
	}
	clear(j.rows)
	if !j.last {
		select {
		case k.spare <- j.rows[:0]:
		default: // enough writers are kept
		}
		return err
	}
	j.table.rows = j.rows[:0]
	if err == nil && !k.failed.Load() {
		err = j.out.Close()
	}
	err = errors.Join(err, j.file.Close())
	j.file = nil
	k.idle = append(k.idle, j.table)
	return err
}

func (k *kind[T]) queueRow(process uint32, row *T) error {
	t := k.open[process]
	t.rows = append(t.rows, *row)
	if len(t.rows) < batchRows {
		return nil
	}
	k.work <- job[T]{table: t, rows: t.rows}
	select {
	case t.rows = <-k.spare:
	default:
		t.rows = make([]T, 0, batchRows)
	}
	if k.failed.Load() {
		return k.err
	}
	return nil
}

// beginCompleting begins to complete all files; wait returns the error.
func (k *kind[T]) beginCompleting() {
	for _, process := range slices.Sorted(maps.Keys(k.open)) {
		t := k.open[process]
		delete(k.open, process)
		k.work <- job[T]{table: t, rows: t.rows, last: true}
	}
}

// waitForRows waits until all rows are written, and returns the first error.
func (k *kind[T]) waitForRows() error {
	if k.work == nil {
		return nil
	}
	close(k.work)
	<-k.done
	k.work = nil
	return k.err
}

// closeIncompleteFiles closes incomplete files, whose rows are lost.
func (k *kind[T]) closeIncompleteFiles() {
	_ = k.waitForRows() // reported already, or without consequence
	for process, t := range k.open {
		delete(k.open, process)
		_ = t.file.Close()
	}
}
