package analysis

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestObjectsLeft: objects that a process leaves behind are noted, however few, and not where it may have had no time to release them.
func TestObjectsLeft(t *testing.T) {
	for name, test := range map[string]struct {
		rounds, created, released uint64 // events in each round
		status                    int16
		signal, runs, hasty       bool
		want                      string // in the text; empty: no note
	}{
		"each round leaves one":     {rounds: 14, created: 2, released: 1, want: "1 context, 14 events; 14 of the events from tag 5; 14 are live, 9 more than at half"},
		"made once":                 {rounds: 1, created: 3, want: "1 context, 3 events; 3 of the events from tag 5"},
		"nearly: released":          {rounds: 14, created: 2, released: 2},
		"nearly: goes on":           {rounds: 14, created: 2, released: 1, runs: true},
		"nearly: a bad end":         {rounds: 14, created: 2, released: 1, status: 2},
		"nearly: ended by _exit":    {rounds: 14, created: 2, released: 1, hasty: true},
		"nearly: many, which grow":  {rounds: 140, created: 2, released: 1},
		"nearly: ended by a signal": {rounds: 14, created: 2, released: 1, signal: true},
	} {
		s := newTape()
		s.put(wire.ObjectFields{Held: wire.HeldContext, Tag: 4, Created: 1, Released: min(1, test.rounds*test.released/28), Most: 1}.Event(), "")
		s.release(s.driver(1, mib), wire.OutcomeDriver)
		for n := range test.rounds {
			s.put(wire.ObjectFields{Held: wire.HeldEvent, Tag: 5, Created: (n + 1) * test.created, Released: (n + 1) * test.released, Most: 2}.Event(), "")
		}
		switch {
		case test.runs:
		case test.hasty:
			s.thread = 0
			s.put(wire.ExitFields{Status: 0}.Event(), "")
		case test.signal:
			s.thread = 0
			s.put(wire.ExitFields{Status: -1, Signal: 9}.Event(), "")
		default:
			s.put(wire.ExitFields{Status: test.status}.Event(), "")
		}
		d := diagnosis(s.analyse(t), "OpenCL objects are never released")
		if test.want == "" && d != nil || test.want != "" && (d == nil || d.Severity != Note || !strings.Contains(d.Text, test.want)) {
			t.Errorf("%s: %+v, want %q", name, d, test.want)
		}
	}
}
