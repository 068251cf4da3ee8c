// Package csv writes tables of recordings as comma-separated values (RFC 4180), for spreadsheets and pandas. It reads no
// clock.
package csv

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
)

// Tables are the names of the tables that can be written. The first is the default: a row per buffer can be sorted,
// filtered and summed as it is, while events must be paired first. And a spreadsheet of a million rows holds buffers of a
// run more than twice as long.
var Tables = []string{"buffers", "events", "samples"}

// WriteTable writes one of Tables, with a line of names first. Memory grows with what is alive, not with the recording. An
// error says that there is no such table, that the source could not be read, or that w failed.
func WriteTable(w io.Writer, table string, src recording.Source, o tables.Options) error {
	var sink tables.Sink
	var out *writer
	switch table {
	case "buffers":
		columns := bufferColumns()
		out = newWriter(w, columnNames(columns))
		sink.Buffer = func(process uint32, row *tables.Buffer) error { return writeRow(out, columns, process, row) }
	case "events":
		columns := eventColumns()
		out = newWriter(w, columnNames(columns))
		sink.Event = func(process uint32, row *tables.Event) error { return writeRow(out, columns, process, row) }
	case "samples":
		columns := sampleColumns()
		out = newWriter(w, columnNames(columns))
		sink.Sample = func(process uint32, row *tables.Sample) error { return writeRow(out, columns, process, row) }
	default:
		return fmt.Errorf("no table %q: want one of %s", table, strings.Join(Tables, ", "))
	}
	run, err := tables.SurveySource(src, o)
	if err != nil {
		return err
	}
	out.noteOrigins(run)
	if err := run.MakeRows(src, nil, sink); err != nil {
		return err
	}
	out.lines.Flush()
	return out.lines.Error()
}

type writer struct {
	lines   *csv.Writer
	fields  []string
	origin  map[uint32][]string // the first columns, by process
	failure error
}

// originNames are the columns with the origin of a row.
var originNames = []string{"host", "pid", "process"}

func newWriter(w io.Writer, names []string) *writer {
	out := &writer{lines: csv.NewWriter(w), origin: map[uint32][]string{}}
	out.lines.UseCRLF = true
	out.failure = out.lines.Write(append(append(out.fields, originNames...), names...))
	return out
}

func (w *writer) noteOrigins(run *tables.Run) {
	for _, p := range run.Processes() {
		w.origin[p.Number] = []string{safeForSpreadsheets(p.Host), strconv.Itoa(p.PID), strconv.FormatUint(uint64(p.Number), 10)}
	}
}

func writeRow[T any](w *writer, columns []column[T], process uint32, row *T) error {
	if w.failure != nil {
		return w.failure
	}
	w.fields = append(w.fields[:0], w.origin[process]...)
	for i := range columns {
		w.fields = append(w.fields, columns[i].value(row))
	}
	return w.lines.Write(w.fields)
}

// safeForSpreadsheets makes a text from a program harmless. Spreadsheets run a text that starts like a formula, so such a text gets an
// apostrophe in front. A text with apostrophes before such a start gets one, too, so that removing one apostrophe restores
// every text.
func safeForSpreadsheets(s string) string {
	rest := strings.TrimLeft(s, "'")
	if rest != "" && strings.IndexByte("=+-@\t\r\n", rest[0]) >= 0 {
		return "'" + s
	}
	return s
}

// formatSeconds writes ns as seconds with 9 decimals.
func formatSeconds(ns int64) string {
	sign, n := "", uint64(ns)
	if ns < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%09d", sign, n/1e9, n%1e9)
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// formatIfKnown returns the formatted number, or nothing for an unknown one.
func formatIfKnown(n *int64, format func(int64) string) string {
	if n == nil {
		return ""
	}
	return format(*n)
}

func formatBool(b bool) string { return strconv.FormatBool(b) }
