package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestWords keeps the words that the glossary replaces from coming back.
func TestWords(t *testing.T) {
	findings, err := CheckWords(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range findings {
		t.Error(finding)
	}
}

// TestCeilings keeps patterns that are hard to read from becoming more.
func TestCeilings(t *testing.T) {
	findings, err := CheckCeilings(filepath.Join("..", ".."), Ceilings)
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range findings {
		t.Error(finding)
	}
}

func TestCheckCeilingsFinds(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("// One that begins anew.\n// One that ends.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := CheckCeilings(root, []Ceiling{{regexp.MustCompile(`\bOne that\b`), 1, "a noun"}, {regexp.MustCompile(`\banew\b`), 1, "again"}})
	if err != nil || len(got) != 1 || !strings.Contains(got[0], "2 times, 1 are allowed: write a noun") {
		t.Errorf("findings %q (%v), want one of the first pattern", got, err)
	}
}

func TestCheckWordsFinds(t *testing.T) {
	root := t.TempDir()
	text := "// Every process runs.\n// It tells of\tthem.\nvar x = 1 // goes over to nobody\n"
	for name, text := range map[string]string{"a.go": text, "b.bin": text, "testdata/c.go": text} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := CheckWords(root)
	if err != nil || len(got) != 3 || !strings.Contains(got[0], `a.go:2: "tells of": write report`) || !strings.Contains(got[1], "switch to") {
		t.Errorf("findings %q (%v), want one of line 2 and two of line 3 of a.go", got, err)
	}
}

// TestGlossary: at most 60 terms, each once, and 25 more that only the rooms of what-if share.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "GLOSSARY.md"))
	if err != nil {
		t.Fatal(err)
	}
	general, ofWhatIf, _ := strings.Cut(string(text), "\n## Words of what-if\n")
	pattern := regexp.MustCompile(`(?m)^\*\*([^*]+)\*\*`)
	terms, more := pattern.FindAllStringSubmatch(general, -1), pattern.FindAllStringSubmatch(ofWhatIf, -1)
	seen := map[string]bool{}
	for _, term := range slices.Concat(terms, more) {
		if seen[term[1]] {
			t.Errorf("%q is there twice", term[1])
		}
		seen[term[1]] = true
	}
	if len(terms) < 40 || len(terms) > 60 || len(more) < 15 || len(more) > 25 {
		t.Errorf("%d terms and %d of what-if, want 40 to 60 and 15 to 25", len(terms), len(more))
	}
}

// lessons are the documents that people read for one purpose: to learn the tool, or to see what it was tried on.
var lessons = []string{"TUTORIAL*.md", "ANSWERS.md", "FLEET.md", "DRIVERS.md", "GAINS.md", "HARMLESS.md"}

// TestDocsStayShort keeps README, the reference and the lessons within the number of words that a reader has time for.
func TestDocsStayShort(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	learn := 0
	for _, pattern := range lessons {
		learn += countWords(t, filepath.Join(docs, pattern))
	}
	readme := countWords(t, filepath.Join("..", "..", "README.md"))
	reference := countWords(t, filepath.Join(docs, "*.md")) - learn
	if readme == 0 || readme > 600 || reference == 0 || readme+reference > 22000 || learn > 8000 {
		t.Errorf("README.md has %d words of 600, with the reference in docs/ %d of 22000, the lessons there %d of 8000",
			readme, readme+reference, learn)
	}
}

// generatedTable is what a test writes from code: people look a row up.
var generatedTable = regexp.MustCompile(`(?s)<!-- (\w+) -->\n.*?<!-- /\w+ -->`)

// countWords is the number of words in the files that match the pattern, without generated tables.
func countWords(t *testing.T, pattern string) (words int) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for field := range strings.FieldsSeq(generatedTable.ReplaceAllString(string(text), "")) {
			if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				words++ // the borders of tables are none
			}
		}
	}
	return words
}
