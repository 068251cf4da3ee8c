package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestMergeManyRecordings merges more than may be open at a time, in groups of groups.
func TestMergeManyRecordings(t *testing.T) {
	const most, many, each = 3, 3*3*3 + 2, 50
	dir := t.TempDir()
	var paths []string
	for i := range many {
		path := filepath.Join(dir, fmt.Sprint(i))
		w, err := trace.Create(path, trace.Header{ClockNS: 1000}, false)
		if err != nil {
			t.Fatal(err)
		}
		for n := range uint64(each) {
			r := wire.Record{Process: 1, Event: wire.Event{Kind: wire.KindSync, Time: 1000 + n*many + uint64(many-i), Link: uint64(i)}}
			if err := w.Append(&r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(trace.Footer{}); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	c := defaults()
	c.output = filepath.Join(dir, "out")
	if err := mergeFiles(paths, c, most); err != nil {
		t.Fatal(err)
	}
	reader, err := trace.Open(c.output)
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
