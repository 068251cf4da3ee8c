package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	a, b := recordUnder(t, "none", example("train"), "20", "16K"), recordUnder(t, "futhark", example("train"), "20", "16K")
	result := run(t, command{args: []string{gpumemtop(), "diff", a, b}})
	if result.code != 0 || len(result.stderr) != 0 {
		t.Fatalf("%s\n%s", result, result.stderr)
	}
	for _, want := range []string{`policies differ: "none" and "futhark"`, "hit rate", "driver creates", "▲", "▼", "train.c:"} {
		if !contains(result.stdout, want) {
			t.Errorf("no %q in\n%s", want, result.stdout)
		}
	}
	result = run(t, command{args: []string{gpumemtop(), "diff", "--format", "json", a, a}})
	var same struct {
		Overall []struct{ Significant bool }
		Tags    []struct {
			Fate    string
			Changes []struct{ Delta float64 }
		}
	}
	if err := json.Unmarshal(result.stdout, &same); err != nil || len(same.Tags) == 0 {
		t.Fatalf("%v: %s", err, result.stdout)
	}
	for _, c := range same.Overall {
		if c.Significant {
			t.Errorf("a run differs from itself: %s", result.stdout)
		}
	}
	for _, tag := range same.Tags {
		for _, c := range tag.Changes {
			if tag.Fate != "kept" || c.Delta != 0 {
				t.Errorf("a call site differs from itself: %+v", tag)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	file := recordUnder(t, "futhark", example("leak"), "3", "1M")
	torn := filepath.Join(t.TempDir(), "torn.gmt")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(torn, data[:len(data)-10], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, file, rules, want string
		code                    int
	}{
		{"kept", file, "max_peak_in_use = \"1GiB\"\n[[tag]]\nmatch = \"create_temporary\"\nmax_leaked_bytes = 0", "2 of 2 rules kept", 0},
		{"broken", file, "max_leaked_bytes = 0", "FAIL  max_leaked_bytes", 1},
		{"no such site", file, "[[tag]]\nmatch = \"absent\"\nmax_misses = 9", "no call site matches", 1},
		{"torn", torn, "max_peak_in_use = \"1GiB\"", "FAIL  recording: not whole", 1},
		{"unknown rule", file, "max_peak = 3", "", 125},
		{"no TOML", file, "what?", "", 125},
	} {
		rules := filepath.Join(t.TempDir(), "rules.toml")
		if err := os.WriteFile(rules, []byte(c.rules), 0o644); err != nil {
			t.Fatal(err)
		}
		result := run(t, command{args: []string{gpumemtop(), "check", c.file, "--rules", rules}})
		if result.code != c.code || !contains(result.stdout, c.want) {
			t.Errorf("%s: %s, want %d with %q\n%s%s", c.name, result, c.code, c.want, result.stdout, result.stderr)
		}
		if c.code == 125 {
			checkOneLine(t, result.stderr, "rules.toml")
		}
	}
}

func TestDiffAndCheckUsedWrongly(t *testing.T) {
	t.Parallel()
	file := recordUnder(t, "none", example("leak"), "2", "64K")
	for words, want := range map[string]string{
		"diff " + file:                                   "takes two recordings, not 1",
		"diff --top -1 " + file + " " + file:             "--top",
		"diff --format xml " + file + " " + file:         "unknown format",
		"diff " + file + " /nowhere.gmt":                 "/nowhere.gmt",
		"check " + file:                                  "--rules",
		"check " + file + " --rules /nowhere.toml":       "/nowhere.toml",
		"check " + file + " --rules / ":                  "rules",
		"check --format xml --rules x " + file:           "unknown format",
		"check --rules " + file + " " + file + " second": "one recording, not 2",
	} {
		result := run(t, command{args: append([]string{gpumemtop()}, strings.Fields(words)...)})
		if result.code != 125 {
			t.Errorf("%s: %s", words, result)
		}
		checkOneLine(t, result.stderr, want)
	}
}
