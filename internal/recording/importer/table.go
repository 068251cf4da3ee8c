package importer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// table reads the lines of a CSV file. The log of a program that failed may be cut off, and contain lines of other programs,
// which table skips and counts.
type table struct {
	in     *bufio.Reader
	of     string // the rows that the file should have
	want   string // the form of its lines, for errors
	facts  Facts
	number int
	fields []string

	some    bool // a line was read
	open    bool // the last line has no end
	cut     bool // the last line is incomplete
	torn    bool // the last line was skipped
	taken   uint64
	skipped tally
	why     error // what is wrong with the first line that is skipped
	full    error // why reading ended early
}

func newTable(r io.Reader, of, want string, facts Facts) *table {
	return &table{in: bufio.NewReaderSize(r, lineMax), of: of, want: want, facts: facts}
}

// nextLine reads the fields of the next line that is not blank. After the last it returns io.EOF, or why the file cannot be
// imported.
func (t *table) nextLine() ([]string, error) {
	for {
		line, err := t.nextText()
		if err != nil {
			return nil, err
		}
		var ok bool
		if t.fields, ok = splitFields(t.fields[:0], line); ok {
			t.taken++
			return t.fields, nil
		}
		t.skipLine(errors.New("a comma or a quote within quotes: want plain fields"))
	}
}

// nextText reads the next line that is not blank.
func (t *table) nextText() (string, error) {
	for !t.open {
		text, err := t.readLine()
		switch {
		case errors.Is(err, errLong):
			t.skipLine(err)
			continue
		case err != nil:
			return "", err
		}
		if line := strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")); line != "" {
			t.some = true
			return line, nil
		}
	}
	return "", t.endOfTableError()
}

var errLong = fmt.Errorf("a line of more than %d bytes", lineMax)

// readLine reads a line. It sets open for a last line without an end, which a truncated gzip file may have, too.
func (t *table) readLine() (string, error) {
	line, err := t.in.ReadSlice('\n')
	text, long := string(line), false
	for errors.Is(err, bufio.ErrBufferFull) {
		long = true
		_, err = t.in.ReadSlice('\n')
	}
	t.open = err != nil
	t.cut = errors.Is(err, io.ErrUnexpectedEOF)
	if errors.Is(err, errUnpacks) {
		t.full, t.cut = err, true
	}
	if err != nil && !t.cut && t.full == nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read: %w", err)
	}
	t.number++
	if long {
		return "", errLong
	}
	return text, nil
}

var errRoom = errors.New("there is no room for more")

// chargeLineIfRoom reports whether there is memory for a line's data. If not, reading ends.
func (t *table) chargeLineIfRoom(bytes int) bool {
	if !t.facts.keep.Charge(int64(bytes)) {
		t.open, t.cut, t.full = true, true, errRoom
	}
	return t.full == nil
}

// skipAndNoteError counts the latest line as skipped, and notes what is wrong with it.
func (t *table) skipAndNoteError(why error) {
	t.taken--
	t.skipLine(why)
}

func (t *table) skipLine(why error) {
	if t.why == nil {
		t.why = t.lineError("%w", why)
	}
	if t.open {
		t.cut, t.torn = true, true
		return
	}
	t.skipped.noteLine(t.number)
}

// endOfTableError returns io.EOF, or an error if the file has no or too few rows.
func (t *table) endOfTableError() error {
	switch {
	case !t.some && t.why == nil:
		return fmt.Errorf("nothing is there: %s", t.want)
	case t.why == nil || t.taken > 0 && (t.facts.chosen || t.skipped.count <= t.taken):
		return io.EOF
	case t.facts.looks != "":
		return fmt.Errorf("%w: it is %s", t.why, t.facts.looks)
	case t.taken == 0:
		return t.why
	}
	return fmt.Errorf("%w: %d of %d lines are not of %s: --format imports the others", t.why, t.skipped.count, t.skipped.count+t.taken, t.of)
}

func (t *table) lineError(format string, args ...any) error {
	return fmt.Errorf("line %d: %w", t.number, fmt.Errorf(format, args...))
}

// remarks describe what was skipped.
func (t *table) remarks() []string {
	var list []string
	if t.skipped.count > 0 {
		list = append(list, fmt.Sprintf("%s skipped: not of %s, first %v", units.Count(t.skipped.count, "line"), t.of, t.why))
	}
	switch {
	case t.full != nil:
		list = append(list, fmt.Sprintf("left out from line %d on: %v", t.number, t.full))
	case t.torn:
		list = append(list, fmt.Sprintf("1 line cut at the end: line %d", t.number))
	case t.cut:
		list = append(list, fmt.Sprintf("cut off in line %d", t.number))
	}
	return list
}

// tally counts lines of a kind.
type tally struct {
	count uint64
	first int
}

func (t *tally) noteLine(line int) {
	if t.count == 0 {
		t.first = line
	}
	t.count++
}

// splitFields appends the fields of a line, which contain no commas in these formats. False: a field has wrong quotes.
func splitFields(fields []string, line string) ([]string, bool) {
	ok := true
	for field := range strings.SplitSeq(line, ",") {
		field = strings.TrimSpace(field)
		if len(field) >= 2 && strings.HasPrefix(field, `"`) && strings.HasSuffix(field, `"`) {
			field = field[1 : len(field)-1]
		}
		ok = ok && !strings.Contains(field, `"`)
		fields = append(fields, field)
	}
	return fields, ok
}
