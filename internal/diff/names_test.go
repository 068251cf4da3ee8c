package diff

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
)

// TestNames compares the figures of a comparison with those that scripts look for, in their order.
func TestNames(t *testing.T) {
	a, b := two()
	a.Phases, b.Phases = []analysis.Phase{{Iterations: 5, Growth: 9, Mean: 9}}, []analysis.Phase{{Iterations: 5, Growth: 7, Mean: 7}}
	var text bytes.Buffer
	if err := CompareRuns(a, b).WriteJSON(&text, "a", "b"); err != nil {
		t.Fatal(err)
	}
	type change struct{ Figure, Unit, Test string }
	var report struct {
		Overall []change
		Tags    []struct{ Changes []change }
	}
	if err := json.Unmarshal(text.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for _, c := range report.Overall {
		list.WriteString("run: " + c.Figure + ", " + c.Unit + ", " + c.Test + "\n")
	}
	for _, c := range report.Tags[0].Changes {
		list.WriteString("call site: " + c.Figure + ", " + c.Unit + ", " + c.Test + "\n")
	}
	golden.RequireEqual(t, list.String())
}
