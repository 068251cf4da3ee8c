package document_test

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/document"
)

func many(part string) string { return strings.Repeat(part, 10_000) }

func TestNesting(t *testing.T) {
	for text, deep := range map[string]bool{
		"a = 1\n":                                                        false,
		"x = " + many("[") + many("]"):                                   true,
		"x = " + many("[\n"):                                             true,
		many("a.") + "a = 1":                                             true,
		many("'a' . ") + "a = 1":                                         true,
		"[" + many("a.") + "a]":                                          true,
		"x = " + many("{a=") + "1" + many("}"):                           true,
		"x = {" + many("a.") + "a = 1}":                                  true,
		"match = '" + many(".[") + "'":                                   false,
		"match = \"\\\"" + many(".[") + "\"":                             false,
		"match = '''\n'" + many(".[\n") + "'''":                          false,
		"# " + many("."):                                                 false,
		many("[[tag]]\nmatch = 'x'\n"):                                   false,
		"x = \"\"\"x\"\"\"\"\ny = " + many("[") + many("]"):              true,
		"x = ['''x'''', " + many("[") + many("]") + "]":                  true,
		"x = {y = \"\"\"x\"\"\"\"\", z = " + many("[") + many("]") + "}": true,
		"\ufeffa = 1":                                                    false,
	} {
		var all map[string]any
		_, err := document.DecodeTOML(text, &all)
		if (err != nil) != deep {
			t.Errorf("%.30q: %.100v", text, err)
		}
	}
}

// TestUnknownKeys: the first of them is named, however many there are, and what a value may hold is none.
func TestUnknownKeys(t *testing.T) {
	type place struct {
		Tag  []struct{ Name string } `toml:"tag"`
		More map[string]any          `toml:"more,omitempty"`
		Any  any
	}
	for text, want := range map[string]string{
		"[[tag]]\nname = 'a'\n[more.a]\nb = 1\n[any]\nc = {d = 1}": "",
		"TAG = [{NAME = 'a'}]":          "",
		many("[[b]]\n"):                 "b",
		"tag = [{name = 'a', c.d = 1}]": "tag.c.d",
		"[[tag]]\nname = 'a'\n[[tag]]\nsize = 1\n" + many("[[b]]\n"): "tag.size",
	} {
		var unknown *document.UnknownKey
		var p place
		_, err := document.DecodeTOML(text, &p)
		if is := errors.As(err, &unknown); is != (want != "") || is && unknown.Key != want || !is && err != nil {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
		if strings.Contains(text, "'a'") && (len(p.Tag) == 0 || p.Tag[0].Name != "a") {
			t.Errorf("%.60q: read %v", text, p)
		}
	}
	var all map[string]any
	var distinct strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&distinct, "[a%d]\n", i)
	}
	if _, err := document.DecodeTOML(distinct.String(), &all); err == nil || !strings.Contains(err.Error(), "too many different keys: want at most 8192") {
		t.Errorf("100,000 tables: %.100v", err)
	}
}

func TestKeys(t *testing.T) {
	var all map[string]any
	keys, err := document.DecodeTOML("a = 1\n\n[b]\nc = 2\n'd e' = [\n1]\nf.g = 1\n[h.i]\nj = 1\n[[k]]\nl = {m = 1}\n[n]\n", &all)
	want := []document.Key{
		{Parts: []string{"a"}, Line: 1}, {Parts: []string{"b"}, Line: 3}, {Parts: []string{"b", "c"}, Line: 4}, {Parts: []string{"b", "d e"}, Line: 5},
		{Parts: []string{"h", "i"}, Line: 8}, {Parts: []string{"k"}, Line: 10}, {Parts: []string{"k", "l"}, Line: 11}, {Parts: []string{"n"}, Line: 12},
	}
	if err != nil || !reflect.DeepEqual(keys, want) {
		t.Errorf("%v\n%v, want\n%v", err, keys, want)
	}
	keys, err = document.DecodeTOML("set = {a = 1,\nb = 2}", &all)
	if want := []document.Key{{Parts: []string{"set"}, Line: 1}, {Parts: []string{"set", "a"}, Line: 1}, {Parts: []string{"set", "b"}, Line: 2}}; err == nil && !reflect.DeepEqual(keys, want) {
		t.Errorf("%v, want %v", keys, want)
	}
	var place struct {
		A struct{ B int } `toml:"a"`
	}
	var unknown *document.UnknownKey
	if _, err := document.DecodeTOML("[a]\nb = 1\nc = 2", &place); !errors.As(err, &unknown) || unknown.Key != "a.c" {
		t.Errorf("%v", err)
	}
}

// A text of some KB takes little memory, whatever it says.
func TestHostileTexts(t *testing.T) {
	var distinct strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&distinct, "k%d=1\n", i)
	}
	const madeMost = 64 << 20
	for name, text := range map[string]string{
		"lists":                      "x = " + many("[") + many("]"),
		"tables after a quote":       "x = {y = \"\"\"x\"\"\"\", z = " + many("{a=") + "1" + many("}") + "}",
		"dots":                       many("a.") + "a = 1",
		"a long table, many keys":    "[" + many("xxxx") + "]\n" + distinct.String(),
		"many tables of a long name": strings.Repeat("[["+strings.Repeat("x", 4000)+"]]\n", 20),
		"numbers":                    "x = [" + many("1,") + "]",
		"tables":                     "x = [" + many("{},") + "]",
		"keys in tables":             many("[[a.b]]\nc.d.e.f=1\n"),
		"unknown tables":             many("[[unknown]]\n"),
		"unknown keys in a line":     "tag = [" + many("{b=1},") + "]",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var all map[string]any
		_, err := document.DecodeTOML(text, &all)
		_, _ = document.DecodeTOML(text, new(struct{ Tag []struct{ Name string } }))
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; made > madeMost {
			t.Errorf("%s: %d bytes made %d MiB, %.80v", name, len(text), made>>20, err)
		}
	}
}

// FuzzDecode: the keys that were found first are those that the values have.
func FuzzDecode(f *testing.F) {
	f.Add("a = 1\n[b]\nc = '''x''''\n[[d]]\n\"e f\" = {g = [1, 2], h.i = 1979-05-27}\n")
	f.Add("x = \"\"\"\\\n  y\"\"\"\"\"\n# z\r\n'' = inf\nk = [\n # c\n1,]")
	f.Fuzz(func(t *testing.T, text string) {
		var all map[string]any
		keys, err := document.DecodeTOML(text, &all)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: more than a line: %q", text, err)
			}
			return
		}
		found := map[string]bool{}
		for _, k := range keys {
			if k.Line < 1 || k.Line > strings.Count(text, "\n")+1 {
				t.Errorf("%q is in line %d", k.Parts, k.Line)
			}
			found[k.Parts[0]] = true
			if _, ok := all[k.Parts[0]]; !ok {
				t.Errorf("%q has no value", k.Parts)
			}
		}
		for name, value := range all {
			if _, table := value.(map[string]any); !table && !found[name] {
				t.Errorf("%q has a value, but was not found: %v", name, keys)
			}
		}
	})
}
