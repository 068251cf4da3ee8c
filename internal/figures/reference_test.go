package figures_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
)

var update = flag.Bool("update", false, "write the table of docs/METRICS.md again")

// TestReference compares the table of docs/METRICS.md with that of the figures.
func TestReference(t *testing.T) {
	const begin, end = "<!-- figures -->\n", "<!-- /figures -->"
	path := filepath.Join("..", "..", "docs", "METRICS.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, is := strings.Cut(rest, end)
	if !ok || !is {
		t.Fatalf("%s has no %q", path, begin)
	}
	want := reference()
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if table != want {
		t.Errorf("%s has another table of figures: run go test ./internal/figures -update", path)
	}
}

// reference writes the table.
func reference() string {
	var b strings.Builder
	b.WriteString("| figure | meaning | unit | better | of processes | JSON | rule | Prometheus | lake | diff | unknown |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range figures.AllFigures() {
		rule := code(f.Rule)
		if f.IsForSites() && f.Rule != "" {
			rule += " *"
		}
		metric := code(f.Metric)
		if f.By != "" {
			metric += " by " + f.By
		}
		meaning := f.Meaning
		if f.Estimate {
			meaning += ": an estimate"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", f.Name, meaning, f.Unit, f.Better, f.Together, code(f.Key), rule, metric,
			code(f.Lake), f.Diff, f.Unknown)
	}
	return b.String()
}

func code(name string) string {
	if name == "" {
		return ""
	}
	return "`" + name + "`"
}

// TestEachRowHasNameAndGetter: each row has a name, a meaning and a getter for each scope in which it stands, and no two share a name.
func TestEachRowHasNameAndGetter(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range figures.AllFigures() {
		for kind, name := range map[string]string{"name": f.Name, "key": f.Key, "rule": f.Rule, "metric": f.Metric, "column": f.Lake} {
			if name == "" {
				continue
			}
			if seen[kind+name] {
				t.Errorf("two figures have the %s %q", kind, name)
			}
			seen[kind+name] = true
		}
		rule := map[figures.Direction]string{figures.Less: "max_", figures.More: "min_", figures.Neither: "none"}[f.Better]
		switch {
		case f.Name == "" || f.Meaning == "" || strings.HasSuffix(f.Meaning, "."):
			t.Errorf("%q: the meaning is %q", f.Name, f.Meaning)
		case (f.Key == "") != (f.Scopes == 0):
			t.Errorf("%s: the key is %q in the scopes %b", f.Name, f.Key, f.Scopes)
		case f.Rule != "" && !strings.HasPrefix(f.Rule, rule):
			t.Errorf("%s: the rule is %s, and %s is better", f.Name, f.Rule, f.Better)
		case f.Scopes&figures.InSite != 0 && !f.IsForSites():
			t.Errorf("%s: call sites lack it", f.Name)
		}
	}
}
