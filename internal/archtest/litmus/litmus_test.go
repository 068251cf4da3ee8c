package litmus

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// row is a row of the tables in docs/models/orders.md: an access to a variable that threads share, and the order that it needs.
type row struct {
	place, variable, function, call string
	needs                           order
}

// section is a table of orders.md, with the files that have the code.
type section struct {
	title string
	files []string
	rows  []row
}

var orders = map[string]order{
	"": seqCst, "relaxed": relaxed, "acquire": acquire, "release": release, "acq_rel": acquireRelease, "seq_cst": seqCst,
}

const root = "../../.."

// load reads the tables.
func load(t *testing.T) (sections []section) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/models/orders.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		title, rest, _ := strings.Cut(part, "\n")
		s := section{title: title}
		for line := range strings.SplitSeq(rest, "\n") {
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
			}
			switch {
			case strings.HasPrefix(line, "Code: "):
				s.files = strings.Fields(strings.NewReplacer("`", "", ",", "").Replace(line[len("Code: "):]))
			case len(cells) == 6 && orders[cells[4]] != 0:
				s.rows = append(s.rows, row{cells[0], cells[1], cells[2], cells[3], orders[cells[4]]})
			}
		}
		sections = append(sections, s)
	}
	return sections
}

var (
	comment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	atomic  = regexp.MustCompile(`\b(?:atomic\.[A-Z]|atomic_(?:load|store|exchange|compare|fetch|flag)_?|__atomic_)\w*\(`)
	word    = regexp.MustCompile(`\w+`)
	named   = regexp.MustCompile(`(?i)(?:memory_order|__atomic)_(relaxed|acquire|release|acq_rel|seq_cst)`)
)

// calls returns the atomic accesses in a text, each with what stands between its parentheses.
func calls(text string) (all []string) {
	text = strings.Join(strings.Fields(comment.ReplaceAllString(text, "")), " ")
	for _, at := range atomic.FindAllStringIndex(text, -1) {
		end := at[1]
		for depth := 1; depth > 0; end++ {
			depth += strings.Count(text[end:end+1], "(") - strings.Count(text[end:end+1], ")")
		}
		all = append(all, text[at[0]:end])
	}
	return all
}

// orderOf returns the order that a call names first, which is that of its success; without a name it is seq_cst, as in Go.
func orderOf(call string) order {
	if found := named.FindStringSubmatch(call); found != nil {
		return orders[strings.ToLower(found[1])]
	}
	return seqCst
}

// enough reports whether an order gives all that another one gives.
func (o order) enough(needs order) bool {
	return o >= needs && (!needs.acquires() || o.acquires()) && (!needs.releases() || o.releases())
}

// target returns the name of the variable that a call accesses: the last word of its first argument.
func target(call string) string {
	first, depth := call[strings.Index(call, "(")+1:len(call)-1], 0
	for i, c := range first {
		depth += strings.Count(string(c), "(") - strings.Count(string(c), ")")
		if c == ',' && depth == 0 {
			first = first[:i]
			break
		}
	}
	words := word.FindAllString(first, -1)
	return words[len(words)-1]
}

// compare returns what is wrong with a call, and marks the rows that it stands in.
func (s *section) compare(call string, found []bool) (findings []string) {
	known, listed := false, false
	for i, r := range s.rows {
		known = known || r.variable == target(call)
		if r.variable != target(call) || !strings.Contains(call, r.call) {
			continue
		}
		found[i], listed = true, true
		if !orderOf(call).enough(r.needs) {
			findings = append(findings, fmt.Sprintf("%s: %s is weaker than %q needs", s.title, call, r.place))
		}
	}
	if known && !listed {
		findings = append(findings, fmt.Sprintf("%s: %s stands in no row", s.title, call))
	}
	return findings
}

// read returns the files of a section.
func (s *section) read(t *testing.T) string {
	t.Helper()
	var texts []string
	for _, pattern := range s.files {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no file %s (%v)", s.title, pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(name, "/shim/test/") {
				texts = append(texts, string(text))
			}
		}
	}
	return strings.Join(texts, "\n")
}

// TestCodeHasTheOrders compares each atomic access to a variable in the tables with its row. Made weaker, it must not pass.
func TestCodeHasTheOrders(t *testing.T) {
	sections := load(t)
	if len(sections) < 5 {
		t.Fatalf("only %d tables", len(sections))
	}
	for _, s := range sections {
		text, found := s.read(t), make([]bool, len(s.rows))
		for _, call := range calls(text) {
			for _, finding := range s.compare(call, found) {
				t.Error(finding)
			}
			needs := slices.ContainsFunc(s.rows, func(r row) bool {
				inside := r.variable == target(call) && strings.Contains(call, r.call)
				return inside && r.needs != relaxed && !named.MatchString(r.call) // else no code would have the row's call
			})
			if needs && len(s.compare(weakened(call), found)) == 0 {
				t.Errorf("%s: %s may be relaxed in the code", s.title, call)
			}
		}
		for i, r := range s.rows {
			if !found[i] {
				t.Errorf("%s: no code has %s", s.title, r.call)
			}
			if !strings.Contains(text, r.function+"(") {
				t.Errorf("%s: no code has %s()", s.title, r.function)
			}
		}
		if strings.Contains(text, "thread_fence(") {
			t.Errorf("%s: the programs have no fence", s.title)
		}
	}
}

// weakened returns a call with its order made relaxed.
func weakened(call string) string {
	if at := named.FindStringIndex(call); at != nil {
		return call[:at[0]] + "memory_order_relaxed" + call[at[1]:]
	}
	return strings.TrimSuffix(call, ")") + ", memory_order_relaxed)"
}

// TestOrdersAreEnoughAndNeeded runs each program with the orders of the tables, which must allow nothing bad, and once with each
// order weakened, which must allow it in some program: else the table asks for too much.
func TestOrdersAreEnoughAndNeeded(t *testing.T) {
	needs := map[string]order{}
	for _, s := range load(t) {
		for _, r := range s.rows {
			if _, twice := needs[r.place]; twice {
				t.Fatalf("%q is there twice", r.place)
			}
			needs[r.place] = r.needs
		}
	}
	needed := map[string]map[order]bool{}
	for name, p := range programs {
		used := map[string]bool{}
		of := func(place string) order {
			if needs[place] == plain {
				t.Fatalf("%s: no row has %q", name, place)
			}
			used[place] = true
			return needs[place]
		}
		if bad, all := p.bad(of); bad > 0 || all == 0 {
			t.Errorf("%s: %d of %d executions are bad", name, bad, all)
		}
		for place := range used {
			for _, weaker := range weakerThan(needs[place]) {
				bad, _ := p.bad(func(other string) order {
					if other == place {
						return weaker
					}
					return needs[other]
				})
				if needed[place] == nil {
					needed[place] = map[order]bool{}
				}
				needed[place][weaker] = needed[place][weaker] || bad > 0
			}
		}
	}
	for place, o := range needs {
		for _, weaker := range weakerThan(o) {
			if !needed[place][weaker] {
				t.Errorf("no program fails with %q weakened from %d to %d", place, o, weaker)
			}
		}
	}
}

// weakerThan returns the orders that are next below another one.
func weakerThan(o order) []order {
	switch o {
	case seqCst:
		return []order{acquireRelease}
	case acquireRelease:
		return []order{acquire, release}
	case acquire, release:
		return []order{relaxed}
	}
	return nil
}

// TestKnownPrograms tries the axioms on programs whose outcomes the literature gives.
func TestKnownPrograms(t *testing.T) {
	for _, test := range []struct {
		name    string
		of      order
		program program
		allowed bool
	}{
		{"store buffering", seqCst, storeBuffering, false},
		{"store buffering", acquireRelease, storeBuffering, true},
		{"load buffering", relaxed, loadBuffering, false},
		{"message passing", acquireRelease, messagePassing, false},
		{"message passing", relaxed, messagePassing, true},
		{"coherence of reads", relaxed, readsInOrder, false},
		{"independent reads of independent writes", seqCst, independentReads, false},
		{"independent reads of independent writes", acquireRelease, independentReads, true},
	} {
		if bad, _ := test.program.bad(func(string) order { return test.of }); bad > 0 != test.allowed {
			t.Errorf("%s with order %d: %d executions, want some: %v", test.name, test.of, bad, test.allowed)
		}
	}
}
