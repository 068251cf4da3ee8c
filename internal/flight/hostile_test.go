package flight

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// forge writes records whose call sites and modules all differ.
func forge(t testing.TB, files int) string {
	t.Helper()
	dir := t.TempDir()
	var f wire.Flight
	for file := range files {
		copy(f.Program[:], fmt.Sprintf("program%d", file))
		for i := range f.Modules {
			name := fmt.Sprintf("/forged/%d/%d/", file, i)
			copy(f.Modules[i].Path[:], name+strings.Repeat("x", len(f.Modules[i].Path)-len(name)))
		}
		for i := range f.Sites {
			f.Sites[i].Depth, f.Sites[i].Counts.Creates = wire.StackMax, 1
			for j := range f.Sites[i].Frames {
				f.Sites[i].Frames[j] = wire.Frame{Module: uint64(1 + j%len(f.Modules)), Offset: uint64(file*100000 + 100*i + j)}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("h-%d-1%s", file, wire.FlightSuffix)), wire.AppendFlight(nil, &f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Records have a bound together: call sites lose their names first, then records are left out, and both are counted.
func TestForgedRecords(t *testing.T) {
	const files, most = 400, 4 << 20
	dir := forge(t, files)
	for _, most := range []int64{most, most / 16} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		log, err := readFoldersWithin(most, dir)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		made := after.TotalAlloc - before.TotalAlloc
		t.Logf("%d processes, %d left out, %d call sites without a name, %d MiB made", len(log.Processes), len(log.Bad), log.Unnamed, made>>20)
		if len(log.Processes)+len(log.Bad) != files || log.Unnamed == 0 || made > 256<<20 {
			t.Errorf("%d processes, %d left out, %d without a name, %d made", len(log.Processes), len(log.Bad), log.Unnamed, made)
		}
	}
}

func FuzzRead(f *testing.F) {
	dir := forge(f, 1)
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, entries[0].Name()))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte("x"), true)
	f.Add(uint32(4096), []byte("/proc/self/exe\x00"), false)
	f.Fuzz(func(t *testing.T, at uint32, piece []byte, raw bool) {
		b := append([]byte{}, whole...)
		copy(b[at%uint32(len(b)):], piece)
		if !raw { // with the right sum
			var record wire.Flight
			if wire.ParseFlight(b, &record) == nil {
				t.Skip("the piece changed nothing")
			}
			b = wire.AppendFlight(nil, &record)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a"+wire.FlightSuffix), b, 0o600); err != nil {
			t.Fatal(err)
		}
		log, err := ReadFolders(dir)
		if err != nil || len(log.Processes)+len(log.Bad) != 1 {
			t.Fatal(log, err)
		}
		for i := range log.Sites {
			log.Sites[i].SpreadOfFigure(Peak)
			log.Sites[i].ProcessesFarFromMedian()
		}
	})
}
