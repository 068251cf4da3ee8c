package plan

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Table is a CSV of MiniMalloc with all its columns, also those that mean nothing here.
type Table struct {
	Buffers []Buffer
	columns Columns
	header  []string
	rows    [][]string
}

// Read reads a CSV: a line with the names of columns, and one for each buffer. Empty lines count for nothing. The error
// names the line.
func Read(r io.Reader) (*Table, error) {
	reader := csv.NewReader(r)
	reader.FieldsPerRecord = 0 // as many in all lines
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("nothing is there: want id,lower,upper,size")
	}
	if err != nil {
		return nil, fmt.Errorf("read lifetimes: %w", err)
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff") // what some spreadsheets begin with
	t := &Table{header: header}
	if t.columns, err = ReadColumns(header); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return t, checkAll(t.Buffers)
		}
		if err != nil {
			return nil, fmt.Errorf("read lifetimes: %w", err)
		}
		b, err := t.columns.Buffer(row)
		if err == nil {
			err = b.check()
		}
		if err != nil {
			line, _ := reader.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		t.rows, t.Buffers = append(t.rows, row), append(t.Buffers, b)
	}
}

// Align sets the alignment, in bytes, of all buffers that have none yet; 0 leaves them as they are.
func (t *Table) Align(align uint64) {
	for i := range t.Buffers {
		if t.Buffers[i].Align == 0 {
			t.Buffers[i].Align = align
		}
	}
}

// Write writes the table with a column offset, which takes the place of one that was there.
func (t *Table) Write(w io.Writer, offsets []uint64) error {
	writer := csv.NewWriter(w)
	at := t.columns.offset
	line := func(fields []string, offset string) {
		if at < 0 {
			fields = append(slices.Clone(fields), offset)
		} else {
			fields = slices.Clone(fields)
			fields[at] = offset
		}
		_ = writer.Write(fields) // Error tells
	}
	line(t.header, "offset")
	for i, row := range t.rows {
		line(row, strconv.FormatUint(offsets[i], 10))
	}
	writer.Flush()
	if err := writer.Error(); err != nil {
		return fmt.Errorf("write offsets: %w", err)
	}
	return nil
}
