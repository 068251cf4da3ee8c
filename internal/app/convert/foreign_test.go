package convert

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
)

// TestExportsAreKnown: an export that is given for a recording is named, and what can be done with it.
func TestExportsAreKnown(t *testing.T) {
	dir := t.TempDir()
	for format, want := range map[string]string{
		"chrome": "a Chrome trace that gpumemtop wrote: https://ui.perfetto.dev", "parquet": "a folder of Parquet tables: DuckDB",
		"perfetto": "a Perfetto trace that gpumemtop wrote: https://ui.perfetto.dev", "perfetto.gz": "a Perfetto trace that gpumemtop wrote, packed by gzip: ",
		"csv": "a CSV table that gpumemtop wrote: ", "pprof": "a profile of pprof: ", "pprof.gz": "a profile of pprof, packed by gzip: ",
		"memviz": "a snapshot of PyTorch's memory: ", "rmm": "a log of RMM: gpumemtop import", "minimalloc": "a problem of MiniMalloc: gpumemtop import",
		"ndjson": "a recording as lines of JSON: gpumemtop import", "ndjson.gz": "a recording as lines of JSON, packed by gzip: gpumemtop import",
	} {
		name, _, _ := strings.Cut(format, ".")
		path := filepath.Join(dir, "run."+format)
		o := ExportOptions{Format: name, Output: files.Output{Path: path}, At: "peak", CountersEvery: time.Second}
		if err := Export(&bytes.Buffer{}, "../../report/testdata/tiny.gmt", &o, func(f string) bool { return f == "format" }); err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		_, err := recording.Open(path)
		if !errors.Is(err, recording.ErrNotRecording) || !strings.Contains(err.Error(), "it is "+want) {
			t.Errorf("%s: %v, want %q", format, err, want)
		}
	}
}
