package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	anchor  = regexp.MustCompile(`<a id="([^"]+)"`)
	link    = regexp.MustCompile(`\]\(([^)\s#<]*)(?:#([^)\s]+))?\)`)
)

// TestLinksLead: each link of a document leads to a file, and to a heading or anchor of it.
func TestLinksLead(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "test/*.md", "test/*/*.md"} {
		documents, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range documents {
			for _, m := range link.FindAllStringSubmatch(read(t, document), -1) {
				file, place := m[1], m[2]
				if strings.Contains(file, ":") {
					continue // another site
				}
				target := document
				if file != "" {
					target = filepath.Join(filepath.Dir(document), file)
				}
				if _, err := os.Stat(target); err != nil {
					t.Errorf("%s links to %s, which is not there", document, file)
				} else if place != "" && !placesOf(read(t, target))[place] {
					t.Errorf("%s links to %s#%s: no heading is called that", document, file, place)
				}
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// placesOf returns what links can lead to in a document: anchors, and headings as forges name them.
func placesOf(text string) map[string]bool {
	places := map[string]bool{}
	for _, m := range anchor.FindAllStringSubmatch(text, -1) {
		places[m[1]] = true
	}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		places[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return places
}
