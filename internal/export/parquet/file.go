package parquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// WriteRows writes one table into one file. The fields of T name the columns by parquet-go's tags.
func WriteRows[T any](w io.Writer, rows []T) error {
	out := parquet.NewGenericWriter[T](w, writerOptions...)
	_, err := out.Write(rows)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	return nil
}
