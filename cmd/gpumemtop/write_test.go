package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
)

// statusOf runs a command line.
func statusOf(args []string) int {
	root := newRootCommand()
	root.SetArgs(args)
	return reportError(root.Execute(), io.Discard).Code
}

// TestInputsAreKept: no command writes over what it reads, whatever name that is given by.
func TestInputsAreKept(t *testing.T) {
	dir := t.TempDir()
	file, link, hard := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "hard")
	labtest.Write(t, file, recording.Header{ClockNS: 1000}, nil, recording.Footer{})
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(file, hard); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"export", "report", "trim", "import", "export --format ndjson"} {
		for _, output := range []string{file, link, hard} {
			words := append(strings.Fields(command), "-f", "-o", output, file)
			if status := statusOf(words); status != console.StatusFailed {
				t.Errorf("%v: status %d", words, status)
			}
		}
	}
	for _, twin := range []string{file, link, hard} {
		if status := statusOf([]string{"merge", "-o", filepath.Join(dir, "out"), file, twin}); status != console.StatusFailed {
			t.Errorf("merged with %s: status %d", twin, status)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the recording has changed, %v", err)
	}
}
