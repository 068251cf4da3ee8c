package parquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// WriteRows writes one table into one file. The fields of T name the columns as parquet-go has it.
func WriteRows[T any](w io.Writer, rows []T) error {
	out := parquet.NewGenericWriter[T](w, writing...)
	_, err := out.Write(rows)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	return nil
}
