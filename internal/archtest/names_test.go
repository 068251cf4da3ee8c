package archtest

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestCommentsNameWhatIsThere(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := LoadGoFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	c, err := LoadCText(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(c) < 50 {
		t.Fatalf("only %d C files found: the walk is broken", len(c))
	}
	for _, finding := range CheckCommentNames(files, c) {
		t.Error(finding)
	}
}

// TestCheckNamesFinds tries each rule on a file beside a package and a shim of a few names.
func TestCheckNamesFinds(t *testing.T) {
	for _, test := range []struct {
		file, text string
		want       string // part of the only finding, "" if there must be none
	}{
		{"a.go", "// Old starts.\nfunc New() {}", `a.go:2: the comment of New begins with "Old"`},
		{"a.go", "type T int\n// It runs.\nfunc (t *T) Run() {}", `comment of Run begins with "It"`},
		{"a.go", "// Old is one.\ntype T[K any] struct{}", `comment of T begins with "Old"`},
		{"a.go", "// Old is one.\nvar x, y = 1, 2", `comment of x begins with "Old"`},
		{"a.go", "const (\n// b is the first.\na = 1\nb = 2\n)", `comment of a begins with "b"`},
		{"a_test.go", "// TestOld shows it.\nfunc TestNew() {}", `comment of TestNew begins with "TestOld"`},
		{"a_test.go", "// Makes one.\nfunc helper() {}", `comment of helper begins with "Makes"`},
		{"a.go", "// x is\n// like heap.Old.\nvar x int", "a.go:3: no package has heap.Old"},
		{"a.go", "func f() {\n// See heap.Heap.Old.\n}", "no package has heap.Heap.Old"},
		{"a.go", "// f is like old.Name.\nfunc f() {}", "no package has old.Name"},
		{"a.go", "func f(old int) { _ = old // of old.Name\n}", "no package has old.Name"},
		{"a.go", "// f is gmt_old.\nfunc f() {}", "no C code has gmt_old"},
		{"shim/a.c", "/* See gmt_old. */", "shim/a.c: no C code has gmt_old"},

		{"a.go", "// New is heap.Heap.Apply for a heap.Change.Size, or *io.Writer.\nfunc New() {}", ""},
		{"a.go", "func f(c heap.Change) { _ = c.Size // c.Size is new\n}", ""},
		{"a.go", "const (\n// These are two.\na = 1\nb = 2\n)", ""},
		{"a.go", "//go:noinline\nfunc f() {}\n// Both count.\nvar _ = 1", ""},
		{"a_test.go", "// What was freed is gone.\nfunc TestFree() {}", ""},
		{"a.go", "// f calls gmt_a, and more of gmt_*.\nfunc f() {}", ""},
		{"shim/a.c", "/* gmt_a and gmt_a_* */ void gmt_a(void); // as gmt_a", ""},
	} {
		c := map[string]string{"shim/b.c": "int gmt_a(void);"}
		files := []File{parsed(t, "internal/heap/heap.go", `import "io"; type Heap struct{}; type Change struct{ Size int }; func (h *Heap) Apply(w io.Writer) {}`)}
		if strings.HasSuffix(test.file, ".go") {
			files = append(files, parsed(t, test.file, test.text))
		} else {
			c[test.file] = test.text
		}
		findings := CheckCommentNames(files, c)
		if test.want == "" && len(findings) > 0 || test.want != "" && (len(findings) != 1 || !strings.Contains(findings[0], test.want)) {
			t.Errorf("%s: findings %q, want %q", test.text, findings, test.want)
		}
	}
}

func parsed(t *testing.T, name, text string) File {
	t.Helper()
	file, err := ParseGoFile(name, []byte("package a\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}
