package archtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Word is one that the glossary replaces, or a phrase: words with spaces between, and alternatives with bars.
type Word struct{ Phrase, Instead string }

// Words lists what docs/GLOSSARY.md replaces. Each was used hundreds of times, for several things at once.
var Words = []Word{
	{"told|telling", "reported, recorded, shown, known"},
	{"tell|tells of|apart|by|how|what|which|where|when|whether|that", "report, show, distinguish"},
	{"nobody|somebody|everybody|anybody|whoever|whosoever", "name who: a thread, the program, no caller"},
	{"what it is of", "basic facts"},
	{"so many", "many, that many"},
	{"go|goes|going|gone|went over to", "switch to"},
	{"there is to know", "details"},
	{"that is none", "that is not one"},
	{"but for", "except"},
	{"for want of", "for lack of, without"},
	{"wherefrom", "from where"},
	{"on end", "in a row"},
	{"is said", "the message says"},
	{"allocation site|sites", "call site"},
	{"stranger|strangers", "unknown handle"},
	{"door|doors", "preload, layer"},
	{"shelf|shelves", "free list"},
	{"grave|graves|buried", "recently freed handle"},
	{"hope|hopes", "candidate"},
	{"haste", "priority"},
	{"laboratory", "what-if, replay"},
}

// wordFiles are the endings of files that people read.
var wordFiles = []string{".go", ".c", ".h", ".def", ".md", ".txtar", ".sh", ".map", ".yml", "Makefile", "run", "failed"}

// wordless are the files that may hold any word, each for its reason.
var wordless = map[string]string{
	"docs/GLOSSARY.md":                "it names what it replaces",
	"internal/archtest/words.go":      "it lists them",
	"internal/archtest/words_test.go": "it tries them",
}

// CheckWords reads the files below root and returns a sentence for each word that the glossary replaces.
func CheckWords(root string) ([]string, error) {
	phrases := phrasesByFirstWord()
	var findings []string
	err := eachWordFile(root, func(name, text string) {
		for i, line := range strings.Split(strings.ToLower(text), "\n") {
			for _, f := range findWords(line, phrases) {
				findings = append(findings, fmt.Sprintf("%s:%d: %s", name, i+1, f))
			}
		}
	})
	return findings, err
}

// eachWordFile calls visit for each file below root that people read, with its path below root and its text.
func eachWordFile(root string, visit func(name, text string)) error {
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // a file that vanished while others build is no finding
			return nil
		case err != nil:
			return fmt.Errorf("walk the sources: %w", err)
		case entry.IsDir():
			if name != root && isSkippedFolder(entry.Name()) && entry.Name() != ".ci" {
				return fs.SkipDir
			}
			return nil
		}
		relative := filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator)))
		if _, free := wordless[relative]; free || !hasCheckedWords(relative) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read source: %w", err)
		}
		visit(relative, string(text))
		return nil
	})
}

// Ceiling is how often a pattern may occur in all files together.
type Ceiling struct {
	Pattern *regexp.Regexp
	Most    int
	Instead string
}

// Ceilings lists patterns whose number may only fall: a change that removes some lowers Most. The goal is 0.
var Ceilings = []Ceiling{
	{regexp.MustCompile(`\banew\b`), 0, "again"},
	{regexp.MustCompile(`\bof which\b`), 1, "a noun with its own verb"},
	{regexp.MustCompile(`\bOne that\b`), 0, "a noun"},
	{regexp.MustCompile(`\bwhat it is\b`), 0, "a noun"},
	{regexp.MustCompile(`\bany more\b`), 2, "no longer, left"},
}

// CheckCeilings returns a sentence for each pattern that occurs more often than it may in the files below root.
func CheckCeilings(root string, ceilings []Ceiling) (findings []string, err error) {
	counts := make([]int, len(ceilings))
	err = eachWordFile(root, func(_, text string) {
		for i, c := range ceilings {
			counts[i] += len(c.Pattern.FindAllString(text, -1))
		}
	})
	for i, c := range ceilings {
		if counts[i] > c.Most {
			findings = append(findings, fmt.Sprintf("%s: %d times, %d are allowed: write %s", c.Pattern, counts[i], c.Most, c.Instead))
		}
	}
	return findings, err
}

func hasCheckedWords(name string) bool {
	return slices.ContainsFunc(wordFiles, func(end string) bool {
		return strings.HasPrefix(end, ".") && path.Ext(name) == end || path.Base(name) == end
	})
}

// phrase is what may follow a first word, each as a list of alternatives.
type phrase struct {
	rest    [][]string
	instead string
}

func phrasesByFirstWord() map[string][]phrase {
	phrases := map[string][]phrase{}
	for _, w := range Words {
		first, rest, _ := strings.Cut(w.Phrase, " ")
		p := phrase{instead: w.Instead}
		for _, next := range strings.Fields(rest) {
			p.rest = append(p.rest, strings.Split(next, "|"))
		}
		for _, word := range strings.Split(first, "|") {
			phrases[word] = append(phrases[word], p)
		}
	}
	return phrases
}

// findWords returns a sentence for each phrase in a line of lower case.
func findWords(line string, phrases map[string][]phrase) []string {
	var findings []string
	words := strings.FieldsFunc(line, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	for i, word := range words {
		for _, p := range phrases[word] {
			if len(words)-i > len(p.rest) && p.matchesWords(words[i+1:]) {
				findings = append(findings, fmt.Sprintf("%q: write %s", strings.Join(words[i:i+1+len(p.rest)], " "), p.instead))
			}
		}
	}
	return findings
}

func (p phrase) matchesWords(words []string) bool {
	for i, alternatives := range p.rest {
		if !slices.Contains(alternatives, words[i]) {
			return false
		}
	}
	return true
}
