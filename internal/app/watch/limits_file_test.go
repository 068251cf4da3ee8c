package watch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// TestOnlyChangedLimitsAreSaved: only what differs from the defaults is written, for its owner alone, and never over another file.
func TestOnlyChangedLimitsAreSaved(t *testing.T) {
	present := stats.PolicyLimits("futhark", map[string]string{
		"max_cached_bytes": "100663296", "steal_other_tag": "off", "proportion": "1.5", "outgrown": "on",
	})
	path := filepath.Join(t.TempDir(), "a.toml")
	if err := saveLimitsFile(path, "futhark", present); err != nil {
		t.Fatal(err)
	}
	const want = "# gpumemtop: settings of the dashboard\npolicy = \"futhark\"\n\n[set]\nmax_cached_bytes = \"96M\"\nsteal_other_tag = \"off\"\n"
	text, err := os.ReadFile(path)
	if err != nil || string(text) != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, text, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := saveLimitsFile(path, "slab", nil); err == nil || err.Error() != path+" exists: type another name" {
		t.Errorf("over a file: %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != want {
		t.Error("the file was overwritten")
	}
	if err := saveLimitsFile(filepath.Join(path, "b"), "slab", nil); err == nil || !strings.HasPrefix(err.Error(), "save settings: ") {
		t.Errorf("below a file: %v", err)
	}
}

func TestParseValue(t *testing.T) {
	if got, err := parseLimitValue("futhark", "max_cached_bytes", " 96M "); got != "100663296" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := parseLimitValue("futhark", "max_age", "x"); err == nil || !strings.Contains(err.Error(), "want a time") {
		t.Errorf("%v", err)
	}
}
