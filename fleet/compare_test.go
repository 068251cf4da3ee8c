package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/diff"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/lake"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/parquet"
)

// fillLake adds runs of two builds.
func fillLake(t *testing.T, dir string, runs int) {
	t.Helper()
	l, err := parquet.OpenLake(dir, false, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		r := &lake.Rows{Run: lake.Run{Recording: fmt.Sprintf("%032x", i), Number: 1, App: "train", Revision: fmt.Sprint("r", 2*i/runs), Job: fmt.Sprint(i / 8)}}
		r.Run.Run = r.Run.Recording + "-1"
		r.Run.Path = fmt.Sprintf("/shared/runs/2026-11-30/node%04d-%d.gmt", i%500, i)
		r.Run.Rank, r.Run.Size, r.Run.Started, r.Run.Figures = fmt.Sprint(i%8), "8", int64(i), make([]int64, len(lake.RunFigures))
		r.Sites = []lake.Site{{Run: r.Run.Run, Site: "train.c:1 main", PeakInUse: int64(1 + 2*i/runs)}}
		if err := l.AddRows([]*lake.Rows{r}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMemoryOfARun: at most 125 bytes of a run stay in memory while builds are compared: with what the collector has not freed yet, 250.
func TestMemoryOfARun(t *testing.T) {
	const n = 20_000
	dir := filepath.Join(t.TempDir(), "lake")
	fillLake(t, dir, n)
	var before, after runtime.MemStats
	collect := func(m *runtime.MemStats) {
		for range 3 { // what the library has in its pools goes at the second
			runtime.GC()
		}
		runtime.ReadMemStats(m)
	}
	collect(&before)
	l, err := parquet.OpenLakeRows(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	b, err := diff.CompareBuilds(func(take func(*diff.BuildRun, string)) error {
		err := parquet.EachRow(l, parquet.Runs, func(r *diff.BuildRun) string { return r.Run }, take)
		if after.HeapAlloc == 0 {
			collect(&after)
		}
		return err
	}, func(take func(*diff.BuildSite, string)) error {
		return parquet.EachRow(l, parquet.Sites, func(s *diff.BuildSite) string { return s.Run }, take)
	}, "", "")
	if err != nil || len(b.Programs) != 1 || b.CountIncreases() != 1 || b.Programs[0].BaseRuns != 200 || b.Programs[0].HeadRuns != 200 {
		t.Fatalf("%+v, %v", b, err)
	}
	used := int64(after.HeapAlloc-before.HeapAlloc) / n
	if t.Logf("%d bytes a run", used); used < 25 || used > 125 {
		t.Errorf("%d bytes for each of %d runs, want some, and 125 at most", used, n)
	}
}
