package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRepositoryFollowsItsPlan(t *testing.T) {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("not in the module: %v", err)
	}
	files, err := LoadGoFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("only %d files found: the walk is broken", len(files))
	}
	for _, finding := range CheckImports(files) {
		t.Error(finding)
	}
}

// The rules themselves must be free of cycles, or "one way" means nothing.
func TestRulesRunOneWay(t *testing.T) {
	var visit func(name string, above []string)
	visit = func(name string, above []string) {
		if slices.Contains(above, name) {
			t.Fatalf("cycle in the rules: %s", strings.Join(append(above, name), " -> "))
		}
		place, ok := Places[name]
		if !ok {
			t.Fatalf("%s may import %s, which has no place", above[len(above)-1], name)
		}
		for _, next := range place.May {
			visit(next, append(slices.Clone(above), name))
		}
	}
	for name := range Places {
		visit(name, nil)
	}
}

func TestCheckFinds(t *testing.T) {
	for _, test := range []struct {
		name, file, text, want string
	}{
		{"backward import", "internal/stats/a.go", `package stats; import _ "` + Module + `/ui"`, "internal/stats may not import ui"},
		{"subpackage of a forbidden place", "allocator/a.go", `package allocator; import _ "` + Module + `/internal/export/x"`, "allocator may not import internal/export"},
		{"folder without a place", "stray/a.go", "package stray", "no place"},
		{"import of a folder without a place", "ui/a.go", `package ui; import _ "` + Module + `/stray"`, "which has no place"},
		{"cgo", "internal/recording/a.go", `package recording; import "C"`, "cgo belongs"},
		{"cgo in a test", "ui/a_test.go", `package ui; import "C"`, "cgo belongs"},
		{"unsafe", "internal/recording/a.go", `package recording; import _ "unsafe"`, "_unsafe.go"},
		{"unsafe in allocator", "allocator/a_unsafe.go", `package allocator; import _ "unsafe"`, "a policy sees no memory"},
		{"lock in allocator", "allocator/a.go", `package allocator; import _ "sync"`, "serialises"},
		{"lock in carve", "allocator/carve/a.go", `package carve; import _ "sync"`, "serialises"},
		{"policy in carve", "allocator/carve/a.go", `package carve; import _ "` + Module + `/allocator"`, "imports run one way"},
		{"clock in a semaphore", "allocator/concurrent/semaphore/a.go", `package semaphore; import "time"; var _ = time.Now()`, "semaphore/a.go: must not import time"},
		{"files in the dashboard", "ui/a.go", `package ui; import "os"; var _, _ = os.Open("x")`, "os.Open: no I/O"},
		{"files in stats", "internal/stats/a.go", `package stats; import _ "os"`, "no I/O"},
		{"clock in stats", "internal/stats/a.go", `package stats; import "time"; var _ = time.Now()`, "time.Now: time is in the events"},
		{"command imported", "test/e2e/a_test.go", `package e2e; import _ "` + Module + `/cmd/gpumemtop"`, "no package imports"},
		{"no doc", "ui/a.go", "package ui", "want one package doc comment, have 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, err := ParseGoFile(test.file, []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			findings := strings.Join(CheckImports([]File{file}), "\n")
			if !strings.Contains(findings, test.want) {
				t.Errorf("findings %q, want one with %q", findings, test.want)
			}
		})
	}
}

func TestCheckAccepts(t *testing.T) {
	for _, test := range []struct{ name, file, text string }{
		{"forward import", "internal/stats/a.go", "// Package stats\npackage stats; import _ \"" + Module + "/internal/wire\""},
		{"within a place", "allocator/pow2/a.go", "// Package pow2\npackage pow2; import _ \"" + Module + "/allocator\""},
		{"unsafe by name", "internal/recording/a_unsafe.go", "// Package recording\npackage recording; import _ \"unsafe\""},
		{"durations", "internal/stats/a.go", "// Package stats\npackage stats; import \"time\"; var _ = time.Second"},
		{"a file as a value", "ui/a.go", "// Package ui\npackage ui; import \"os\"; var _ *os.File"},
		{"locks for many threads", "allocator/concurrent/semaphore/a.go", "// Package semaphore\npackage semaphore; import _ \"sync\""},
		{"tests may lock", "allocator/a_test.go", "package allocator; import _ \"sync\""},
		{"generator's input", "internal/wire/a.go", "//go:build ignore\n\npackage wire; import \"C\""},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, err := ParseGoFile(test.file, []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if findings := CheckImports([]File{file}); len(findings) > 0 {
				t.Errorf("findings %q, want none", findings)
			}
		})
	}
}

func TestTwoDocCommentsAreOneTooMany(t *testing.T) {
	var files []File
	for _, name := range []string{"ui/a.go", "ui/b.go"} {
		file, err := ParseGoFile(name, []byte("// Package ui\npackage ui"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if findings := CheckImports(files); len(findings) != 1 || !strings.Contains(findings[0], "have 2") {
		t.Errorf("findings %q, want one about two comments", findings)
	}
}
