package unfinished_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/unfinished"
)

// folder tells this program, run by a test, where to abandon files.
const folder = "UNFINISHED_TEST_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(folder); dir != "" {
		os.Exit(abandon(dir))
	}
	os.Exit(m.Run())
}

// abandon begins files, finishes some, and abandons the rest: after that nothing can be begun in this process.
func abandon(dir string) int {
	var errs error
	for _, name := range []string{"begun", "finished", "folder"} {
		path := filepath.Join(dir, name)
		unfinished.Begin(path)
		if name == "folder" {
			errs = errors.Join(errs, os.Mkdir(path, 0o700))
			path = filepath.Join(path, "in it")
		}
		errs = errors.Join(errs, os.WriteFile(path, nil, 0o600))
	}
	unfinished.Begin(filepath.Join(dir, "never made"))
	path := filepath.Join(dir, "finished")
	errs = errors.Join(errs, unfinished.Finish(path, func() error { return os.Rename(path, path+" well") }))
	unfinished.Abandon()
	if errs != nil {
		return 1
	}
	return 0
}

func TestAbandon(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "stranger"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self)
	command.Env = append(os.Environ(), folder+"="+dir)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 || left[0].Name() != "finished well" || left[1].Name() != "stranger" {
		t.Errorf("left are %v; want what was finished and what was never begun", left)
	}
}

func TestFinishReturnsTheError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	unfinished.Begin(path)
	if err := unfinished.Finish(path, func() error { return os.ErrPermission }); !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v", err)
	}
}
