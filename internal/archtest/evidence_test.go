package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEvidenceIsThere: each test that docs/HARMLESS.md names is one, of Go or of the shim, so that the page cannot rot.
func TestEvidenceIsThere(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "HARMLESS.md"))
	if err != nil {
		t.Fatal(err)
	}
	there, err := testsBelow(root)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]+|[a-z]+(?:_[a-z]+){2,})`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 15 {
		t.Errorf("the page names %d tests, want one a row at least", len(named))
	}
	for _, name := range named {
		if !there[name[1]] {
			t.Errorf("docs/HARMLESS.md names %s, and no test is called that", name[1])
		}
	}
}

// testsBelow returns the names of all tests of Go, and of the shim.
func testsBelow(root string) (map[string]bool, error) {
	there := map[string]bool{}
	definition := regexp.MustCompile(`(?m)^(?:func (Test\w+)\(t \*testing\.T\)|TEST\((\w+)\))`)
	return there, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && isSkippedFolder(d.Name()):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "shim/test/test_"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range definition.FindAllStringSubmatch(string(text), -1) {
			there[match[1]+match[2]] = true
		}
		return nil
	})
}
