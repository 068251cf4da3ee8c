package watch

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// stateFilePath is where the dashboard's state is kept (XDG Base Directory Specification); empty: nowhere.
func stateFilePath() string {
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

// readLastState returns how the last dashboard was left; nothing where that is not kept, or cannot be read.
func readLastState() (s ui.State) {
	text, err := os.ReadFile(stateFilePath())
	if err != nil || json.Unmarshal(text, &s) != nil {
		return ui.State{}
	}
	return s
}

// writeState keeps it for the next dashboard, if that is possible. Another dashboard may do so, too.
func writeState(s ui.State) {
	path := stateFilePath()
	if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	_ = export.WriteFile(path, true, func(w io.Writer) error { return json.NewEncoder(w).Encode(s) })
}
