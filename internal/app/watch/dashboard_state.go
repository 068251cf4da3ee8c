package watch

import (
	"encoding/json"
	"os"
	"path/filepath"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// dashboardStatePath is where the dashboard's state is kept (XDG Base Directory Specification); empty: nowhere.
func dashboardStatePath() string {
	folder := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(folder) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		folder = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(folder, "gpumemtop", "dashboard.json")
}

// stateMax bounds the file, in bytes.
const stateMax = 4 << 10

// readDashboardState returns how the last dashboard was left; nothing where that is not kept, or cannot be read.
func readDashboardState() (s ui.State) {
	text, err := files.ReadBoundedFile(dashboardStatePath(), stateMax)
	if err != nil || json.Unmarshal(text, &s) != nil || s.Refresh != 0 && !isRefreshAllowed(s.Refresh) {
		return ui.State{}
	}
	return s
}

// saveDashboardState keeps it for the next dashboard, if that is possible. Another dashboard may do so, too. A pipe at the file's name would
// wait for a reader, hence CreateFileAtomically.
func saveDashboardState(s ui.State) {
	path := dashboardStatePath()
	text, err := json.Marshal(s)
	if err != nil || path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	_ = export.CreateFileAtomically(path, true, func(beside string) error { return os.WriteFile(beside, text, 0o600) })
}
