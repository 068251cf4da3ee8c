package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/reportrun"
)

// TestKeys compares the keys of a report in JSON, which begin with those of a summary, with those that scripts rely on.
func TestKeys(t *testing.T) {
	a := reportrun.SampleAnalysis()
	var report any
	if err := json.Unmarshal([]byte(textOf(t, WriteJSON, a, Options{})), &report); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	keys("", report, seen)
	var list []string
	for key := range seen {
		list = append(list, key)
	}
	slices.Sort(list)
	golden.RequireEqual(t, strings.Join(list, "\n")+"\n")
}

// keys notes each key below a value, with the type of what it has.
func keys(path string, value any, seen map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			keys(path+"."+key, below, seen)
		}
	case []any:
		for _, below := range v {
			keys(path+"[]", below, seen)
		}
	default:
		seen[fmt.Sprintf("%s %T", path, v)] = true
	}
}
