package watch

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestRecordedEnvironment(t *testing.T) {
	long := strings.Repeat("x", 5000)
	got := variablesToRecord([]string{
		"POCL_DEVICES=cpu", "CUDA_VISIBLE_DEVICES=", "LD_LIBRARY_PATH=" + long, "SECRET=x", "AWS_CL_KEY=x", "CUDA_KEY=x", "HOME=/root",
		"CL_X=\xff", "nothing", "GPUMEMTOP_POLICY=slab=1", "CL_API_KEY=x", "OPENCL_token=x", "POCL_PASSWORD=x", "OCL_WIDE=" + strings.Repeat("é", 600),
	})
	want := map[string]string{
		"POCL_DEVICES": "cpu", "CUDA_VISIBLE_DEVICES": "", "LD_LIBRARY_PATH": long[:1021] + "…", "CL_X": "?",
		"GPUMEMTOP_POLICY": "slab=1", "OCL_WIDE": strings.Repeat("é", 510) + "…",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("CL_%d=", i))
	}
	if n := len(variablesToRecord(many)); n != recordedMax {
		t.Errorf("%d variables kept", n)
	}
}

// feeder feeds a perProcess as the collector does.
type feeder struct {
	*perProcess
	model    *stats.Model
	warnings []string
	time     uint64
}

func newFeeder(t *testing.T, template string, force bool) *feeder {
	t.Helper()
	name, err := files.ExpandFileName(template, "app", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := &feeder{model: stats.New(stats.Options{}), time: 1000}
	header := recording.Header{Created: time.Unix(7, 0), ClockNS: 1000, Policy: "slab", Program: "make"}
	s.perProcess = newPerProcess(name, header, s.model, force, func(text string) { s.warnings = append(s.warnings, text) })
	return s
}

func (s *feeder) put(t *testing.T, process uint32, e wire.Event, payload string) {
	t.Helper()
	s.time += 1000
	e.Time = s.time
	r := wire.Record{Process: process, Event: e, Payload: []byte(payload)}
	s.model.Apply(&r)
	if err := s.Append(&r); err != nil {
		t.Fatal(err)
	}
}

func (s *feeder) process(t *testing.T, number uint32, pid uint64, command string) {
	t.Helper()
	s.put(t, number, wire.Event{Kind: wire.KindProcess, Object: pid, Size: uint64(len(command))}, command)
}

func (s *feeder) create(t *testing.T, number uint32, size uint64) {
	t.Helper()
	s.put(t, number, wire.Event{Kind: wire.KindCreate, Object: size, Size: size}, "")
}

// contents reads a recording.
func contents(t *testing.T, path string) (*recording.Reader, []wire.Record) {
	t.Helper()
	r, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	var records []wire.Record
	for {
		var record wire.Record
		if err := r.Next(&record); errors.Is(err, io.EOF) {
			return r, records
		} else if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
}

// TestPerProcess: a file for each process, with its own header, summaries and end.
func TestPerProcess(t *testing.T) {
	dir := t.TempDir()
	s := newFeeder(t, dir+"/%p.gmt", false)
	s.process(t, 1, 40, "one\x00a\x00b\x00")
	s.process(t, 2, 41, "two")
	s.create(t, 1, 100)
	s.create(t, 2, 50)
	s.put(t, 2, wire.Event{Kind: wire.KindLost, Size: 9}, "")
	if err := s.Flush(); err != nil || s.Bytes() == 0 {
		t.Fatal(err)
	}
	s.Ended(2, session.Status{Signal: 11})
	s.process(t, 3, 41, "exec") // the same process id
	s.create(t, 3, 7)
	s.create(t, 2, 8) // of one that is over
	if err := s.Close(recording.Footer{}); err != nil {
		t.Error(err)
	}
	if files, _ := filepath.Glob(dir + "/*"); len(files) != 3 {
		t.Errorf("files %q", files)
	}
	for _, want := range []struct {
		file, program string
		arguments     []string
		clock         uint64
		kinds         int
		footer        recording.Footer
		summary       recording.Summary
	}{
		{"40.gmt", "one", []string{"a", "b"}, 2000, 2, recording.Footer{Status: -1, Events: 2, EndedNS: 4000, Cut: true}, recording.Summary{InUse: 100, Creates: 1}},
		{"41.gmt", "two", []string{}, 3000, 3, recording.Footer{Status: -1, Signal: 11, Events: 3, EndedNS: 6000, Lost: 9}, recording.Summary{InUse: 50, Creates: 1, Lost: 9}},
		{"41.2.gmt", "exec", []string{}, 7000, 2, recording.Footer{Status: -1, Events: 2, EndedNS: 8000, Cut: true}, recording.Summary{InUse: 7, Creates: 1}},
	} {
		r, records := contents(t, filepath.Join(dir, want.file))
		h := r.Header()
		if h.Program != want.program || !slices.Equal(h.Arguments, want.arguments) || h.ClockNS != want.clock || h.Policy != "slab" ||
			!h.Created.Equal(time.Unix(7, int64(want.clock)-1000)) {
			t.Errorf("%s: header %+v", want.file, h)
		}
		f, _ := r.Footer()
		f.Index = nil
		if len(records) != want.kinds || fmt.Sprint(f) != fmt.Sprint(want.footer) || r.Damage() != "" {
			t.Errorf("%s: %d records, footer %+v, damage %q", want.file, len(records), f, r.Damage())
		}
		if blocks, err := r.Blocks(); err != nil || len(blocks) != 1 || blocks[0].Summary != want.summary {
			t.Errorf("%s: blocks %+v, %v", want.file, blocks, err)
		}
	}
	if said := s.writtenFilesMessages(); len(said) != 1 || said[0] != "recorded: "+dir+"/40.gmt, "+dir+"/41.gmt, "+dir+"/41.2.gmt" || len(s.warnings) != 0 {
		t.Errorf("said %q, warned %q", said, s.warnings)
	}
}

// TestPerProcessOverwritesNothing: unless forced.
func TestPerProcessOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"40.gmt", "40.2.gmt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newFeeder(t, dir+"/%p.gmt", false)
	s.process(t, 1, 40, "one")
	s.process(t, 2, 40, "two")
	if err := s.Close(recording.Footer{}); err != nil {
		t.Error(err)
	}
	if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "40.gmt exists: process 40 is recorded into "+dir+"/40.3.gmt") {
		t.Errorf("said %q", s.warnings)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "40.2.gmt")); string(data) != "precious" {
		t.Errorf("overwritten: %v", err)
	}
	if r, _ := contents(t, filepath.Join(dir, "40.4.gmt")); r.Header().Program != "two" {
		t.Errorf("program %q", r.Header().Program)
	}
	s = newFeeder(t, dir+"/%p.gmt", true)
	s.process(t, 1, 40, "three")
	if err := s.Close(recording.Footer{}); err != nil {
		t.Error(err)
	}
	if r, _ := contents(t, filepath.Join(dir, "40.gmt")); r.Header().Program != "three" {
		t.Errorf("program %q", r.Header().Program)
	}
}

// TestPerProcessOutlivesFiles: a file that cannot be written is reported and does not affect the others.
func TestPerProcessOutlivesFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := newFeeder(t, dir+"/%p.gmt", false)
	s.process(t, 1, 40, "one")
	if err := os.Rename(dir, dir+"2"); err != nil {
		t.Fatal(err)
	}
	for i := range uint32(20) {
		s.process(t, 2+i, uint64(41+i), "two")
		s.create(t, 2+i, 5)
	}
	s.create(t, 1, 5)
	err := s.Close(recording.Footer{})
	if _, records := contents(t, dir+"2/40.gmt"); len(records) != 2 {
		t.Errorf("%d records", len(records))
	}
	if err == nil || !strings.HasPrefix(err.Error(), "20 processes not recorded completely: create recording: open "+dir+"/41.gmt") {
		t.Error(err)
	}
	if said := s.writtenFilesMessages(); len(said) != 1 {
		t.Errorf("said %q", said)
	}
	if said := newFeeder(t, dir+"/%p", false).writtenFilesMessages(); len(said) != 1 || !strings.Contains(said[0], "no process called OpenCL") {
		t.Errorf("said %q", said)
	}
}

// TestPerProcessNamesSomeFiles: not thousands.
func TestPerProcessNamesSomeFiles(t *testing.T) {
	dir := t.TempDir()
	s := newFeeder(t, dir+"/%p.gmt", false)
	for i := range uint32(20) {
		s.process(t, i+1, uint64(40+i), "one")
		s.Ended(i+1, session.Status{})
	}
	said := s.writtenFilesMessages()
	if len(said) != 1 || !strings.HasPrefix(said[0], "recorded 20 processes: "+dir+"/40.gmt, ") || strings.Contains(said[0], "/59.gmt") || len(s.open) != 0 {
		t.Errorf("said %q, %d still open", said, len(s.open))
	}
}
