package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/lake"
	"codeberg.org/gpumemtop/gpumemtop/internal/monitor"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// launched records a script with two ranks below mpirun, each with a device of its own.
func launched(t *testing.T, path string) {
	t.Helper()
	h := recording.Header{Host: "node", Program: "mpirun", Arguments: []string{"-n", "2", "python3", "train.py"}, Policy: "none", Created: time.Unix(1e9, 7).UTC(), ClockNS: 1000}
	h.User, h.Boot = "ada", "b007"
	w, err := recording.Create(path, h, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(2) {
		process := wire.ProcessFields{Time: 1000 + i, PID: 14 + i, RankNumber: 1 + i}.Record([]byte("/usr/bin/python3\x00-u\x00/opt/train.py\x00"))
		place := wire.Place{Job: "17", Rank: fmt.Sprint(i), Size: "2", Born: "4711", Build: "c0ffee"}.DiagRecord(1000 + i)
		device := wire.DeviceFields{Time: 1001 + i, Device: 1, Memory: 1 << 30}.Record([]byte(fmt.Sprintf("card %d\x001.0\x00uuid %d", i, i)))
		create := wire.Record{Event: wire.CreateFields{Time: 1002 + i, Outcome: wire.OutcomeDriver, Object: 1, Requested: 100, Granted: 100}.Event()}
		for _, r := range []*wire.Record{&process, &place, &device, &create} {
			r.Process = uint32(1 + i)
			if err := w.Append(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(recording.Footer{EndedNS: 2000}); err != nil {
		t.Fatal(err)
	}
}

// TestOneIdentity: recording, lake, fleet, summary and Prometheus say the same of each process.
func TestOneIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gmt")
	launched(t, path)
	want := []string{"train.py 14 17 0 2 card 0 c0ffee", "train.py 15 17 1 2 card 1 c0ffee"}
	same := func(who string, have []string) {
		t.Helper()
		if slices.Sort(have); !slices.Equal(have, want) {
			t.Errorf("%s: %q, want %q", who, have, want)
		}
	}
	reader, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	h := reader.Header()
	rows, err := lake.CollectRows(reader, h)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, r := range rows {
		have = append(have, strings.Join([]string{r.Run.App, fmt.Sprint(r.Run.PID), r.Run.Job, r.Run.Rank, r.Run.Size, r.Run.Device, r.Run.Build}, " "))
		if id, _ := h.RecordingIDOf(1); r.Run.Recording != id || r.Run.Boot != "b007" || r.Run.Born != "4711" || r.Run.DeviceID != fmt.Sprint("uuid ", r.Run.Rank) {
			t.Errorf("%+v", r.Run)
		}
	}
	same("lake", have)

	m := stats.New(stats.Options{Program: h.Program, Arguments: h.Arguments, Started: h.ClockNS})
	for r, err := range recording.Records(reader) {
		if err != nil {
			t.Fatal(err)
		}
		m.Apply(r)
	}
	s := m.PublishSnapshot()
	var summary struct {
		Processes []struct {
			App, Job, Size, Build string
			PID                   int
			Rank                  uint64
		}
	}
	about := report.NewSummary(s)
	text, err := about.MarshalJSON()
	if err = errors.Join(err, json.Unmarshal(text, &summary)); err != nil {
		t.Fatal(err)
	}
	have = nil
	for _, p := range summary.Processes {
		have = append(have, fmt.Sprintf("%s %d %s %d %s card %d %s", p.App, p.PID, p.Job, p.Rank, p.Size, p.Rank, p.Build))
	}
	same("summary", have)

	folder := t.TempDir()
	if err := monitor.WriteTextfile(folder, 14, s, monitor.Run{Program: "mpirun"}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(folder, "gpumemtop.mpirun.14.prom"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if line := fmt.Sprintf(`gpumemtop_in_use_bytes{container="",device="card %d",jobid="17",pid="%d",pod="",program="train.py",rank="%d",step=""} 100`, i, 14+i, i); !strings.Contains(string(page), line) {
			t.Errorf("no %s in\n%s", line, page)
		}
	}
	if !strings.Contains(string(page), `device="",jobid="17",pid="",pod="",policy="",program="train.py",rank="",step=""} 1`) || strings.Contains(string(page), `program="mpirun"`) {
		t.Errorf("what all have in common:\n%s", page)
	}

	w := work{State: store(t.TempDir())}
	e := &entry{Path: path}
	err = w.readRecordingHeader(t.Context(), e)
	if id, _ := h.RecordingIDOf(1); err != nil || e.App != "train.py" || e.Job != "17" || e.ID != id {
		t.Errorf("fleet: %+v, %v", e, err)
	}
}

// TestCopiesCountOnce, and links, pipes and loops in a folder do no harm.
func TestCopiesCountOnce(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	launched(t, filepath.Join(dir, "x.gmt"))
	text, err := os.ReadFile(filepath.Join(dir, "x.gmt"))
	err = errors.Join(err, os.WriteFile(filepath.Join(other, "copy.gmt"), text, 0o600), os.Symlink(other, filepath.Join(dir, "linked")),
		os.Symlink(dir, filepath.Join(other, "loop")), syscall.Mkfifo(filepath.Join(dir, "pipe.gmt"), 0o600), os.Symlink(dir, filepath.Join(other, "runs")))
	if err != nil {
		t.Fatal(err)
	}
	d, status := ask(t, "report", "", filepath.Join(other, "runs"))
	if string(one(t, d, 0)["recordings"]) != "1" || status != 1 || len(d.Skipped) != 2 {
		t.Errorf("status %d, %s, %+v", status, d.Applications, d.Skipped)
	}
	copies := 0
	for _, s := range d.Skipped {
		if s.Copy {
			copies++
		} else if !strings.HasSuffix(s.Path, "pipe.gmt") {
			t.Errorf("%+v", s)
		}
	}
	if copies != 1 {
		t.Errorf("%d copies", copies)
	}
}
