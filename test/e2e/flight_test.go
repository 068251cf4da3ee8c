package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// libraryIn writes the library that flight logs need into a folder and returns its path.
func libraryIn(t *testing.T, folder string) string {
	t.Helper()
	library := filepath.Join(folder, "libgpumemtop.so")
	if result := run(t, command{args: []string{gpumemtop(), "library", "-o", library}}); result.code != 0 {
		t.Fatalf("%s\n%s", result, result.stderr)
	}
	return library
}

// Where all programs leave flight logs, as on a cluster, attach sees the calls of each as well.
func TestAttachedBesideAFlightLog(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program, library := called(t, example("pipeline"), "flown"), libraryIn(t, folder)
	w := attach(t, "--comm", "flown")
	result := run(t, command{args: []string{program, "5", "64K"}, env: []string{"LD_PRELOAD=" + library, "GPUMEMTOP_LOG=" + folder}})
	w.leave()
	if got := countsOf(t, w.file, "flown"); result.code != 0 || !slices.Equal(got, []uint64{50}) {
		t.Errorf("%s, created %v, want 50", result, got)
	}
	if logs, err := filepath.Glob(filepath.Join(folder, "*.flight")); err != nil || len(logs) != 1 || contains(w.stderr.bytes(), "already runs") {
		t.Errorf("logs %v, %v\n%s", logs, err, w.stderr.bytes())
	}
}

// TestFlightLog: programs with the library and no gpumemtop beside them leave records, and reduce finds the odd one.
func TestFlightLog(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	library := libraryIn(t, folder)
	logs := filepath.Join(folder, "logs")
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	const ranks = 5
	for rank := range ranks {
		size := "64K"
		if rank == 3 {
			size = "1M"
		}
		result := run(t, command{
			args: []string{example("pipeline"), "3", size},
			env:  []string{"LD_PRELOAD=" + library, "GPUMEMTOP_LOG=" + logs, "SLURM_JOB_ID=9", fmt.Sprint("SLURM_PROCID=", rank)},
		})
		if result.code != 0 || len(result.stderr) > 0 {
			t.Errorf("%s\n%s", result, result.stderr)
		}
	}
	if err := os.WriteFile(filepath.Join(logs, "cut.flight"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(folder, "job.parquet")
	result := run(t, command{args: []string{gpumemtop(), "reduce", "--json", "-o", out, logs}})
	var reduced struct {
		Processes, Failed int
		Sites             []struct {
			Site, Job string
			Processes int
			Peak      struct{ Min, Median, Max int }
			Outliers  []struct{ Rank string }
		}
		Skipped []struct{ File string }
	}
	if err := json.Unmarshal(result.stdout, &reduced); err != nil {
		t.Fatalf("%v\n%s\n%s", err, result, result.stderr)
	}
	if reduced.Processes != ranks || reduced.Failed != 0 || len(reduced.Skipped) != 1 || reduced.Skipped[0].File != "cut.flight" {
		t.Errorf("%+v", reduced)
	}
	found := false
	for _, s := range reduced.Sites {
		if s.Site != "pipeline.c:59 create_grey" {
			continue
		}
		found = true
		if s.Processes != ranks || s.Job != "9" || s.Peak.Min != 64<<10 || s.Peak.Median != 64<<10 || s.Peak.Max != 1<<20 ||
			len(s.Outliers) != 1 || s.Outliers[0].Rank != "3" {
			t.Errorf("%+v", s)
		}
	}
	if !found {
		t.Errorf("no call site create_grey in %s", result.stdout)
	}
	type row struct {
		Site string `parquet:"site"`
		Peak struct {
			Max int64 `parquet:"max"`
		} `parquet:"peak"`
	}
	rows, err := parquet.ReadFile[row](out)
	if err != nil || len(rows) != len(reduced.Sites) || rows[0].Peak.Max != int64(reduced.Sites[0].Peak.Max) {
		t.Errorf("%v: %d rows, %+v", err, len(rows), rows)
	}
}
