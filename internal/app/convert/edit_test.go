package convert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestMergeManyRecordings merges more than may be open together, in groups of groups.
func TestMergeManyRecordings(t *testing.T) {
	const most, many, each = 3, 3*3*3 + 2, 50
	dir := t.TempDir()
	var paths []string
	for i := range many {
		path := filepath.Join(dir, fmt.Sprint(i))
		var list []wire.Record
		for n := range uint64(each) {
			e := wire.Event{Kind: wire.KindSync, Time: 1000 + n*many + uint64(many-i), Link: uint64(i)}
			list = append(list, wire.Record{Process: 1, Event: e})
		}
		labtest.Write(t, path, recording.Header{ClockNS: 1000}, list, recording.Footer{})
		paths = append(paths, path)
	}
	output := files.Output{Path: filepath.Join(dir, "out")}
	if err := mergeRecordings(paths, output, most); err != nil {
		t.Fatal(err)
	}
	reader, err := recording.Open(output.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	var r wire.Record
	for n := range uint64(many * each) {
		if err := reader.Next(&r); err != nil {
			t.Fatal(err)
		}
		if r.Time != 1001+n || uint64(r.Process) != r.Link+1 {
			t.Fatalf("record %d is of process %d at %d, of recording %d", n, r.Process, r.Time, r.Link)
		}
	}
	header := reader.Header()
	if footer, whole := reader.Footer(); !whole || footer.Events != many*each || len(header.Merged) != many {
		t.Errorf("%d events, %d origins", footer.Events, len(header.Merged))
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != many+1 {
		t.Errorf("%d files are left, %v; want %d", len(left), err, many+1)
	}
}

// TestTrimmedRecording: a part knows that the run goes on behind it, so that what lives there is no leak, and its blocks
// have summaries.
func TestTrimmedRecording(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	var list []wire.Record
	for n := range uint64(10) {
		e := wire.Event{Kind: wire.KindCreate, Time: 2000 + n, Object: n + 1, Size: 100, Granted: 100, Outcome: wire.OutcomeDriver}
		list = append(list, wire.Record{Process: 1, Event: e})
	}
	labtest.Write(t, whole, recording.Header{ClockNS: 1000}, list, recording.Footer{EndedNS: 3000})
	for _, test := range []struct {
		until   time.Duration
		cut     bool
		creates uint64
		leaks   int
	}{{until: 1005, cut: true, creates: 3}, {until: 1500, cut: true, creates: 7}, {until: 2000, creates: 7, leaks: 1}, {creates: 7, leaks: 1}} {
		output := files.Output{Path: filepath.Join(dir, "part"), Force: true}
		if err := TrimRecording(whole, files.Part{Since: 1003, Until: test.until}, output); err != nil {
			t.Fatal(err)
		}
		reader, err := recording.Open(output.Path)
		if err != nil {
			t.Fatal(err)
		}
		footer, _ := reader.Footer()
		if footer.Cut != test.cut {
			t.Errorf("until %d: cut is %v", test.until, footer.Cut)
		}
		if len(footer.Index) != 1 || footer.Index[0].Summary == nil {
			t.Fatalf("no summary: %+v", footer.Index)
		}
		if s := footer.Index[0].Summary; s.Creates != test.creates || s.InUse != 100*(3+test.creates) {
			t.Errorf("until %d: summary %+v", test.until, s)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		if reader, err = recording.Open(output.Path); err != nil {
			t.Fatal(err)
		}
		header := reader.Header()
		a, err := analysis.Analyse(reader, analysis.Options{Header: header, Footer: footer, Whole: true})
		if err = errors.Join(err, reader.Close()); err != nil || len(a.Leaks) != test.leaks {
			t.Errorf("until %d: %v, leaks %+v", test.until, err, a.Leaks)
		}
	}
}
