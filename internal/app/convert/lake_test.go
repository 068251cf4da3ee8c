package convert

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// recorded are runs of the examples.
func recorded(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../replay/testdata/*.gmt")
	if err != nil || len(paths) < 8 {
		t.Fatalf("%d recordings, %v", len(paths), err)
	}
	return paths
}

func toLake(dir string, force bool, paths ...string) error {
	o := ExportOptions{Format: "parquet", Output: files.Output{Path: dir, Force: force}}
	return ExportToLake(paths, &o, func(string) bool { return false })
}

// filesIn returns the files in a folder, without their names.
func filesIn(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != ".lock" { // that of commits stays
			name, _ := filepath.Rel(dir, filepath.Dir(path))
			list = append(list, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// runsIn returns the rows of a lake that count: of each recording those of the last commit.
func runsIn(t *testing.T, dir string) map[string]row {
	t.Helper()
	rows := map[string]row{}
	names, _ := filepath.Glob(filepath.Join(dir, "commit=*", "runs.parquet"))
	for _, name := range names {
		list, err := parquet.ReadFile[row](name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			r.commit = name
			if had, there := rows[r.Run]; there && had.commit == name {
				t.Errorf("%s is twice in %s", r.Run, name)
			}
			rows[r.Run] = r
		}
	}
	return rows
}

type row struct {
	Run    string `parquet:"run"`
	Path   string `parquet:"path"`
	App    string `parquet:"app"`
	Events int64  `parquet:"events"`
	Ending string `parquet:"ending"`
	commit string
}

// TestLakeCountsEachRunOnce: what is there already, copies, and recordings that have grown.
func TestLakeCountsEachRunOnce(t *testing.T) {
	folder := t.TempDir()
	dir, paths := filepath.Join(folder, "lake"), recorded(t)
	say := func(force bool, want string, paths ...string) {
		t.Helper()
		said := captured(t, func() {
			if err := toLake(dir, force, paths...); err != nil {
				t.Error(err)
			}
		})
		if !strings.Contains(said, "lake: "+want) {
			t.Errorf("said %q, want %q", said, want)
		}
	}
	grown := filepath.Join(folder, "grown.gmt")
	text, err := os.ReadFile(paths[0])
	if err == nil {
		err = os.WriteFile(grown, text[:len(text)-30], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	say(false, "1 recording added, 0 replaced, 0 there already", grown)
	torn := runsIn(t, dir)
	say(false, "0 recordings added, 0 replaced, 1 there already", grown)
	say(false, fmt.Sprintf("%d recordings added, 1 replaced, 1 there already", len(paths)-1), append(slices.Clone(paths), paths[0])...)
	rows := runsIn(t, dir)
	if len(rows) < len(paths) {
		t.Errorf("%d rows of %d recordings", len(rows), len(paths))
	}
	for run, was := range torn {
		if now := rows[run]; was.Ending != "torn" || now.Ending != "whole" || now.Events != was.Events || now.Path == was.Path || !filepath.IsAbs(now.Path) {
			t.Errorf("%+v, before %+v", now, was)
		}
	}
	copied := filepath.Join(folder, "copy.gmt")
	linked := filepath.Join(folder, "linked.gmt")
	if err := errors.Join(os.WriteFile(copied, text, 0o600), os.Link(paths[0], linked)); err != nil {
		t.Fatal(err)
	}
	before := filesIn(t, dir)
	if len(before) != 12 {
		t.Errorf("files %v", before)
	}
	say(false, fmt.Sprintf("0 recordings added, 0 replaced, %d there already; 1 file is a copy of recordings that are there: %s\n", len(paths)+2, copied),
		append(slices.Clone(paths), copied, linked)...)
	if !slices.Equal(filesIn(t, dir), before) {
		t.Errorf("files %v, want %v", filesIn(t, dir), before)
	}
	say(true, fmt.Sprintf("0 recordings added, %d replaced, 0 there already", len(paths)), paths...)
	if again := runsIn(t, dir); len(again) != len(rows) {
		t.Errorf("%d rows, before %d", len(again), len(rows))
	}
	o := ExportOptions{Format: "parquet", Output: files.Output{Path: dir}}
	if err := Export(nil, paths[0], &o, func(flag string) bool { return flag == "format" }); err == nil || !strings.Contains(err.Error(), "tables of another kind") || !strings.Contains(err.Error(), "with --lake") {
		t.Errorf("rows of one recording among those of many: %v", err)
	}
	old := filepath.Join(folder, "old")
	if err := os.MkdirAll(filepath.Join(old, "runs", "app=x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := toLake(old, false, paths[0]); err == nil || !strings.Contains(err.Error(), "by an earlier gpumemtop") {
		t.Errorf("a lake of an earlier version: %v", err)
	}
}

// TestLakeNamesCopies: the first of them, also where the recording comes with them.
func TestLakeNamesCopies(t *testing.T) {
	folder := t.TempDir()
	text, err := os.ReadFile(recorded(t)[0])
	var copies []string
	for i := range 5 {
		copies = append(copies, filepath.Join(folder, fmt.Sprint(i, ".gmt")))
		err = errors.Join(err, os.WriteFile(copies[i], text, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	said := captured(t, func() { err = toLake(filepath.Join(folder, "lake"), false, copies...) })
	want := fmt.Sprintf("1 recording added, 0 replaced, 4 there already; 4 files are copies of recordings that are there: %s, …\n", strings.Join(copies[1:4], ", "))
	if err != nil || !strings.HasSuffix(said, want) {
		t.Errorf("%v, said %q, want %q", err, said, want)
	}
	moved := filepath.Join(folder, "moved.gmt")
	if err := os.Rename(copies[0], moved); err != nil {
		t.Fatal(err)
	}
	if said := captured(t, func() { err = toLake(filepath.Join(folder, "lake"), false, moved) }); err != nil || !strings.HasSuffix(said, "1 there already\n") {
		t.Errorf("%v, said %q of a recording that was moved", err, said)
	}
}

// TestFlightLogsInALake: a row for each process, once.
func TestFlightLogsInALake(t *testing.T) {
	folder := t.TempDir()
	dir := filepath.Join(folder, "lake")
	var paths []string
	for i := range 3 {
		f := wire.Flight{Pid: uint32(7 + i), Started: uint64(time.Date(2026, 3, 1, 12, i, 0, 0, time.UTC).UnixNano()), Status: int32(i)}
		f.Ended = f.Started + 2e9
		f.Total = wire.FlightCounts{Creates: 4, Failed: uint64(i), Releases: 3, Bytes: 400, Inuse: 100, Peak: 300}
		for at, text := range map[*[]byte]string{new(f.Host[:]): "node", new(f.Program[:]): "/opt/train", new(f.Job[:]): "17", new(f.Rank[:]): fmt.Sprint(i), new(f.Labels[:]): "team=vision,tier=a"} {
			copy(*at, text)
		}
		if i == 2 {
			f.Status, f.Signal = -1, 11
		}
		paths = append(paths, filepath.Join(folder, fmt.Sprint(i, wire.FlightSuffix)))
		if err := os.WriteFile(paths[i], wire.AppendFlight(nil, &f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bad := filepath.Join(folder, "bad.flight")
	if err := os.WriteFile(bad, []byte("no log"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := toLake(dir, false, paths...); err != nil {
		t.Fatal(err)
	}
	said := captured(t, func() {
		if err := toLake(dir, false, append(slices.Clone(paths), bad, recorded(t)[0])...); err == nil || !strings.HasPrefix(err.Error(), "1 file skipped") {
			t.Errorf("%v", err)
		}
	})
	if !strings.Contains(said, "skipped: "+bad+": 6 bytes") || !strings.Contains(said, "1 recording added, 0 replaced, 3 there already\n") {
		t.Errorf("said %q", said)
	}
	names, err := filepath.Glob(filepath.Join(dir, "commit=*", "runs.parquet"))
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	rows, err := parquet.ReadFile[flightRow](names[0])
	want := make([]flightRow, 3)
	for i, status := range []int64{0, 1, 128 + 11} {
		want[i] = flightRow{
			Run: fmt.Sprintf("node-%d-%d-1", 7+i, rows[i].Started*1000), Host: "node", PID: int64(7 + i), Rank: fmt.Sprint(i), Job: "17", App: "train",
			Program: "/opt/train", Path: paths[i], Ending: "log", Labels: map[string]string{"team": "vision", "tier": "a"}, Status: &status, Seconds: 2,
			Started: time.Date(2026, 3, 1, 12, i, 0, 0, time.UTC).UnixMicro(), Creates: 4, Failures: int64(i), Peak: 300, Reserved: 300, InUse: 100, Leaked: 100,
		}
	}
	want[2].Leaked = 0 // a signal ended it
	if err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("%v\n%+v, want\n%+v", err, rows, want)
	}
}

type flightRow struct {
	Run      string            `parquet:"run"`
	Host     string            `parquet:"host"`
	PID      int64             `parquet:"pid"`
	Rank     string            `parquet:"rank"`
	Job      string            `parquet:"job"`
	App      string            `parquet:"app"`
	Program  string            `parquet:"program"`
	Path     string            `parquet:"path"`
	Ending   string            `parquet:"ending"`
	Labels   map[string]string `parquet:"labels"`
	Status   *int64            `parquet:"exit_status,optional"`
	Seconds  float64           `parquet:"seconds"`
	Started  int64             `parquet:"started,timestamp(microsecond:utc)"`
	Creates  int64             `parquet:"creates"`
	Failures int64             `parquet:"failures"`
	Peak     int64             `parquet:"peak_in_use"`
	Reserved int64             `parquet:"peak_reserved"`
	InUse    int64             `parquet:"in_use"`
	Leaked   int64             `parquet:"leaked"`
}

// TestLakeSkipsWhatIsNoRecording names it, and keeps the rest.
func TestLakeSkipsWhatIsNoRecording(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.gmt")
	if err := os.WriteFile(bad, []byte("no recording"), 0o600); err != nil {
		t.Fatal(err)
	}
	lake := filepath.Join(dir, "lake")
	if err := toLake(lake, false, bad, recorded(t)[0], filepath.Join(dir, "none.gmt")); err == nil || !strings.HasPrefix(err.Error(), "2 files skipped") {
		t.Errorf("%v", err)
	}
	if n := len(filesIn(t, lake)); n != 6 {
		t.Errorf("%d files", n)
	}
	if err := toLake(filepath.Join(dir, "empty"), false, bad); err == nil {
		t.Error("no error, and no recording")
	}
	if _, err := os.Stat(filepath.Join(dir, "empty")); err == nil {
		t.Error("an empty folder is left")
	}
}

// TestLakeOfNoProcesses: a recording that has none makes no folder, and a line says why.
func TestLakeOfNoProcesses(t *testing.T) {
	dir := t.TempDir()
	lines, empty := filepath.Join(dir, "x.ndjson"), filepath.Join(dir, "x.gmt")
	header := `{"schema":1,"header":{"version":4,"created":"2026-01-02T03:04:05Z","clock_ns":7,"program":"./frag","policy":"none","limits":{},"tags":"stack"}}`
	if err := errors.Join(os.WriteFile(lines, []byte(header+"\n"), 0o600), Import(lines, "", files.Output{Path: empty})); err != nil {
		t.Fatal(err)
	}
	said := captured(t, func() {
		if err := toLake(filepath.Join(dir, "lake"), false, empty); err != nil {
			t.Error(err)
		}
	})
	if !strings.Contains(said, "x.gmt has no processes: nothing of it is added") {
		t.Errorf("said %q", said)
	}
	if _, err := os.Stat(filepath.Join(dir, "lake")); err == nil {
		t.Error("a folder is made")
	}
}

// TestLakeWithPipes: a lake in which a pipe has the name of a file is left as it is, and nothing waits for a writer.
func TestLakeWithPipes(t *testing.T) {
	lake := t.TempDir()
	if err := toLake(lake, false, recorded(t)[0]); err != nil {
		t.Fatal(err)
	}
	runs, _ := filepath.Glob(filepath.Join(lake, "commit=*", "runs.parquet"))
	for _, name := range []string{filepath.Join(lake, ".lock"), runs[0]} {
		_ = os.Remove(filepath.Join(lake, ".lock")) // it notes what the runs are
		_ = os.Remove(name)
		if err := unix.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := toLake(lake, false, recorded(t)[1]); err == nil || !strings.Contains(err.Error(), filepath.Base(name)+" is no regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list := filesIn(t, lake); len(list) != 6 {
		t.Errorf("the lake has %v", list)
	}
}

// TestLakeWithManyRows: a small file of runs with one row a million times is refused.
func TestLakeWithManyRows(t *testing.T) {
	type packed struct {
		Recording string `parquet:"recording,dict,zstd"`
		Events    int64  `parquet:"events,delta,zstd"`
		Ending    string `parquet:"ending,dict,zstd"`
		Path      string `parquet:"path,dict,zstd"`
	}
	name := filepath.Join(t.TempDir(), "commit=1", "runs.parquet")
	rows := slices.Repeat([]packed{{"0123456789abcdef", 1, "exit", "/x"}}, 1_000_000)
	if err := errors.Join(os.Mkdir(filepath.Dir(name), 0o700), parquet.WriteFile(name, rows)); err != nil {
		t.Fatal(err)
	}
	if err := toLake(filepath.Dir(filepath.Dir(name)), false, recorded(t)[0]); err == nil || !strings.Contains(err.Error(), "1000000 rows in ") {
		t.Error(err)
	}
}

// captured returns what comes to the standard error meanwhile.
func captured(t *testing.T, during func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = w
	during()
	os.Stderr = before
	_ = w.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestManyWritersOfALake append at once; each of their files is there.
func TestManyWritersOfALake(t *testing.T) {
	dir, paths := t.TempDir(), recorded(t)
	var all sync.WaitGroup
	for _, path := range paths {
		all.Go(func() {
			if err := toLake(dir, false, path); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		})
	}
	all.Wait()
	if n, rows := len(filesIn(t, dir)), len(runsIn(t, dir)); n != 6*len(paths) || rows < len(paths) {
		t.Errorf("%d files, %d rows of %d recordings", n, rows, len(paths))
	}
}

func TestLakeOptions(t *testing.T) {
	for _, c := range []struct{ format, output, flag, want string }{
		{"chrome", "x", "", "writes one recording, not 2"},
		{"chrome", "x", "", "--lake is for --format parquet, not chrome"},
		{"parquet", "", "", "no folder"},
		{"parquet", "-", "", "no folder"},
		{"parquet", "x", "since", "--since is for one recording"},
		{"parquet", "x", "flows", "--flows is for --format chrome"},
	} {
		o := ExportOptions{Format: c.format, Output: files.Output{Path: c.output}}
		paths := []string{"a", "b"}
		if strings.HasPrefix(c.want, "--lake") {
			paths = paths[:1]
		}
		if err := ExportToLake(paths, &o, func(flag string) bool { return flag == c.flag }); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
