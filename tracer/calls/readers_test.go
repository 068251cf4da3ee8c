package calls_test

import (
	"errors"
	"io"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestReadersOfGrowth: readers of the events of carried memory show its size as far as known, and count nothing but its
// release.
func TestReadersOfGrowth(t *testing.T) {
	p := newSampler(t)
	p.setUp()
	p.call("clEnqueueWriteBuffer", 0, queue, buf, 0, 0, 1000)
	p.buffer(buf+1, 50)
	p.do(call{name: "clCreateSubBuffer", result: buf + 2, args: []uint64{buf, 0, 0x1220, 9}, copies: [2][]byte{words(0, 10)}})
	p.call("clEnqueueWriteBuffer", 0, queue, buf, 0, 1000, 4000) // it grows
	grown := len(p.records)
	p.call("clReleaseMemObject", 0, buf)
	p.call("clReleaseMemObject", 0, buf+2)
	m, fold := stats.New(stats.Options{Started: 1}), heap.New(heap.Options{})
	var largest uint64
	for i := range p.records {
		r := &p.records[i]
		r.Process = 1
		m.Apply(r)
		fold.Apply(r)
		if i == grown-1 {
			got, o := m.Snapshot(), fold.Process(1)
			if s := got.Totals; s.InUse != 5050 || s.Requested != 5050 || s.LiveBuffers != 3 || s.PeakInUse != 5050 || s.Creates != 2 ||
				s.Misses != 1 || s.Releases != 0 || s.DriverReleases != 0 || s.DriverCreates != 1 || s.Uses != 2 || got.Unknown != 0 {
				t.Errorf("totals %+v, %d unknown events", s, got.Unknown)
			}
			for _, tag := range got.Tags {
				if tag.Name == "tag 99" && (tag.Live != 1 || tag.InUse != 5000 || tag.Creates != 0 || tag.PeakInUse != 5000) {
					t.Errorf("carried memory: %+v", tag)
				}
			}
			if o.InUse != 5050 || o.Object(1) == nil || o.Object(1).Size != 5000 || o.Object(3).Parent != 1 {
				t.Errorf("%+v", o)
			}
		}
		largest = max(largest, m.Snapshot().Totals.InUse)
	}
	if s := m.Snapshot(); s.Totals.InUse != 50 || s.Totals.Releases != 2 || s.Totals.DriverReleases != 1 || s.Unknown != 0 || largest != 5050 {
		t.Errorf("at the end %+v, at most %d", s.Totals, largest)
	}
	part := stats.New(stats.Options{Started: 1})
	src := extract.CutRange(&records.Tape{Records: p.records}, extract.Options{Since: p.records[grown].Time})
	for first := true; ; first = false {
		var r wire.Record
		err := src.Next(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if part.Apply(&r); !first && r.Kind == wire.KindRelease {
			break
		}
	}
	if s := part.Snapshot().Totals; s.InUse != 5050 || s.Creates != 0 {
		t.Errorf("a part that begins later: %+v", s)
	}
}

// TestRowsOfGrowth: carried memory is one row of the tables, with all of its uses.
func TestRowsOfGrowth(t *testing.T) {
	p := newSampler(t)
	p.setUp()
	p.call("clEnqueueWriteBuffer", 0, queue, buf, 0, 0, 1000)
	p.call("clEnqueueWriteBuffer", 0, queue, buf, 0, 1000, 4000)
	p.call("clReleaseMemObject", 0, buf)
	for i := range p.records {
		p.records[i].Process = 1
	}
	src := &records.Tape{Records: p.records}
	run, err := tables.SurveySource(src, tables.Options{Header: recording.Header{Program: "app", ClockNS: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	var rows []tables.Buffer
	err = run.MakeRows(src, nil, tables.Sink{Buffer: func(_ uint32, b *tables.Buffer) error {
		rows = append(rows, *b)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Uses != 2 || rows[0].Size != 5000 || !rows[0].Carried || rows[0].Ending != "released" {
		t.Errorf("rows %+v", rows)
	}
}
