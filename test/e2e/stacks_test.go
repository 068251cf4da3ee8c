package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestStacksAreTheUnwinders runs programs with a shim that compares every call stack that it walks with what the compiler's
// unwinder finds, and aborts if they differ.
func TestStacksAreTheUnwinders(t *testing.T) {
	checking := checkingGpumemtop(t)
	programs := append(examplePrograms(),
		program{name: "clinfo", args: []string{"clinfo"}},
		program{name: "conformance", args: []string{testProgram("conformance")}},
		program{name: "queries", args: []string{testProgram("queries")}},
		program{name: "soak", args: []string{testProgram("soak"), "7"}},
		program{name: "python", args: []string{"/usr/bin/python3", filepath.Join(root, "test", "programs", "sites.py")}},
	)
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			words := []string{checking, "--headless", "--policy", "none", "--tags", "stack", "--"}
			if end := run(t, command{args: slices.Concat(words, p.args), env: p.env}); end.code != 0 {
				t.Errorf("ended with %s: %s", end, end.stderr)
			}
		})
	}
}

// checkingGpumemtop builds gpumemtop with that shim and returns its path.
func checkingGpumemtop(t *testing.T) string {
	t.Helper()
	const library = "build/stacks/libgpumemtop.so"
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(root, "internal/session/payload/lib/libgpumemtop.so"): filepath.Join(root, library),
	}})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file, binary := filepath.Join(folder, "overlay.json"), filepath.Join(folder, "gpumemtop")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{
		{"make", "-s", library},
		{ // as make does, which has compiled nearly all of it; without what debuggers want, which takes half of the linker's time
			"go", "build", "-buildvcs=false", "-ldflags=-s -w", "-trimpath", "-tags=netgo", "-pgo=cmd/gpumemtop/run.pgo", "-overlay", file,
			"-o", binary, "./cmd/gpumemtop",
		},
	} {
		if end := run(t, command{args: words, dir: root}); end.code != 0 {
			t.Fatalf("%v: %s", words, end.stderr)
		}
	}
	text, err := os.ReadFile(binary)
	if err != nil || !contains(text, "%#zx unwound") {
		t.Fatalf("the shim does not compare stacks: %v", err)
	}
	return binary
}
