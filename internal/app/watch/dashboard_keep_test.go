package watch

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// TestExportOverwritesNothing: what is shown goes into files that others read; none is overwritten or left half.
func TestExportOverwritesNothing(t *testing.T) {
	folder := t.TempDir()
	s := &stats.Snapshot{
		Time: 3e9, Started: 1e9, Program: "./blur", Totals: stats.Totals{InUse: 4096, Creates: 3, Hits: 2, Misses: 1},
		Tags: []stats.Tag{{ID: 1, Name: `a.c:1 "f", g`, Live: 1, InUse: 4096, Creates: 3, Hits: 2, Misses: 1, Stack: []string{"f a.c:1", "main a.c:9"}}},
	}
	at := func(name string) string { return filepath.Join(folder, name) }
	for _, name := range []string{"a.pb.gz", "a.json", "a.csv"} {
		if err := exportSnapshot(at(name), s, false); err != nil {
			t.Fatal(err)
		}
		if err := exportSnapshot(at(name), s, false); err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("%s is written twice: %v", name, err)
		}
		if info, err := os.Stat(at(name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	}
	f, _ := os.Open(at("a.pb.gz"))
	p, err := profile.Parse(f)
	if err != nil || len(p.Sample) != 1 || len(p.Sample[0].Location) != 2 {
		t.Errorf("profile %v: %v", p, err)
	}
	text, _ := os.ReadFile(at("a.json"))
	var summary map[string]any
	if err := json.Unmarshal(text, &summary); err != nil || len(summary) == 0 {
		t.Errorf("summary %s: %v", text, err)
	}
	table, _ := os.ReadFile(at("a.csv"))
	rows, err := csv.NewReader(strings.NewReader(string(table))).ReadAll()
	if err != nil || len(rows) != 2 || rows[1][0] != s.Tags[0].Name || rows[1][2] != "4096" || rows[1][10] != "f a.c:1 < main a.c:9" {
		t.Errorf("%q: %v", rows, err)
	}
	if err := exportSnapshot(at("a.txt"), s, false); err == nil || !strings.Contains(err.Error(), ".csv") {
		t.Errorf("an unknown ending: %v", err)
	}
	if err := exportSnapshot(at("no/a.csv"), s, false); err == nil {
		t.Error("a folder that is not there")
	}
	if err := writePrivateFile(at("a.csv"), nil); err == nil {
		t.Error("a file is overwritten")
	}
}
