package lake

import (
	"reflect"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

var created = time.Date(2026, 3, 1, 23, 59, 59, 0, time.UTC)

func header() recording.Header {
	return recording.Header{
		Host: "node", Program: "app", Policy: "slab", ClockNS: randomrun.Start, Created: created,
		Identity: recording.Identity{User: "ada", Place: wire.Place{Job: "17", Rank: "3"}, Revision: "abc", Labels: map[string]string{"team": "x"}},
	}
}

// TestRowsAgreeWithTheModel compares the rows with what screens show of the same records.
func TestRowsAgreeWithTheModel(t *testing.T) {
	for seed := range uint64(8) {
		records := randomrun.MakeRunWithoutSlabs(seed, 1+int(seed%3), 2000)
		rows, err := CollectRows(&randomrun.Tape{Records: records}, header())
		if err != nil {
			t.Fatal(err)
		}
		m := stats.New(stats.Options{Started: randomrun.Start})
		for i := range records {
			m.Apply(&records[i])
		}
		s := m.PublishSnapshot()
		if len(rows) != len(s.Processes) {
			t.Fatalf("%d processes, want %d", len(rows), len(s.Processes))
		}
		findings := 0
		for i, r := range rows {
			p, run := &s.Processes[i], &r.Run
			if run.Job != "17" || run.Date[:8] != "2026-03-" || run.User != "ada" || run.Rank != "3" || run.Revision != "abc" || run.Labels["team"] != "x" || run.Host != "node" || run.Policy != "slab" {
				t.Errorf("%+v", run)
			}
			var sum Site
			for _, site := range r.Sites {
				sum.Creates += site.Creates
				sum.Hits += site.Hits
				sum.Misses += site.Misses
				sum.Leaked += site.Leaked
				if site.Idle < 0 || site.Idle > site.Held || site.PeakInUse > run.ValueOfFigure(figures.PeakInUse) || site.Requested > site.Granted {
					t.Errorf("%+v", site)
				}
			}
			var misses int64
			for _, miss := range r.Misses {
				misses += miss.Count
			}
			want := []int64{int64(p.Totals.Hits), int64(p.Totals.Misses), int64(p.Totals.Misses), int64(p.Totals.PeakInUse), int64(p.Totals.PeakReserved), int64(p.Totals.Creates)}
			if have := []int64{sum.Hits, sum.Misses, misses, run.ValueOfFigure(figures.PeakInUse), run.ValueOfFigure(figures.PeakReserved),
				run.ValueOfFigure(figures.Creates)}; !reflect.DeepEqual(have, want) {
				t.Errorf("seed %d, process %d: %v, want %v", seed, i, have, want)
			}
			left := run.ValueOfFigure(figures.InUse)
			if p.WasAborted() {
				left = 0
			}
			if run.ValueOfFigure(figures.Leaked) != sum.Leaked || sum.Leaked != left || len(r.Samples) > samplesMax+1 {
				t.Errorf("leaked %d, %d of sites, in use %d; %d samples", run.ValueOfFigure(figures.Leaked), sum.Leaked,
					run.ValueOfFigure(figures.InUse), len(r.Samples))
			}
			findings += len(r.Findings)
		}
		if findings != len(s.Findings) {
			t.Errorf("%d findings, want %d", findings, len(s.Findings))
		}
		again, err := CollectRows(&randomrun.Tape{Records: records}, header())
		if err != nil || !reflect.DeepEqual(rows, again) {
			t.Errorf("another result the second time (%v)", err)
		}
	}
}

// TestIdleTime is that before the first use and after the end of the last.
func TestIdleTime(t *testing.T) {
	at := func(ms uint64, e wire.Event) wire.Record {
		e.Time = randomrun.Start + ms*1e6
		return wire.Record{Process: 1, Event: e}
	}
	program := wire.ProcessFields{PID: 7}.Record([]byte("/bin/blur\x00"))
	program.Process, program.Time = 1, randomrun.Start
	module := wire.Record{Process: 1, Event: wire.Event{Time: randomrun.Start, Kind: wire.KindModule}, Payload: []byte("/bin/blur\x00c0ffee")}
	rows, err := CollectRows(&randomrun.Tape{Records: []wire.Record{
		program, module,
		at(0, wire.CreateFields{Outcome: wire.OutcomeMiss, Object: 1, Requested: 100, Granted: 100}.Event()),
		at(200, wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandKernel), Object: 1, Link: 3}),
		at(700, wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandKernel), Object: 1, Link: 3}),
		at(710, wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncFinish), Link: 3, Duration: 90e6}),
		at(1000, wire.Event{Kind: wire.KindRelease, Object: 1, Outcome: wire.OutcomeDriver}),
	}}, header())
	if err != nil || len(rows) != 1 || len(rows[0].Sites) != 1 {
		t.Fatalf("%v, %+v", err, rows)
	}
	if s := rows[0].Sites[0]; s.Held != 100 || s.Idle != 40 {
		t.Errorf("held %v, idle %v, want 100 and 40 byte-seconds", s.Held, s.Idle)
	}
	if r := rows[0]; r.Run.App != "blur" || r.Run.Date != "2026-03-01" || r.Run.Build != "c0ffee" || r.Run.PID != 7 || r.Run.Seconds != 1 {
		t.Errorf("%+v", r)
	}
}
