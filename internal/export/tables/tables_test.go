package tables_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func options() tables.Options {
	return tables.Options{Header: recording.Header{
		Host: "a", Program: "app", ClockNS: randomrun.Start, Created: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}}
}

// sums are what the rows of a process add up to.
type sums struct {
	hits, misses, live, inUse int64 // of buffers
	sampled                   tables.Sample
	cached                    int64
	row                       tables.Process
	leaked                    bool // some buffer
}

// add adds up rows, and checks what holds for each.
func add(t rapid.TB, records []wire.Record) map[uint32]*sums {
	t.Helper()
	src := &randomrun.Tape{Records: records}
	run, err := tables.SurveySource(src, options())
	if err != nil {
		t.Fatal(err)
	}
	all := map[uint32]*sums{}
	for _, p := range run.Processes() {
		all[p.Number] = &sums{}
	}
	err = run.MakeRows(src, nil, tables.Sink{
		Buffer:  func(process uint32, b *tables.Buffer) error { all[process].buffer(t, b); return nil },
		Stay:    func(process uint32, b *tables.Stay) error { all[process].stay(t, b); return nil },
		Sample:  func(process uint32, b *tables.Sample) error { all[process].sample(t, b); return nil },
		Process: func(process uint32, b *tables.Process) error { all[process].row = *b; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (s *sums) buffer(t rapid.TB, b *tables.Buffer) {
	switch b.Outcome {
	case "hit":
		s.hits++
	case "miss":
		s.misses++
	}
	left := b.Leaked || b.Ending == "held at exit"
	if left {
		s.live++
		if b.Owns {
			s.inUse += b.Granted
		}
	}
	s.leaked = s.leaked || b.Leaked
	if (b.Released == nil) != left || b.Released != nil && *b.Released-b.Created != *b.Lifetime {
		t.Errorf("buffer %d was released at %v, and leaked %v", b.Object, b.Released, b.Leaked)
	}
	if (b.Uses == 0) != (b.FirstUse == nil) || b.Uses > 0 && (*b.FirstUse > *b.LastUse || *b.FirstUse < b.CreatedNS) {
		t.Errorf("buffer %d was used %d times, from %v", b.Object, b.Uses, b.FirstUse)
	}
}

func (s *sums) stay(t rapid.TB, b *tables.Stay) {
	if b.Ending == "end" && b.State != "slab" {
		s.cached += b.Size
	}
	if (b.Ended == nil) != (b.Ending == "end") || b.Ended != nil && *b.Ended-b.Began != *b.Stayed {
		t.Errorf("block %d ended at %v, and its end is %s", b.Block, b.Ended, b.Ending)
	}
}

func (s *sums) sample(t rapid.TB, b *tables.Sample) {
	if s.sampled.Time >= b.Time || b.PeakInUse < b.InUse || b.Requested > b.InUse {
		t.Errorf("sample %+v after %d", b, s.sampled.Time)
	}
	peak, hits, misses := max(s.sampled.PeakInUse, b.PeakInUse), s.sampled.Hits+b.Hits, s.sampled.Misses+b.Misses
	s.sampled = *b
	s.sampled.PeakInUse, s.sampled.Hits, s.sampled.Misses = peak, hits, misses
}

// TestRowsSayWhatTheModelSays adds up the rows of random runs.
func TestRowsSayWhatTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := randomrun.MakeRunWithoutSlabs(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 3).Draw(t, "processes"),
			rapid.IntRange(0, 3000).Draw(t, "steps"))
		snapshot, all := exportrun.SnapshotOf(records), add(t, records)
		for i := range snapshot.Processes {
			p := &snapshot.Processes[i]
			s, totals := all[p.Number], &p.Totals
			if s.leaked && p.WasAborted() {
				t.Errorf("process %d leaked, and was aborted", p.Number)
			}
			want := fmt.Sprint(p.PID, p.Status, totals.Hits, totals.Misses, totals.LiveBuffers, totals.InUse, totals.PeakInUse, totals.Cached+totals.Cooling)
			for _, have := range []string{
				fmt.Sprint(s.row.PID, *s.row.Status, s.hits, s.misses, s.live, s.inUse, s.sampled.PeakInUse, s.cached),
				fmt.Sprint(s.row.PID, *s.row.Status, s.row.Hits, s.row.Misses, s.live, s.row.InUse, s.row.PeakInUse, s.sampled.Cached+s.sampled.Cooling),
				fmt.Sprint(s.row.PID, *s.row.Status, s.sampled.Hits, s.sampled.Misses, s.live, s.sampled.InUse, s.sampled.PeakInUse, s.cached),
			} {
				if have != want {
					t.Errorf("process %d: rows say %s, the model %s", p.Number, have, want)
				}
			}
		}
	})
}

// FuzzWalk gives it nonsense: samples stay bounded, ends come after starts or are not there, and nothing fails.
func FuzzWalk(f *testing.F) {
	f.Add([]byte(strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz\x0a\x01\xff\x7f", 8)))
	f.Add(bytes.Repeat([]byte{1, 1, 10, 0, 2, 0, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9}, 16))
	f.Fuzz(func(t *testing.T, data []byte) {
		src := &randomrun.Tape{Records: exportrun.NonsenseRecords(data)}
		run, err := tables.SurveySource(src, tables.Options{})
		if err != nil {
			t.Fatal(err)
		}
		samples, events := map[uint32]int{}, 0
		err = run.MakeRows(src, nil, tables.Sink{
			Event:   func(uint32, *tables.Event) error { events++; return nil },
			Buffer:  func(uint32, *tables.Buffer) error { return nil },
			Stay:    func(uint32, *tables.Stay) error { return nil },
			Sample:  func(process uint32, _ *tables.Sample) error { samples[process]++; return nil },
			Process: func(uint32, *tables.Process) error { return nil },
			Tag:     func(uint32, *tables.Tag) error { return nil },
		})
		if err != nil || events != len(src.Records) {
			t.Fatalf("%d events of %d: %v", events, len(src.Records), err)
		}
		for process, n := range samples {
			if n > 1001 {
				t.Fatalf("process %d has %d samples", process, n)
			}
		}
	})
}

func TestSinkErrors(t *testing.T) {
	full := errors.New("full")
	rows := 0
	fail := func() error {
		if rows++; rows == 3 {
			return full
		}
		return nil
	}
	for name, sink := range map[string]tables.Sink{
		"events":    {Event: func(uint32, *tables.Event) error { return fail() }},
		"buffers":   {Buffer: func(uint32, *tables.Buffer) error { return fail() }},
		"blocks":    {Stay: func(uint32, *tables.Stay) error { return fail() }},
		"samples":   {Sample: func(uint32, *tables.Sample) error { return fail() }},
		"processes": {Process: func(uint32, *tables.Process) error { return fail() }},
		"tags":      {Tag: func(uint32, *tables.Tag) error { return fail() }},
	} {
		src := &randomrun.Tape{Records: randomrun.MakeRunWithoutSlabs(1, 4, 1000)}
		run, err := tables.SurveySource(src, options())
		if err != nil {
			t.Fatal(err)
		}
		rows = 0
		if err := run.MakeRows(src, nil, sink); !errors.Is(err, full) || rows != 3 {
			t.Errorf("%s: error %v after %d rows", name, err, rows)
		}
	}
}

// broken is a source that cannot be read.
type broken struct{ next, rewind error }

func (b broken) Next(*wire.Record) error { return b.next }
func (b broken) Rewind() error           { return b.rewind }

func TestSourceErrors(t *testing.T) {
	bad := errors.New("bad")
	for _, src := range []recording.Source{broken{next: bad}, broken{next: io.EOF, rewind: bad}} {
		if _, err := tables.SurveySource(src, options()); !errors.Is(err, bad) {
			t.Errorf("error %v", err)
		}
	}
	run, err := tables.SurveySource(&randomrun.Tape{}, options())
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []recording.Source{broken{next: bad}, broken{next: io.EOF, rewind: bad}} {
		if err := run.MakeRows(src, nil, tables.Sink{}); !errors.Is(err, bad) {
			t.Errorf("error %v", err)
		}
	}
}
