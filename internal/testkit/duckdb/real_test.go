package duckdb

import (
	"cmp"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/parquet"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// recordedExamples returns the recorded runs of examples, and goes to an empty folder.
func recordedExamples(t *testing.T) (paths []string) {
	t.Helper()
	paths, err := filepath.Glob("../../replay/testdata/*.gmt")
	if err != nil || len(paths) < 3 {
		t.Fatalf("%d recordings: %v", len(paths), err)
	}
	for i := range paths {
		if paths[i], err = filepath.Abs(paths[i]); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(t.TempDir())
	return paths
}

// TestRealRuns puts all recorded runs of examples into one folder, as if two hosts had made them.
func TestRealRuns(t *testing.T) {
	paths := recordedExamples(t)
	var want []string
	for i, path := range paths {
		want = append(want, gather(t, path, hosts[i%len(hosts)])...)
	}
	const query = `
WITH lives AS (
    SELECT recording, number, count(*) FILTER (outcome = 'hit') AS hits, count(*) FILTER (outcome = 'miss') AS misses,
        coalesce(sum(granted) FILTER (leaked AND owns), 0)::BIGINT AS left_over, count(*) FILTER (leaked) AS leaks
    FROM 'runs/buffers/**/*.parquet' GROUP BY ALL
), sampled AS (
    SELECT recording, number, max(peak_in_use) AS peak FROM 'runs/samples/**/*.parquet' GROUP BY ALL
)
SELECT host, program, policy, process, lives.hits, lives.misses, left_over, leaks, peak
FROM 'runs/processes/**/*.parquet' JOIN lives USING (recording, number) JOIN sampled USING (recording, number)`
	have := ask(t, query)
	slices.Sort(want)
	slices.Sort(have)
	compareLines(t, query, want, have)
}

// gather exports a recording, and returns what the model says of its processes.
func gather(t *testing.T, path, host string) []string {
	t.Helper()
	reader, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	header := reader.Header()
	header.Host = host
	if err := parquet.WriteTables("runs", false, reader, tables.Options{Header: header}); err != nil {
		t.Fatal(err)
	}
	if err := reader.Rewind(); err != nil {
		t.Fatal(err)
	}
	m := stats.New(stats.Options{Started: header.ClockNS})
	var r wire.Record
	for {
		err := reader.Next(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Apply(&r)
	}
	var lines []string
	s := m.PublishSnapshot()
	for i := range s.Processes {
		p := &s.Processes[i]
		lines = append(lines, line(host, p.Program, header.Policy, cmp.Or(p.PID, int(p.Number)), p.Totals.Hits, p.Totals.Misses, p.Totals.InUse, p.Totals.LiveBuffers, p.Totals.PeakInUse))
	}
	return lines
}
