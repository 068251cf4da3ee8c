package flight_test

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/flight"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// write writes the records of ranks of a program that has many call sites. One rank holds ten times as much as all others.
func write(t testing.TB, ranks int) string {
	t.Helper()
	dir := t.TempDir()
	var f wire.Flight
	copy(f.Program[:], "/opt/app/solver")
	copy(f.Modules[0].Path[:], "/opt/app/solver")
	for i := range f.Sites {
		f.Sites[i].Depth = 16
		for j := range f.Sites[i].Frames {
			f.Sites[i].Frames[j] = wire.Frame{Module: 1, Offset: uint64(0x1000*i + 16*j)}
		}
	}
	for rank := range ranks {
		f.Pid = uint32(1000 + rank)
		f.Rank = [32]uint8{}
		copy(f.Rank[:], fmt.Sprint(rank))
		copy(f.Host[:], fmt.Sprintf("node%02d", rank/16))
		peak := uint64(1 << 20)
		if rank == 3 {
			peak *= 10
			f.Status, f.Failures[0] = 1, wire.FlightFailure{Status: -4, Count: 2}
		} else {
			f.Status, f.Failures[0] = 0, wire.FlightFailure{}
		}
		f.Total = wire.FlightCounts{Creates: 640, Peak: 32 * peak}
		for i := range f.Sites {
			f.Sites[i].Counts = wire.FlightCounts{Creates: 20, Peak: peak + uint64(rank)}
		}
		name := filepath.Join(dir, fmt.Sprintf("%s-%d-1%s", f.Host[:6], f.Pid, wire.FlightSuffix))
		if err := os.WriteFile(name, wire.AppendFlight(nil, &f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRead(t *testing.T) {
	dir := write(t, 40)
	for name, content := range map[string]string{"cut.flight": "GGMTLOG1", ".half.tmp": "x", "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.flight"), 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := flight.ReadFolders(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Processes) != 40 || len(log.Sites) != 33 || len(log.Bad) != 2 || log.Bad[0].File != "cut.flight" {
		t.Fatalf("%d processes, %d sites, bad: %v", len(log.Processes), len(log.Sites), log.Bad)
	}
	whole, site := &log.Sites[0], &log.Sites[1]
	if !whole.All || whole.Program != "solver" || whole.SpreadOfFigure(flight.Creates) != (flight.Spread{Min: 640, Median: 640, Max: 640}) {
		t.Errorf("%+v", whole)
	}
	if got, want := site.SpreadOfFigure(flight.Peak), (flight.Spread{Min: 1 << 20, Median: 1<<20 + 20, Max: 10<<20 + 3}); got != want {
		t.Errorf("peak %+v, want %+v", got, want)
	}
	out := site.ProcessesFarFromMedian()
	if len(out) != 1 || log.Processes[out[0].Process].Rank != "3" || log.Processes[out[0].Process].Failures["-4"] != 2 {
		t.Errorf("outliers %+v", out)
	}
	if site.Name == "" || len(site.Stack) != 16 {
		t.Errorf("%q %q", site.Name, site.Stack)
	}
}

func TestReadNothing(t *testing.T) {
	if _, err := flight.ReadFolders(filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("no error")
	}
}

// A tenth of what may take ten seconds, with room for a machine that has other work.
func TestReadTime(t *testing.T) {
	dir := write(t, 1000)
	began := time.Now()
	if log, err := flight.ReadFolders(dir); err != nil || len(log.Processes) != 1000 {
		t.Fatal(log, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("1000 records took %v", took)
	}
}

func BenchmarkRead10000(b *testing.B) {
	dir := write(b, 10000)
	for b.Loop() {
		if _, err := flight.ReadFolders(dir); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAnotherBuild: a file that another build has replaced gives no names.
func TestAnotherBuild(t *testing.T) {
	program, offset := exported(t)
	dirs := []string{t.TempDir(), t.TempDir()}
	for i := range 2 {
		var f wire.Flight
		copy(f.Program[:], "/usr/bin/python3")
		copy(f.Arguments[:], "python3\x00-u\x00/opt/train.py\x00")
		copy(f.Modules[0].Path[:], program)
		if i == 1 {
			copy(f.Modules[0].Path[len(f.Modules[0].Path)-20:], "another build's id..")
		}
		f.Pid = uint32(i)
		f.Sites[0].Depth, f.Sites[0].Counts.Creates = 1, 1
		f.Sites[0].Frames[0] = wire.Frame{Module: 1, Offset: offset + 8}
		text := wire.AppendFlight(nil, &f)
		for _, dir := range dirs[i:] { // the second folder has a copy of the first's
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("h-%d-1%s", i, wire.FlightSuffix)), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	log, err := flight.ReadFolders(dirs...)
	if err != nil || len(log.Processes) != 2 || len(log.Sites) != 3 || log.Processes[0].Program != "train.py" {
		t.Fatalf("%+v, %v", log, err)
	}
	var names []string
	for _, s := range log.Sites[1:] {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	if !strings.Contains(names[1], "qsort") || !strings.HasPrefix(names[0], "libc.so.6+0x") {
		t.Errorf("%q", names)
	}
}

// exported returns a function of the C library, by its file and offset.
func exported(t *testing.T) (path string, offset uint64) {
	t.Helper()
	found, _ := filepath.Glob("/lib/*-linux-gnu/libc.so.6")
	if len(found) == 0 {
		t.Fatal("no C library")
	}
	f, err := elf.Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	symbols, err := f.DynamicSymbols()
	i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "qsort" && s.Value > 0 })
	if err != nil || i < 0 {
		t.Fatal("no qsort", err)
	}
	return found[0], symbols[i].Value
}
