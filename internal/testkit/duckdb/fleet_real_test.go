package duckdb

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/lake"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/parquet"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// account is what events say of a process.
type account struct {
	sizes       map[uint64]float64
	inUse, peak float64
	byteSeconds float64
	creates     float64
	at, end     uint64
	status      int64
	levels      []level
}

type level struct {
	bytes float64
	ns    uint64
}

// advance lets time pass.
func (a *account) advance(now uint64) {
	if a.end > 0 {
		return
	}
	if a.at > 0 && now > a.at {
		a.levels = append(a.levels, level{a.inUse, now - a.at})
		a.byteSeconds += a.inUse * float64(now-a.at) / 1e9
	}
	a.at = max(a.at, now)
}

func (a *account) take(r *wire.Record) {
	if !r.Kind.IsMadeLater() { // it was before what comes before it
		a.advance(r.Time)
	}
	switch r.Kind {
	case wire.KindCreate:
		if e := r.AsCreate(); e.Outcome() != wire.OutcomeFailed && e.Memory() != wire.MemorySubBuffer {
			a.sizes[e.Object()] = float64(e.Granted())
			a.inUse += float64(e.Granted())
			a.creates++
			a.peak = max(a.peak, a.inUse)
		}
	case wire.KindRelease:
		if e := r.AsRelease(); e.References() == 0 {
			a.inUse -= a.sizes[e.Object()]
			delete(a.sizes, e.Object())
		}
	case wire.KindExit:
		if r.Thread == 0 {
			a.end, a.status = r.Time, int64(r.AsExit().Status())
		}
	}
}

// TestFleetOfRealRuns computes what FLEET.md's questions ask from the events of recorded examples.
func TestFleetOfRealRuns(t *testing.T) {
	doc, paths := document(t), recordedExamples(t)
	var all []*lake.Rows
	type sums struct{ runs, near, held, peak, creates, leaked float64 }
	want := map[string]*sums{}
	for _, path := range paths {
		reader, err := recording.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		header := reader.Header()
		accounts, names, last := map[uint32]*account{}, map[uint32]string{}, uint64(0)
		for r, err := range recording.Records(reader) {
			if err != nil {
				t.Fatal(err)
			}
			last = max(last, r.Time)
			if r.Process == 0 {
				continue
			}
			if accounts[r.Process] == nil {
				accounts[r.Process] = &account{sizes: map[uint64]float64{}}
			}
			accounts[r.Process].take(r)
			if r.Kind == wire.KindProcess {
				program, _ := wire.ParseProcess(r.Payload)
				names[r.Process] = filepath.Base(string(program))
			}
		}
		for number, a := range accounts {
			a.advance(last)
			name := cmp.Or(names[number], filepath.Base(header.Program))
			s := want[name]
			if s == nil {
				s = &sums{}
				want[name] = s
			}
			for _, level := range a.levels {
				if level.bytes > 0.9*a.peak {
					s.near += float64(level.ns) / 1e9
				}
			}
			s.runs, s.held, s.peak, s.creates = s.runs+1, s.held+a.byteSeconds, s.peak+a.peak, s.creates+a.creates
			if a.status <= 128 {
				s.leaked += a.inUse
			}
		}
		if err := reader.Rewind(); err != nil {
			t.Fatal(err)
		}
		rows, err := lake.CollectRows(reader, header)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows...)
		_ = reader.Close()
	}
	for _, replaced := range [][]*lake.Rows{all, all[:2], all[1:]} { // what is replaced counts once
		l, err := parquet.OpenLake("lake", true, time.Now)
		for _, r := range replaced {
			if err == nil {
				err = l.AddRows([]*lake.Rows{r})
			}
		}
		if err == nil {
			_, err = l.Commit()
		}
		if err = errors.Join(err, l.Close()); err != nil {
			t.Fatal(err)
		}
	}
	views, queries := fleetQuestions(t, doc)
	var lines, seconds []string
	for _, app := range slices.Sorted(maps.Keys(want)) {
		s := want[app]
		lines = append(lines, fmt.Sprintf("%s|%.0f|%.9f|%.6f|%.0f|%.0f|%.0f", app, s.runs, s.near, s.held, s.peak, s.creates, s.leaked))
		seconds = append(seconds, fmt.Sprintf("%s|%.9f", app, s.near))
	}
	alike(t, "sums", lines, ask(t, views+`SELECT app, count(*), sum(near_peak_ns) / 1000000000.0, sum(held), sum(peak_in_use), sum(created), sum(leaked)
FROM runs LEFT JOIN (SELECT run, sum(held_byte_seconds) AS held, sum(creates) AS created FROM sites GROUP BY run) USING (run) GROUP BY app ORDER BY app`))
	alike(t, "question 11", seconds, ask(t, views+"SELECT app, near_peak FROM ("+queries[10]+")"))
}
