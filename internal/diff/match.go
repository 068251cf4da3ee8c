package diff

import (
	"regexp"
	"sync"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// pair is a call site in both runs; it may be missing in one.
type pair struct {
	a, b *stats.Tag
	fate Fate
}

// lineNumber matches the line in "file.c:88 function".
var lineNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`:\d+ `) })

// withoutLineNumber returns a call site without its line, which changes with the code above it.
func withoutLineNumber(name string) string { return lineNumber().ReplaceAllString(name, " ") }

// matchSites pairs the call sites of two runs: by name, then by function if one call site of it is left on each side.
func matchSites(a, b []stats.Tag) []pair {
	var pairs []pair
	left, names := map[string][]*stats.Tag{}, map[string]*stats.Tag{}
	for i := range a {
		names[a[i].Name] = &a[i]
	}
	var added []*stats.Tag
	for i := range b {
		if old := names[b[i].Name]; old != nil {
			pairs = append(pairs, pair{old, &b[i], Kept})
			delete(names, b[i].Name)
			continue
		}
		added = append(added, &b[i])
		left[withoutLineNumber(b[i].Name)] = append(left[withoutLineNumber(b[i].Name)], &b[i])
	}
	gone := map[string][]*stats.Tag{}
	for i := range a {
		if names[a[i].Name] != nil {
			gone[withoutLineNumber(a[i].Name)] = append(gone[withoutLineNumber(a[i].Name)], &a[i])
		}
	}
	for _, t := range added {
		p := withoutLineNumber(t.Name)
		if len(left[p]) == 1 && len(gone[p]) == 1 {
			pairs = append(pairs, pair{gone[p][0], t, Moved})
			delete(names, gone[p][0].Name)
			continue
		}
		pairs = append(pairs, pair{nil, t, Added})
	}
	for i := range a {
		if names[a[i].Name] != nil {
			pairs = append(pairs, pair{&a[i], nil, Removed})
		}
	}
	return pairs
}

// compareSite compares the figures of one call site.
func (c *comparison) compareSite(p pair) Tag {
	t := Tag{Fate: p.fate}
	before, after := p.a, p.b
	switch p.fate {
	case Removed:
		t.Name, after = p.a.Name, &stats.Tag{}
	case Added:
		t.Name, before = p.b.Name, &stats.Tag{}
	case Moved:
		t.Name, t.Before = p.b.Name, p.a.Name
	case Kept:
		t.Name = p.b.Name
	}
	for _, f := range c.comparedFigures() {
		if f.IsForSites() {
			t.Changes = c.appendComparison(t.Changes, f, siteFigureOrZero(f, c.a, before), siteFigureOrZero(f, c.b, after))
		}
	}
	return t
}

// siteFigureOrZero returns the figure of a call site, 0 for a missing one.
func siteFigureOrZero(f *figures.Figure, run *figures.Subject, t *stats.Tag) figures.Value {
	if t.Name == "" {
		return figures.Value{}
	}
	return f.ValueOfSite(run, t)
}
