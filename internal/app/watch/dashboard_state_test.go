package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// TestStateIsKept: for the next dashboard, where that can be written and read.
func TestStateIsKept(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_STATE_HOME", folder)
	if got := readLastState(); got != (ui.State{}) {
		t.Errorf("before there was one: %+v", got)
	}
	want := ui.State{Layout: "tuning", Hidden: "57", Sort: "PEAK", Reverse: true, Refresh: time.Second}
	writeState(ui.State{})
	writeState(want)
	if got := readLastState(); got != want {
		t.Errorf("kept %+v", got)
	}
	path := filepath.Join(folder, "gpumemtop", "dashboard.json")
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 {
		t.Errorf("the folder has %v, %v", list, err)
	}
	if err := os.WriteFile(path, []byte(`{"layout": "tuning", "hidden": 5}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readLastState(); got != (ui.State{}) {
		t.Errorf("of a broken file: %+v", got)
	}
	t.Setenv("XDG_STATE_HOME", "/dev/null")
	writeState(want)
	if got := readLastState(); got != (ui.State{}) {
		t.Errorf("where nothing can be kept: %+v", got)
	}
	t.Setenv("XDG_STATE_HOME", "here")
	t.Setenv("HOME", folder)
	if got := stateFilePath(); got != filepath.Join(folder, ".local", "state", "gpumemtop", "dashboard.json") {
		t.Errorf("the file is %s", got)
	}
	t.Setenv("HOME", "")
	writeState(want)
	if got := readLastState(); got != (ui.State{}) {
		t.Errorf("without a home: %+v", got)
	}
}
