package csv

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func options() tables.Options {
	return tables.Options{Header: recording.Header{Host: "=node", Program: "app", ClockNS: randomrun.Start}}
}

// table writes a table and reads it again, rows by the names of their columns.
func table(t rapid.TB, name string, records []wire.Record) []map[string]string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTable(&b, name, &randomrun.Tape{Records: records}, options()); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, field := range line {
			row[lines[0][i]] = field
		}
		rows = append(rows, row)
	}
	return rows
}

func amount(t rapid.TB, row map[string]string, column string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(row[column], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// figures are what a table adds up to.
type figures struct{ hits, misses, inUse, live, peak int64 }

func ofBuffers(t rapid.TB, records []wire.Record) (f figures) {
	t.Helper()
	for _, row := range table(t, "buffers", records) {
		f.count(row["outcome"])
		if row["leaked"] == "true" || row["ending"] == "held at exit" {
			f.live++
			if row["owns"] == "true" {
				f.inUse += amount(t, row, "granted")
			}
		}
	}
	return f
}

func (f *figures) count(outcome string) {
	switch outcome {
	case "hit":
		f.hits++
	case "miss":
		f.misses++
	}
}

func ofEvents(t rapid.TB, records []wire.Record) (f figures) {
	t.Helper()
	granted := map[string]int64{}
	for _, row := range table(t, "events", records) {
		switch {
		case row["kind"] == "create" && row["outcome"] != "failed":
			f.count(row["outcome"])
			f.live++
			if row["op"] != "subbuffer" {
				granted[row["object"]] = amount(t, row, "granted")
				f.inUse += granted[row["object"]]
			}
		case row["kind"] == "release":
			f.live--
			f.inUse -= granted[row["object"]]
		}
		f.peak = max(f.peak, f.inUse)
		if row["host"] != "'=node" || row["time_s"] != formatSeconds(amount(t, row, "time_ns")) {
			t.Errorf("row %v", row)
		}
	}
	return f
}

func ofSamples(t rapid.TB, records []wire.Record) (f figures) {
	t.Helper()
	for _, row := range table(t, "samples", records) {
		f.hits += amount(t, row, "hits")
		f.misses += amount(t, row, "misses")
		f.inUse = amount(t, row, "in_use")
		f.peak = max(f.peak, amount(t, row, "peak_in_use"))
	}
	return f
}

// TestTablesAddUp recomputes the model's figures of random runs of one process.
func TestTablesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := randomrun.MakeRunWithoutSlabs(rapid.Uint64().Draw(t, "seed"), 1, rapid.IntRange(0, 150).Draw(t, "steps"))
		s := exportrun.SnapshotOf(records)
		want := figures{int64(s.Totals.Hits), int64(s.Totals.Misses), int64(s.Totals.InUse), int64(s.Totals.LiveBuffers), int64(s.Totals.PeakInUse)}
		if have := ofEvents(t, records); have != want {
			t.Errorf("events say %+v, the model %+v", have, want)
		}
		live := want.live
		if want.live = 0; ofSamples(t, records) != want {
			t.Errorf("samples say %+v, the model %+v", ofSamples(t, records), want)
		}
		if want.live, want.peak = live, 0; ofBuffers(t, records) != want {
			t.Errorf("buffers say %+v, the model %+v", ofBuffers(t, records), want)
		}
	})
}

// TestFieldsOfUsesFollowTheCommand: the fields of a use mean what its command makes of them.
func TestFieldsOfUsesFollowTheCommand(t *testing.T) {
	use := func(op wire.Command, e wire.Event) wire.Record {
		e.Kind, e.Op, e.Time, e.Object, e.Size = wire.KindUse, uint8(op), randomrun.Start+1, 1, 64
		return wire.Record{Process: 1, Thread: 7, Event: e}
	}
	site := wire.Record{Process: 1, Event: wire.Event{Kind: wire.KindSite, Time: randomrun.Start, Tag: 3}, Payload: []byte("copy\tcopy.c\t7\tcopier+0x1\n")}
	rows := table(t, "events", []wire.Record{
		site,
		use(wire.CommandKernel, wire.Event{Granted: 5, Duration: 1, Flags: wire.FlagReads, Tag: 3}),
		use(wire.CommandKernel, wire.Event{Granted: 5}),
		use(wire.CommandCopy, wire.Event{Granted: 16, Tag: 3}),
		use(wire.CommandRead, wire.Event{Tag: 3}),
		use(wire.CommandRead, wire.Event{Granted: 16, Flags: wire.FlagScattered}),
		use(wire.CommandUnmap, wire.Event{Flags: wire.FlagScattered}),
	})
	var got []string
	for _, row := range rows[1:] {
		got = append(got, fmt.Sprintf("%s: granted %s offset %q argument %q scattered %s duration %s at %q", row["op"], row["granted"], row["offset"],
			row["argument"], row["scattered"], row["duration_ns"], row["site"]))
	}
	want := []string{
		`kernel: granted 5 offset "" argument "0" scattered false duration 0 at ""`,
		`kernel: granted 5 offset "" argument "" scattered false duration 0 at ""`,
		`copy: granted 0 offset "16" argument "" scattered false duration 0 at "copy.c:7 copy"`,
		`read: granted 0 offset "0" argument "" scattered false duration 0 at ""`,
		`read: granted 0 offset "16" argument "" scattered true duration 0 at ""`,
		`unmap: granted 0 offset "" argument "" scattered true duration 0 at ""`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLines(t *testing.T) {
	records := randomrun.MakeRunWithoutSlabs(1, 1, 50)
	site := wire.Record{Process: 1, Event: wire.Event{Time: records[0].Time, Kind: wire.KindSite, Tag: 1}, Payload: []byte("-[A b:\"c\", d]\ta.m\t0\t\n")}
	records = append([]wire.Record{site}, records[10:]...) // without what introduces the process
	for _, name := range Tables {
		var b bytes.Buffer
		if err := WriteTable(&b, name, &randomrun.Tape{Records: records}, options()); err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(b.String(), "\r\n")
		if !strings.HasPrefix(lines[0], "host,pid,process,") || strings.Count(b.String(), "\n") != len(lines)-1 {
			t.Errorf("%s: %q", name, lines[0])
		}
		if quoted := strings.Contains(b.String(), `"'-[A b:""c"", d]`); quoted != (name != "samples") {
			t.Errorf("%s: quoted: %v", name, quoted)
		}
	}
}

func TestSeconds(t *testing.T) {
	for ns, want := range map[int64]string{0: "0.000000000", 1: "0.000000001", 1_500_000_000: "1.500000000", -1: "-0.000000001", -1 << 63: "-9223372036.854775808"} {
		if got := formatSeconds(ns); got != want {
			t.Errorf("%d: %s, want %s", ns, got, want)
		}
	}
}

// unescaped returns what a field holds that Write made safe for spreadsheets.
func unescaped(field string) string {
	if rest, found := strings.CutPrefix(field, "'"); found && safeForSpreadsheets(rest) == field {
		return rest
	}
	return field
}

// FuzzText: no text is read as a formula, and each can be had back.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "'", "=1+1", "'=1", "''@x", "-", "plain", "+\n", "\t="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		field := safeForSpreadsheets(s)
		if field != "" && strings.IndexByte("=+-@\t\r\n", field[0]) >= 0 {
			t.Errorf("%q becomes %q", s, field)
		}
		if got := unescaped(field); got != s {
			t.Errorf("%q becomes %q, which means %q", s, field, got)
		}
	})
}

func TestErrors(t *testing.T) {
	list := randomrun.MakeRunWithoutSlabs(1, 1, 5000)
	for _, name := range Tables {
		for _, left := range []int{0, 100, 9000} {
			if err := WriteTable(&records.Full{Left: left}, name, &randomrun.Tape{Records: list}, options()); !errors.Is(err, records.ErrFull) {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}
	if err := WriteTable(io.Discard, "tags", &randomrun.Tape{}, options()); err == nil || !strings.Contains(err.Error(), `no table "tags": want one of buffers, events, samples`) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkEvents(b *testing.B) {
	records := randomrun.MakeRunWithoutSlabs(1, 4, 500_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := WriteTable(io.Discard, "events", &randomrun.Tape{Records: records}, options()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(records))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
