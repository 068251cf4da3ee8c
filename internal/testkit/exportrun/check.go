package exportrun

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// NewTape makes a source of records.
func NewTape(list []wire.Record) recording.Source { return &randomrun.Tape{Records: list} }

// SnapshotOf returns the model's snapshot of records.
func SnapshotOf(list []wire.Record) *stats.Snapshot {
	m := stats.New(stats.Options{Started: Origin})
	for i := range list {
		m.Apply(&list[i])
	}
	return m.PublishSnapshot()
}

// DrawEndPart draws an end part of a run, and returns the time at which it begins.
func DrawEndPart(t *rapid.T, list []wire.Record) (src recording.Source, since uint64) {
	since = Origin + rapid.Uint64Range(0, 150_000).Draw(t, "since")
	return extract.CutRange(NewTape(list), extract.Options{Since: since}), since
}

// FuzzExport runs an export on nonsense.
func FuzzExport(f *testing.F, export func(t *testing.T, src recording.Source, most uint64)) {
	f.Helper()
	f.Add([]byte(strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz\x0a\x01\xff\x7f", 8)), uint64(0))
	f.Add(bytes.Repeat([]byte{1, 1, 10, 0, 2, 0, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9}, 16), uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, most uint64) { export(t, NewTape(NonsenseRecords(data)), most) })
}

// BenchExport exports a million records.
func BenchExport(b *testing.B, export func(w io.Writer, src recording.Source) error) {
	b.Helper()
	list := ChurnRecords(500_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := export(io.Discard, NewTape(list)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(list)), "ns/record")
}
