package main

import (
	"fmt"
	"runtime"
	"testing"
)

// TestMemoryOfARecording: at most 350 bytes stay in memory for each recording of a program, which are 500 with what the collector has not
// freed yet, and a runner holds one element for many.
func TestMemoryOfARecording(t *testing.T) {
	if n := batchSize(1_000_000); n != 1000 {
		t.Errorf("%d recordings of a million in a batch, want 1,000", n)
	}
	const n = 20_000
	w := &work{State: store(t.TempDir()), Run: "runs/1", Command: "report"}
	var names []string
	var batch []*entry
	for i := range n {
		e := &entry{Index: i, Path: fmt.Sprintf("/shared/runs/2026-11-30/node%04d-%d.gmt", i%500, i), Size: 4711, ID: digestOf(i) + "00000000", App: "train", Job: fmt.Sprint(i / 8)}
		e.Result = fmt.Sprintf("report/ab/%s.json", digestOf(i))
		if batch = append(batch, e); len(batch) == 1000 {
			if err := w.emitEntriesByProgram(t.Context(), batch, func(_, name string) { names = append(names, name) }); err != nil {
				t.Fatal(err)
			}
			batch = nil
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	at := 0
	list, err := w.readBatches(t.Context(), func(name *string) bool {
		more := at < len(names)
		if more {
			*name = names[at]
		}
		at++
		return more
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(list)
	used := int64(after.HeapAlloc-before.HeapAlloc) / n
	if t.Logf("%d bytes a recording", used); used < 100 || err != nil || len(list) != n || used > 350 {
		t.Errorf("%d bytes for each of %d recordings, want some, and 350 at most: %v", used, len(list), err)
	}
}
