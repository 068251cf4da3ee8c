package main

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/session"
)

// A word that is no program is compared with the commands, by letters and by how they begin.
func TestNearCommand(t *testing.T) {
	root := newRootCommand()
	for word, want := range map[string]string{"recrd": "gpumemtop record?", "rep": "gpumemtop replay, report?", "r": "", "blur": ""} {
		got := suggestCommand(root, word, session.ErrNotFound).Error()
		if want != "" && !strings.HasSuffix(got, want) || want == "" && strings.Contains(got, "mean") {
			t.Errorf("%s: %s", word, got)
		}
	}
}
