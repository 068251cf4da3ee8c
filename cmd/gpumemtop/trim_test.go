package main

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestTrimmedRecording: a part knows that the run goes on behind it, so that what lives there is no leak, and its blocks
// have summaries.
func TestTrimmedRecording(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	w, err := trace.Create(whole, trace.Header{ClockNS: 1000}, false)
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(10) {
		r := wire.Record{Process: 1, Event: wire.Event{
			Kind: wire.KindCreate, Time: 2000 + n, Object: n + 1, Size: 100, Granted: 100, Outcome: wire.OutcomeDriver,
		}}
		if err := w.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(trace.Footer{EndedNS: 3000}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		until   time.Duration
		cut     bool
		creates uint64
		leaks   int
	}{{until: 1005, cut: true, creates: 3}, {until: 1500, creates: 7, leaks: 1}, {creates: 7, leaks: 1}} {
		c := defaults()
		c.since, c.until, c.force, c.output = 1003, test.until, true, filepath.Join(dir, "part")
		trimFile(t, whole, c)
		reader, err := trace.Open(c.output)
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
		a, err := analyseFile(c.output, defaults())
		if err != nil || len(a.Leaks) != test.leaks {
			t.Errorf("until %d: %v, leaks %+v", test.until, err, a.Leaks)
		}
	}
}

func trimFile(t *testing.T, path string, c *config) {
	t.Helper()
	in, err := openInput(path, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(trim(in, c), in.close()); err != nil {
		t.Fatal(err)
	}
}
