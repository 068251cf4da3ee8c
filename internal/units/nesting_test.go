package units

import (
	"strings"
	"testing"
)

func TestCheckNesting(t *testing.T) {
	many := func(part string) string { return strings.Repeat(part, 10_000) }
	for text, deep := range map[string]bool{
		"a = 1\n":                                false,
		"x = " + many("["):                       true,
		"x = " + many("[\n"):                     true,
		many("a.") + "a = 1":                     true,
		many("'a' . ") + "a = 1":                 true,
		"[" + many("a.") + "a]":                  true,
		"x = " + many("{a="):                     true,
		"match = '" + many(".[") + "'":           false,
		"match = \"\\\"" + many(".[") + "\"":     false,
		"match = '''\n'" + many(".[\n") + "'''":  false,
		"match = '''\n'''\n" + many("a.") + "=1": true,
		"# " + many("."):                         false,
		"x = '\n" + many("a.") + "=1":            true,
		"x = \"\\\n" + many("a.") + "=1":         true,
		many("[[tag]]\nmatch = 'x'\n"):           false,
		many("x.y = 1.5\n"):                      false,
		many("]") + many("["):                    true,
	} {
		if err := CheckNesting(text); (err != nil) != deep {
			t.Errorf("%.30q: %v", text, err)
		}
	}
}
