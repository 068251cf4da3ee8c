package watch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// TestStateIsKept: for the next dashboard, where that can be written and read.
func TestStateIsKept(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_STATE_HOME", folder)
	if got := readDashboardState(); got != (ui.State{}) {
		t.Errorf("before there was one: %+v", got)
	}
	want := ui.State{Layout: "tuning", Hidden: "57", Sort: "PEAK", Reverse: true, Refresh: time.Second}
	saveDashboardState(ui.State{})
	saveDashboardState(want)
	if got := readDashboardState(); got != want {
		t.Errorf("kept %+v", got)
	}
	path := filepath.Join(folder, "gpumemtop", "dashboard.json")
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 {
		t.Errorf("the folder has %v, %v", list, err)
	}
	for _, text := range []string{`{"layout": "tuning", "hidden": 5}`, `{"layout": "tuning", "refresh": 1}`, `{"layout": "tuning", "refresh": 999999999999999999}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readDashboardState(); got != (ui.State{}) {
			t.Errorf("%s was read as %+v", text, got)
		}
	}
	t.Setenv("XDG_STATE_HOME", "/dev/null")
	saveDashboardState(want)
	if got := readDashboardState(); got != (ui.State{}) {
		t.Errorf("where nothing can be kept: %+v", got)
	}
	t.Setenv("XDG_STATE_HOME", "here")
	t.Setenv("HOME", folder)
	if got := dashboardStatePath(); got != filepath.Join(folder, ".local", "state", "gpumemtop", "dashboard.json") {
		t.Errorf("the file is %s", got)
	}
	t.Setenv("HOME", "")
	saveDashboardState(want)
	if got := readDashboardState(); got != (ui.State{}) {
		t.Errorf("without a home: %+v", got)
	}
}

// TestStateIsNoFile: what stands at the file's name is neither waited for nor written to.
func TestStateIsNoFile(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a pipe":            func(path string) error { return unix.Mkfifo(path, 0o600) },
		"an endless file":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"a folder":          func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to nothing": func(path string) error { return os.Symlink("nothing", path) },
	} {
		folder := t.TempDir()
		t.Setenv("XDG_STATE_HOME", folder)
		path := filepath.Join(folder, "gpumemtop", "dashboard.json")
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), put(path)); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(path)
		saveDashboardState(ui.State{Layout: "tuning"})
		after, err := os.Lstat(path)
		if got := readDashboardState(); got != (ui.State{}) || err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: read %+v, and then there was %v, %v", name, got, after, err)
		}
	}
}
