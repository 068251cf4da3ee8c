package tempfile_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/tempfile"
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
		tempfile.NoteUnfinished(path)
		if name == "folder" {
			errs = errors.Join(errs, os.Mkdir(path, 0o700))
			path = filepath.Join(path, "in it")
		}
		errs = errors.Join(errs, os.WriteFile(path, nil, 0o600))
	}
	tempfile.NoteUnfinished(filepath.Join(dir, "never made"))
	for _, shared := range []string{"empty", "shared"} { // the second has something of others in it
		stage := filepath.Join(dir, shared, "stage")
		tempfile.NoteUnfinishedShared(filepath.Join(dir, shared))
		tempfile.NoteUnfinished(stage)
		errs = errors.Join(errs, os.MkdirAll(stage, 0o700))
	}
	errs = errors.Join(errs, os.WriteFile(filepath.Join(dir, "shared", "other"), nil, 0o600))
	path := filepath.Join(dir, "finished")
	errs = errors.Join(errs, tempfile.FinishWith(path, func() error { return os.Rename(path, path+" well") }))
	tempfile.RemoveUnfinished()
	if errs != nil {
		return 1
	}
	return 0
}

func TestAbandon(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "unrelated"), nil, 0o600); err != nil {
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
	if len(left) != 3 || left[0].Name() != "finished well" || left[1].Name() != "shared" || left[2].Name() != "unrelated" {
		t.Errorf("left are %v; want what was finished, what was never begun, and a folder with something of others", left)
	}
	inside, err := os.ReadDir(filepath.Join(dir, "shared"))
	if err != nil || len(inside) != 1 || inside[0].Name() != "other" {
		t.Errorf("left in the shared folder are %v, %v", inside, err)
	}
}

func TestFinishReturnsTheError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	tempfile.NoteUnfinished(path)
	if err := tempfile.FinishWith(path, func() error { return os.ErrPermission }); !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v", err)
	}
}
