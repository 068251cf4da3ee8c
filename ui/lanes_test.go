package ui

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// lineWith returns what the chart of memory has in the line with a label, empty where there is none.
func lineWith(d *dashboard, label string) string {
	for line := range strings.Lines(screen(d)) {
		parts := strings.Split(line, "│")
		if len(parts) > 2 && strings.TrimSpace(parts[1]) == label {
			return parts[2]
		}
	}
	return ""
}

// TestMissesByReason: the chart has a line for each of the most frequent reasons, on one scale; where none is known, one
// for all misses.
func TestMissesByReason(t *testing.T) {
	s := sampleSnapshot()
	d := newTest((&calls{}).options(), 140, 42, s)
	if lineWith(d, "miss") == "" || lineWith(d, "ratio") != "" {
		t.Errorf("without reasons:\n%s", screen(d))
	}
	s = sampleSnapshot()
	n := len(s.History)
	for i := range s.History {
		var r stats.MissCounts
		switch {
		case i < n/4:
			r[wire.MissCold] = 8
		case i > n/2:
			r[wire.MissTooWasteful] = 4
		}
		r[wire.MissDrained] = 1 / uint16(1+i)
		s.History[i].Reasons = r
	}
	d = newTest((&calls{}).options(), 140, 42, s)
	cold, waste := lineWith(d, "cold"), lineWith(d, "ratio")
	if !strings.Contains(cold, "█") || strings.Contains(cold, "▄") || !strings.Contains(waste, "▄") || strings.Contains(waste, "█") {
		t.Errorf("cold %q, waste %q", cold, waste)
	}
	if strings.Index(cold, "█") > strings.Index(waste, "▄") || lineWith(d, "miss") != "" || lineWith(d, "drain") != "" {
		t.Errorf("in\n%s", screen(d))
	}
	press(d, "1") // zoomed there is room for all
	if lineWith(d, "drain") == "" {
		t.Errorf("in\n%s", screen(d))
	}
	s.History[0].Machine = 1 // its line does not take the room of these
	d = newTest((&calls{}).options(), 200, 60, s)
	if lineWith(d, "anon") == "" || lineWith(d, "cold") == "" {
		t.Errorf("in\n%s", screen(d))
	}
}
