package main

import (
	"os"
	"path/filepath"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/session"
)

// BenchmarkRun watches programs that do little else than create and release. The profile that bin/gpumemtop is built with is
// one of this: make pgo.
func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		for _, options := range [][]string{{"--policy", "none"}, {"--policy", "futhark"}, {"--policy", "slab"}, {"--ghosts", "usual"}} {
			for _, program := range [][]string{{"churn", "500000", "4K", "2"}, {"churn", "500000", "4K", "2", "6"}, {"pipeline", "200", "64K"}} {
				watched(b, options, program)
			}
		}
	}
}

func watched(b *testing.B, options, program []string) {
	b.Helper()
	example, err := filepath.Abs("../../bin/examples/" + program[0])
	if err != nil {
		b.Fatal(err)
	}
	args := append([]string{"--headless", "-o", filepath.Join(b.TempDir(), "run.gmt")}, options...)
	root := newRootCommand()
	root.SetArgs(append(append(args, "--", example), program[1:]...))
	if status := reportError(root.Execute(), os.Stderr); status != (session.Status{}) {
		b.Fatal(status)
	}
}
