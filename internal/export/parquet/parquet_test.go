package parquet

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

var created = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

func header(host string) recording.Header {
	return recording.Header{
		Host: host, Program: "app", Created: created, ClockNS: randomrun.Start, Policy: "futhark", Limits: recording.Limits{"a": "1"},
		Identity: recording.Identity{Labels: map[string]string{"team": host}},
	}
}

func options(host string) tables.Options { return tables.Options{Header: header(host)} }

// rows reads a table of all recordings in a folder.
func rows[T any](t rapid.TB, dir, table string) []T {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, table, "*", "*", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for _, file := range files {
		some, err := parquet.ReadFile[T](file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

// files lists what is in a folder, with what the files hold.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		list[strings.TrimPrefix(path, dir)] = string(content)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return list
}

// collect makes the rows that are to be written.
func collect(t *testing.T, records []wire.Record, o tables.Options) (c struct {
	events    []tables.Event
	buffers   []tables.Buffer
	stays     []tables.Stay
	samples   []tables.Sample
	processes []tables.Process
	tags      []tables.Tag
	transfers []tables.Transfer
	objects   []tables.Held
}) {
	t.Helper()
	src := &randomrun.Tape{Records: records}
	run, err := tables.SurveySource(src, o)
	if err != nil {
		t.Fatal(err)
	}
	err = run.MakeRows(src, nil, tables.Sink{
		Event: func(_ uint32, r *tables.Event) error { c.events = append(c.events, *r); return nil },
		Buffer: func(_ uint32, r *tables.Buffer) error {
			row := *r
			row.EndedNS = 0 // no column
			c.buffers = append(c.buffers, row)
			return nil
		},
		Stay:   func(_ uint32, r *tables.Stay) error { c.stays = append(c.stays, *r); return nil },
		Sample: func(_ uint32, r *tables.Sample) error { c.samples = append(c.samples, *r); return nil },
		Process: func(_ uint32, r *tables.Process) error {
			row := *r
			row.App, row.Identity, row.DeviceID, row.NearPeak = "", recording.Identity{}, "", 0 // no columns
			c.processes = append(c.processes, row)
			return nil
		},
		Tag:      func(_ uint32, r *tables.Tag) error { c.tags = append(c.tags, *r); return nil },
		Transfer: func(_ uint32, r *tables.Transfer) error { c.transfers = append(c.transfers, *r); return nil },
		Held:     func(_ uint32, r *tables.Held) error { c.objects = append(c.objects, *r); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRoundTrip reads back what was written, of one process: rows of several stand in several files.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(5) {
		dir := t.TempDir()
		records := randomrun.MakeRunWithoutSlabs(seed, 1, int(seed*seed*20))
		if err := WriteTables(dir, false, &randomrun.Tape{Records: records}, options("node")); err != nil {
			t.Fatal(err)
		}
		want := collect(t, records, options("node"))
		compare(t, dir, Events, want.events)
		compare(t, dir, Buffers, want.buffers)
		compare(t, dir, Blocks, want.stays)
		compare(t, dir, Samples, want.samples)
		compare(t, dir, Processes, want.processes)
		compare(t, dir, Tags, want.tags)
		compare(t, dir, Transfers, want.transfers)
		compare(t, dir, Objects, want.objects)
	}
}

func compare[T any](t *testing.T, dir, table string, want []T) {
	t.Helper()
	if diff := cmp.Diff(want, rows[T](t, dir, table), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-made +read):\n%s", table, diff)
	}
}

func TestRecordingsShareAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	tape := &randomrun.Tape{Records: randomrun.MakeRunWithoutSlabs(1, 3, 300)}
	for _, host := range []string{"a", "b"} {
		if err := WriteTables(dir, false, tape, options(host)); err != nil {
			t.Fatal(err)
		}
	}
	both := files(t, dir)
	if len(both) != 2*3*len(tableNames) {
		t.Errorf("%d files", len(both))
	}
	if err := WriteTables(dir, false, tape, options("a")); err == nil || !strings.Contains(err.Error(), "already: use -f to replace it") {
		t.Errorf("the same recording twice: %v", err)
	}
	part := extract.CutRange(tape, extract.Options{Process: func(n uint32) bool { return n == 2 }})
	if err := WriteTables(dir, true, part, options("a")); err != nil {
		t.Fatal(err)
	}
	if after := files(t, dir); len(after) != (3+1)*len(tableNames) {
		t.Errorf("%d files after one process took the place of three", len(after))
	}
	if err := WriteTables(dir, true, tape, options("a")); err != nil {
		t.Fatal(err)
	}
	if after := files(t, dir); !sameNames(both, after) {
		t.Errorf("replaced: %d files", len(after))
	}
}

func sameNames(a, b map[string]string) bool {
	for name := range a {
		if _, ok := b[name]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// TestMergedIsTheSameRecording finds recordings again that were merged into one.
func TestMergedIsTheSameRecording(t *testing.T) {
	dir := t.TempDir()
	if err := WriteTables(dir, false, &randomrun.Tape{Records: randomrun.MakeRunWithoutSlabs(1, 2, 100)}, options("b")); err != nil {
		t.Fatal(err)
	}
	single := files(t, dir)
	h := header("a")
	h.Merged = []recording.Origin{
		{Host: "a", Program: "app", Policy: "futhark", Created: created, First: 1, Last: 3},
		{Host: "b", Program: "app", Policy: "futhark", Created: created, First: 4, Last: 5, Identity: header("b").Identity},
	}
	records := randomrun.MakeRunWithoutSlabs(1, 2, 100)
	for i := range records {
		records[i].Process += 3
	}
	if err := WriteTables(dir, false, &randomrun.Tape{Records: records}, tables.Options{Header: h}); err == nil {
		t.Error("it was written twice")
	}
	if err := WriteTables(dir, true, &randomrun.Tape{Records: records}, tables.Options{Header: h}); err != nil {
		t.Fatal(err)
	}
	if after := files(t, dir); !sameNames(single, after) {
		t.Errorf("%v is not in the place of %v", len(after), len(single))
	}
	for _, p := range rows[tables.Process](t, dir, Processes) {
		if !maps.Equal(p.Labels, map[string]string{"team": "b"}) {
			t.Errorf("process %d has the labels %v", p.Number, p.Labels)
		}
	}
}

// broken is a source that fails at some record the second time that it is read.
type broken struct {
	randomrun.Tape
	reads, at int
}

var errBroken = errors.New("broken")

func (b *broken) Next(r *wire.Record) error {
	if b.reads++; b.reads == len(b.Records)+b.at {
		return errBroken
	}
	return b.Tape.Next(r)
}

func TestFailureLeavesNothing(t *testing.T) {
	records := randomrun.MakeRunWithoutSlabs(1, 3, 2000)
	dir := filepath.Join(t.TempDir(), "new")
	for _, at := range []int{-50, 50, 1500} {
		err := WriteTables(dir, false, &broken{Tape: randomrun.Tape{Records: records}, at: at}, options("a"))
		if !errors.Is(err, errBroken) {
			t.Errorf("error %v", err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("left %v", files(t, dir))
		}
	}
	if err := WriteTables(dir, false, &randomrun.Tape{Records: records}, options("a")); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	err := WriteTables(dir, true, &broken{Tape: randomrun.Tape{Records: records}, at: 1500}, options("a"))
	if after := files(t, dir); !errors.Is(err, errBroken) || !same(before, after) {
		t.Errorf("error %v, left %d files of %d", err, len(after), len(before))
	}
}

func same(a, b map[string]string) bool {
	for name, content := range a {
		if b[name] != content {
			return false
		}
	}
	return len(a) == len(b)
}

// TestCommitGoesBack puts a file where a folder must be: tables written before that one go, and old ones come back.
func TestCommitGoesBack(t *testing.T) {
	dir := t.TempDir()
	records := randomrun.MakeRunWithoutSlabs(1, 2, 100)
	if err := WriteTables(dir, false, &randomrun.Tape{Records: records[:len(records)-20]}, options("a")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, Tags)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, Tags), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	for _, host := range []string{"a", "b"} {
		err := WriteTables(dir, true, &randomrun.Tape{Records: records}, options(host))
		if after := files(t, dir); err == nil || !same(before, after) {
			t.Errorf("host %s: error %v, left %d files of %d", host, err, len(after), len(before))
		}
	}
	if folders, err := os.ReadDir(filepath.Join(dir, Events)); err != nil || len(folders) != 1 {
		t.Errorf("left %v in events (%v)", folders, err)
	}
}

func TestFolderMustBeOne(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "is a file: name a folder", filepath.Join(dir, "a", "b"): "no such file"} {
		if err := WriteTables(path, true, &randomrun.Tape{}, options("a")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

// TestPartOfARun takes what was there before as it is, and counts nothing that happened then.
func TestPartOfARun(t *testing.T) {
	dir := t.TempDir()
	records := randomrun.MakeRunWithoutSlabs(3, 1, 2000)
	since, until := records[800].Time, records[1600].Time
	o := options("a")
	o.Since = since
	if err := WriteTables(dir, false, extract.CutRange(&randomrun.Tape{Records: records}, extract.Options{Since: since, Until: until}), o); err != nil {
		t.Fatal(err)
	}
	before, then := exportrun.SnapshotOf(records[:800]).Totals, exportrun.SnapshotOf(records[:1601]).Totals
	var hits, inUse int64
	var carried uint64
	for _, b := range rows[tables.Buffer](t, dir, Buffers) {
		if b.Carried {
			carried++
		} else if b.Outcome == "hit" {
			hits++
		}
		if b.Leaked || b.Ending == "cut" != (b.Released == nil) {
			t.Errorf("buffer %+v", b)
		}
		if b.Ending == "cut" && b.Owns {
			inUse += b.Granted
		}
	}
	if carried != before.LiveBuffers || hits != int64(then.Hits-before.Hits) || inUse != int64(then.InUse) {
		t.Errorf("%d carried of %d, %d hits of %d, in use %d of %d", carried, before.LiveBuffers, hits, then.Hits-before.Hits, inUse, then.InUse)
	}
	for _, s := range rows[tables.Sample](t, dir, Samples) {
		if s.TimeNS <= int64(since-randomrun.Start) || s.TimeNS > int64(until-randomrun.Start)+s.Step || uint64(s.PeakInUse) > then.PeakInUse {
			t.Errorf("sample %+v", s)
		}
	}
}

func TestOnlySomeCallSites(t *testing.T) {
	dir := t.TempDir()
	o := options("a")
	o.Tag = regexp.MustCompile("f[23]$")
	if err := WriteTables(dir, false, &randomrun.Tape{Records: randomrun.MakeRunWithoutSlabs(3, 1, 500)}, o); err != nil {
		t.Fatal(err)
	}
	var sites []string
	for _, b := range rows[tables.Buffer](t, dir, Buffers) {
		sites = append(sites, b.Site)
	}
	for _, b := range rows[tables.Stay](t, dir, Blocks) {
		sites = append(sites, b.Site)
	}
	slices.Sort(sites)
	if got := slices.Compact(sites); !slices.Equal(got, []string{"app.c:20 f2", "app.c:30 f3"}) {
		t.Errorf("sites %q", got)
	}
	tags := rows[tables.Tag](t, dir, Tags)
	if len(tags) != 2 || !slices.Equal(tags[0].Stack, []string{"f2 app.c:20", "main app.c:9"}) {
		t.Errorf("tags %+v", tags)
	}
}

// TestManyProcesses needs several rounds.
func TestManyProcesses(t *testing.T) {
	dir := t.TempDir()
	const processes = openMost + 6
	records := randomrun.MakeRunWithoutSlabs(3, processes, 2000)
	if err := WriteTables(dir, false, &randomrun.Tape{Records: records}, options("a")); err != nil {
		t.Fatal(err)
	}
	if got := len(rows[tables.Event](t, dir, Events)); got != len(records) {
		t.Errorf("%d events of %d", got, len(records))
	}
	if got := len(rows[tables.Process](t, dir, Processes)); got != processes {
		t.Errorf("%d processes of %d", got, processes)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var processes []*tables.Facts
		for _, n := range rapid.SliceOf(rapid.Uint64Range(0, 1<<18)).Draw(t, "records") {
			processes = append(processes, &tables.Facts{Records: n})
		}
		var all []*tables.Facts
		for _, group := range groupProcesses(processes) {
			rows := uint64(0)
			for _, p := range group {
				rows += min(p.Records, rowGroup)
			}
			if len(group) == 0 || len(group) > openMost || rows > openRows {
				t.Errorf("a group of %d processes, %d rows", len(group), rows)
			}
			all = append(all, group...)
		}
		if !slices.Equal(all, processes) {
			t.Error("not each process once")
		}
	})
}
