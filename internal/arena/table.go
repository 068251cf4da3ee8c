package arena

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Table is a CSV file of MiniMalloc with all its columns, including those without a meaning here.
type Table struct {
	Buffers []Buffer
	columns Columns
	header  []string
	rows    [][]string
}

// ReadTable reads a CSV file: a line with the names of columns, and a line for each buffer. Empty lines are ignored. The
// error names the line.
func ReadTable(r io.Reader) (*Table, error) {
	reader := csv.NewReader(r)
	reader.FieldsPerRecord = 0 // all lines have equally many
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("nothing is there: want id,lower,upper,size")
	}
	if err != nil {
		return nil, fmt.Errorf("read lifetimes: %w", err)
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff") // some spreadsheets write a byte order mark
	t := &Table{header: header}
	if t.columns, err = FindColumns(header); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return t, checkBuffers(t.Buffers)
		}
		if err != nil {
			return nil, fmt.Errorf("read lifetimes: %w", err)
		}
		b, err := t.columns.ReadBuffer(row)
		if err == nil {
			err = b.checkBuffer()
		}
		if err != nil {
			line, _ := reader.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		t.rows, t.Buffers = append(t.rows, row), append(t.Buffers, b)
	}
}

// SetAlignment sets the alignment, in bytes, of all buffers that have none; 0 changes nothing.
func (t *Table) SetAlignment(align uint64) {
	for i := range t.Buffers {
		if t.Buffers[i].Align == 0 {
			t.Buffers[i].Align = align
		}
	}
}

// WriteWithOffsets writes the table with a column offset, which replaces an existing one.
func (t *Table) WriteWithOffsets(w io.Writer, offsets []uint64) error {
	writer := csv.NewWriter(w)
	column := t.columns.offset
	line := func(fields []string, offset string) {
		if column < 0 {
			fields = append(slices.Clone(fields), offset)
		} else {
			fields = slices.Clone(fields)
			fields[column] = offset
		}
		_ = writer.Write(fields) // checked by Error below
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

// Columns are the indices of the columns of a MiniMalloc CSV file (google/minimalloc, converter.cc). Case is ignored in
// names.
type Columns struct {
	id, lower, upper, size  int
	alignment, gaps, offset int   // -1: no such column
	inclusive               int64 // 1 if ends are the last moment of a life: upper is one more
	last                    int   // the largest index
}

// FindColumns finds the columns in the first line. The error names a missing or duplicate column.
func FindColumns(header []string) (Columns, error) {
	c := Columns{alignment: -1, gaps: -1, offset: -1}
	end := -1
	wanted := []struct {
		names []string
		at    *int
		must  bool
	}{
		{[]string{"id", "buffer", "buffer_id"}, &c.id, true}, {[]string{"lower", "begin", "start"}, &c.lower, true},
		{[]string{"upper", "end"}, &c.upper, true}, {[]string{"size"}, &c.size, true}, {[]string{"alignment"}, &c.alignment, false},
		{[]string{"gaps"}, &c.gaps, false}, {[]string{"offset"}, &c.offset, false}, {[]string{"end"}, &end, false},
	}
	for _, w := range wanted {
		matches := func(field string) bool { return slices.Contains(w.names, strings.ToLower(strings.TrimSpace(field))) }
		*w.at = slices.IndexFunc(header, matches)
		switch {
		case *w.at < 0 && w.must:
			return c, fmt.Errorf("no column %s: want id,lower,upper,size", w.names[0])
		case *w.at >= 0 && slices.ContainsFunc(header[*w.at+1:], matches):
			return c, fmt.Errorf("two columns are called %s", strings.Join(w.names, " or "))
		}
		c.last = max(c.last, *w.at)
	}
	if end >= 0 {
		c.inclusive = 1
	}
	return c, nil
}

// ReadBuffer reads a line. It does not check whether the buffer can be placed.
func (c *Columns) ReadBuffer(fields []string) (b Buffer, err error) {
	if c.last >= len(fields) {
		return b, fmt.Errorf("%d columns: want %d", len(fields), c.last+1)
	}
	b.ID = fields[c.id]
	if b.Lower, err = parseTime("lower", fields[c.lower], 0); err != nil {
		return b, err
	}
	if b.Upper, err = parseTime("upper", fields[c.upper], c.inclusive); err != nil {
		return b, err
	}
	if b.Size, err = strconv.ParseUint(strings.TrimSpace(fields[c.size]), 10, 64); err != nil {
		return b, fmt.Errorf("size %.40q: want bytes", fields[c.size])
	}
	if c.alignment >= 0 {
		if b.Align, err = strconv.ParseUint(strings.TrimSpace(fields[c.alignment]), 10, 64); err != nil {
			return b, fmt.Errorf("alignment %.40q: want bytes", fields[c.alignment])
		}
	}
	if c.gaps >= 0 {
		for _, text := range strings.Fields(fields[c.gaps]) {
			gap, err := c.parseGapOfBuffer(text)
			if err != nil {
				return b, err
			}
			b.Gaps = append(b.Gaps, gap)
		}
	}
	return b, nil
}

// parseGapOfBuffer reads "3-7", a time in which nothing is needed, or "3-7@0:64", in which only these bytes are.
func (c *Columns) parseGapOfBuffer(text string) (g Gap, err error) {
	times, window, part := strings.Cut(text, "@")
	lower, upper, ok := strings.Cut(times, "-")
	if !ok {
		return g, fmt.Errorf("gap %.40q: want first-last or first-last@from:to", text)
	}
	if g.Lower, err = parseTime("gap", lower, 0); err != nil {
		return g, err
	}
	if g.Upper, err = parseTime("gap", upper, c.inclusive); err != nil || !part {
		return g, err
	}
	from, to, _ := strings.Cut(window, ":")
	g.From, err = strconv.ParseUint(from, 10, 64)
	if err == nil {
		g.To, err = strconv.ParseUint(to, 10, 64)
	}
	if err != nil {
		return g, fmt.Errorf("gap %.40q: want first-last or first-last@from:to", text)
	}
	return g, nil
}

// timeMax bounds times, so that no difference overflows.
const timeMax = 1 << 61

func parseTime(what, text string, more int64) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s %.40q: want a whole number", what, text)
	case n > timeMax || n < -timeMax:
		return 0, fmt.Errorf("%s %d: want a number of at most %d", what, n, int64(timeMax))
	}
	return n + more, nil
}
