package convert

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
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
	return ExportLake(paths, &o, func(string) bool { return false })
}

// filesIn returns the files in a folder, without their names.
func filesIn(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
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

func TestLakeOfManyRecordings(t *testing.T) {
	dir, paths := filepath.Join(t.TempDir(), "lake"), recorded(t)
	if err := toLake(dir, false, paths...); err != nil {
		t.Fatal(err)
	}
	list := filesIn(t, dir)
	for _, part := range list {
		if parts := strings.Split(part, "/"); len(parts) != 4 || !strings.HasPrefix(parts[1], "app=") || parts[2] != "job=none" || !strings.HasPrefix(parts[3], "date=20") {
			t.Errorf("a file in %s", part)
		}
	}
	if once := slices.Compact(slices.Clone(list)); len(once) != len(list) || len(list)%6 != 0 || len(list) >= 6*len(paths) {
		t.Errorf("%d files in %d folders, of %d recordings", len(list), len(once), len(paths))
	}
	if err := toLake(dir, false, paths...); err == nil || !strings.Contains(err.Error(), "already: use -f") {
		t.Errorf("the same again: %v", err)
	}
	if err := toLake(dir, true, paths...); err != nil || !slices.Equal(filesIn(t, dir), list) {
		t.Errorf("the same again with -f: %v", err)
	}
	if err := toLake(dir, false, paths[0], paths[0]); err == nil || !strings.Contains(err.Error(), "is given twice") {
		t.Errorf("one recording twice: %v", err)
	}
	o := ExportOptions{Format: "parquet", Output: files.Output{Path: dir}}
	if err := Export(nil, paths[0], &o, func(flag string) bool { return flag == "format" }); err == nil || !strings.Contains(err.Error(), "tables of another kind") {
		t.Errorf("rows of one recording among those of many: %v", err)
	}
}

// TestLakeSkipsWhatIsNoRecording names it, and keeps the rest.
func TestLakeSkipsWhatIsNoRecording(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.gmt")
	if err := os.WriteFile(bad, []byte("no recording"), 0o600); err != nil {
		t.Fatal(err)
	}
	lake := filepath.Join(dir, "lake")
	if err := toLake(lake, false, bad, recorded(t)[0], filepath.Join(dir, "none.gmt")); err == nil || !strings.HasPrefix(err.Error(), "2 files of 3 skipped") {
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
	if n := len(filesIn(t, dir)); n != 6*len(paths) {
		t.Errorf("%d files of %d recordings", n, len(paths))
	}
}

func TestLakeOptions(t *testing.T) {
	for _, c := range []struct{ format, output, flag, want string }{
		{"chrome", "x", "", "writes one recording, not 2"},
		{"parquet", "", "", "no folder"},
		{"parquet", "-", "", "no folder"},
		{"parquet", "x", "since", "--since is for one recording"},
		{"parquet", "x", "flows", "--flows is for --format chrome"},
	} {
		o := ExportOptions{Format: c.format, Output: files.Output{Path: c.output}}
		if err := ExportLake([]string{"a", "b"}, &o, func(flag string) bool { return flag == c.flag }); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
