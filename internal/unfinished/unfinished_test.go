package unfinished

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestAbandon is the only test: nothing can be begun after it.
func TestAbandon(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"stage/deep", "empty/stage", "shared/stage", "shared/other", "made"} {
		if err := os.MkdirAll(at(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"stage", "empty/stage", "shared/stage", "made", "never"} {
		Begin(at(name))
	}
	BeginShared(at("empty"))
	BeginShared(at("shared"))
	if err := Finish(at("made"), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	Abandon()
	left, err := filepath.Glob(at("*"))
	if err != nil || !slices.Equal(left, []string{at("made"), at("shared")}) {
		t.Errorf("left %v, %v", left, err)
	}
	if inside, _ := filepath.Glob(at("shared/*")); !slices.Equal(inside, []string{at("shared/other")}) {
		t.Errorf("left in the shared folder: %v", inside)
	}
}
