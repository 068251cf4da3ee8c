package watch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
)

var recorded = filepath.Join("..", "..", "replay", "testdata", "train.futhark.gmt")

// TestFilmOfARecording: it goes to the file or to standard output, and replaces a file with Force only.
func TestFilmOfARecording(t *testing.T) {
	out := filepath.Join(t.TempDir(), "film.svg")
	o := ViewOptions{Dashboard: DashboardOptions{Theme: "dark", Refresh: time.Second}, Film: files.Output{Path: out}}
	if err := ShowRecording(nil, &o, recorded); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"<svg", "prefers-color-scheme:light", "<animate", "futhark"} {
		if !bytes.Contains(picture, []byte(part)) {
			t.Errorf("no %q in %s", part, picture)
		}
	}
	if err := ShowRecording(nil, &o, recorded); err == nil || !strings.Contains(err.Error(), "film.svg") {
		t.Errorf("a second time: %v", err)
	}
	var printed bytes.Buffer
	o.Film.Path = "-"
	if err := ShowRecording(&printed, &o, recorded); err != nil || !bytes.Equal(printed.Bytes(), picture) {
		t.Errorf("to standard output: %v, %d bytes, not %d", err, printed.Len(), len(picture))
	}
}

// TestFilmBehindTheEnd shows the end, without motion.
func TestFilmBehindTheEnd(t *testing.T) {
	var printed bytes.Buffer
	o := ViewOptions{At: "1h", Dashboard: DashboardOptions{Theme: "dark", Refresh: time.Second}, Film: files.Output{Path: "-"}}
	if err := ShowRecording(&printed, &o, recorded); err != nil || !strings.Contains(printed.String(), "futhark") ||
		strings.Contains(printed.String(), "<animate") {
		t.Errorf("%v: %s", err, printed.String())
	}
	o.Film.Path = filepath.Join(t.TempDir(), "film.svg")
	if err := ShowRecording(nil, &o, "missing.gmt"); err == nil || !strings.Contains(err.Error(), "missing.gmt") {
		t.Errorf("a film of nothing: %v", err)
	}
	if _, err := os.Stat(o.Film.Path); err == nil {
		t.Error("it left a file")
	}
}
