package check

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
)

// TestRuleNames compares the rules, their units and whether call sites have them with those that are in use.
func TestRuleNames(t *testing.T) {
	var list strings.Builder
	for line := range strings.Lines(HelpText()) {
		if key, rest, is := strings.Cut(line, " = "); is {
			site := ""
			if strings.HasSuffix(line, " *\n") {
				site = " *"
			}
			list.WriteString(strings.TrimSpace(key) + " " + strings.Fields(rest)[0] + site + "\n")
		}
	}
	golden.RequireEqual(t, list.String())
}
