package parquet

import (
	"errors"
	"maps"
	"os"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
)

const (
	batchRows  = 256      // handed to the library at a time
	pageBytes  = 64 << 10 // of one column
	dictionary = 4 << 20  // bytes, beyond which a column is written without
)

// codec is shared, and so are the buffers of its encoders.
var codec = &zstd.Codec{Level: zstd.SpeedFastest, Concurrency: 1}

// kind is one kind of table: the open ones, by process, and writers that can be used again.
type kind[T any] struct {
	open map[uint32]*table[T]
	idle []*table[T]
}

// table is one file.
type table[T any] struct {
	file *os.File
	out  *parquet.GenericWriter[T]
	rows []T
}

// start makes the file for a process.
func (k *kind[T]) start(f *folder, name string, p *tables.Facts) error {
	file, err := f.create(place(name, p))
	if err != nil {
		return err
	}
	var t *table[T]
	if n := len(k.idle); n > 0 {
		t, k.idle = k.idle[n-1], k.idle[:n-1]
		t.out.Reset(file)
	} else {
		t = &table[T]{rows: make([]T, 0, batchRows), out: parquet.NewGenericWriter[T](file,
			parquet.Compression(codec), parquet.MaxRowsPerRowGroup(rowGroup),
			parquet.PageBufferSize(pageBytes), parquet.DictionaryMaxBytes(dictionary),
			parquet.CreatedBy("gpumemtop", "1", ""),
		)}
	}
	t.file = file
	if k.open == nil {
		k.open = map[uint32]*table[T]{}
	}
	k.open[p.Number] = t
	return nil
}

// add takes a row of a process.
func (k *kind[T]) add(process uint32, row *T) error {
	t := k.open[process]
	t.rows = append(t.rows, *row)
	if len(t.rows) == batchRows {
		return t.flush()
	}
	return nil
}

func (t *table[T]) flush() error {
	_, err := t.out.Write(t.rows)
	clear(t.rows)
	t.rows = t.rows[:0]
	return err
}

// finish makes all files whole.
func (k *kind[T]) finish() error {
	for _, process := range slices.Sorted(maps.Keys(k.open)) {
		t := k.open[process]
		delete(k.open, process)
		err := t.flush()
		if err == nil {
			err = t.out.Close()
		}
		if err = errors.Join(err, t.file.Close()); err != nil {
			return err
		}
		t.file = nil
		k.idle = append(k.idle, t)
	}
	return nil
}

// abandon closes the files that are not whole: what is in them is lost.
func (k *kind[T]) abandon() {
	for process, t := range k.open {
		delete(k.open, process)
		_ = t.file.Close()
	}
}
