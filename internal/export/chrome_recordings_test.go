package export

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	part "codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/chromelint"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// totals returns the model's figures of the records up to a time.
func totals(t *testing.T, r *recording.Reader, until uint64) stats.Totals {
	t.Helper()
	if err := r.Rewind(); err != nil {
		t.Fatal(err)
	}
	m := stats.New(stats.Options{Started: r.Header().ClockNS})
	var record wire.Record
	for {
		err := r.Next(&record)
		if errors.Is(err, io.EOF) || err == nil && record.Time > until {
			return m.Snapshot().Totals
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Apply(&record)
	}
}

// TestChromeOfRecordings exports real runs, whole and in parts, and holds the figures to the model's.
func TestChromeOfRecordings(t *testing.T) {
	files, err := filepath.Glob("../replay/testdata/*.gmt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "../recording/testdata/version1.gmt") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, err := recording.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			checkRecording(t, r)
		})
	}
}

func checkRecording(t *testing.T, r *recording.Reader) {
	t.Helper()
	seen, err := surveyRecording(r, &Facts{ClockNS: r.Header().ClockNS})
	if err != nil {
		t.Fatal(err)
	}
	first, length := seen.base, seen.last-seen.base
	for _, some := range []part.Options{
		{}, {Since: first + length/3}, {Until: first + length/2}, {Since: first + length/2, Until: first + 3*length/4},
		{Since: first + length/4, Until: first + length/4 + 1}, {Since: seen.last + 1},
	} {
		until := some.Until
		if until == 0 {
			until = seen.last
		}
		want := totals(t, r, until)
		var b bytes.Buffer
		report, err := WriteChrome(&b, part.CutRange(r, some), FactsOfHeader(r.Header()), TraceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, problems := chromelint.LintTrace(&b)
		if len(problems) > 0 {
			t.Errorf("%+v: %v", some, problems)
		}
		if got.Last["mem in_use"] != float64(want.InUse) || got.Last["mem cached"] != float64(want.Cached) {
			t.Errorf("%+v: ends with %v, want %d in use and %d cached", some, got.Last, want.InUse, want.Cached)
		}
		if some.Until > 0 && some.Until < seen.last && report.Leaks > 0 {
			t.Errorf("%+v: %d leaks, though the run goes on", some, report.Leaks)
		}
		if some.Since == 0 && (got.PeakInUse != want.PeakInUse || uint64(got.Hits) != want.Hits || uint64(got.Misses) != want.Misses) {
			t.Errorf("%+v: %+v, want a peak of %d, %d hits, %d misses", some, got, want.PeakInUse, want.Hits, want.Misses)
		}
	}
}
