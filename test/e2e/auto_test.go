package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// auto runs a program under auto, checks that it does as bare, that a replay repeats each decision and that the report says what the
// summary does, and returns what was measured and what the user reads.
func auto(t *testing.T, flags []string, program ...string) ([]measuredJSON, string) {
	t.Helper()
	measured, text := measure(t, append([]string{"--policy", "auto"}, flags...), program...)
	for _, m := range measured {
		if m.Auto == "" || !strings.Contains(text, m.Auto) {
			t.Errorf("the summary lacks %+v:\n%s", m, text)
		}
	}
	return measured, text
}

// TestAutoTakesWhatIsFaster: with --scrub zero each recycled block is filled, which takes longer than new memory that no command touches.
func TestAutoTakesWhatIsFaster(t *testing.T) {
	t.Parallel()
	measured, text := auto(t, []string{"--scrub", "zero"}, example("churn"), "120000", "4M")
	if len(measured) == 0 || !measured[0].Adopted || measured[0].Alternative != "none" || measured[0].Low <= 0 || measured[0].Blocks < 32 {
		t.Errorf("%+v\n%s", measured, text)
	}
	for _, want := range []string{"auto       switches to none ", ": with futhark an iteration takes ", "policy     auto: none (before that futhark)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestAutoStays: where the base does well, or the run is too short to measure, nothing is changed.
func TestAutoStays(t *testing.T) {
	for _, c := range []struct {
		program []string
		want    string
	}{
		{[]string{example("pipeline"), "1200", "512K"}, "auto       stays with futhark"},
		{[]string{example("train"), "10"}, "auto       "},
		{[]string{example("tiny")}, "auto       "},
	} {
		t.Run(filepath.Base(c.program[0]), func(t *testing.T) {
			t.Parallel()
			measured, text := auto(t, nil, c.program...)
			if !strings.Contains(text, c.want) || strings.Contains(text, "before that") || strings.Contains(text, "switches to") {
				t.Errorf("%+v\n%s", measured, text)
			}
		})
	}
}
