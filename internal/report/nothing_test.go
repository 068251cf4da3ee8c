package report

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// TestFiguresOfNothing: no percentile of no call, no word on every buffer of none, and no all-clear where there was little to judge.
func TestFiguresOfNothing(t *testing.T) {
	of := func(do func(*analysis.Analysis)) *analysis.Analysis {
		s := refusals(0)
		s.Processes[0].Orderly = true
		a := &analysis.Analysis{Snapshot: s}
		do(a)
		return a
	}
	some := func(a *analysis.Analysis) {
		a.Snapshot.Totals = stats.Totals{Creates: 2, Releases: 2, DriverCreates: 2, CreatesTimed: 5, DriverTimed: 5, CreateP50NS: 5, CreateP99NS: 7, DriverCreateP50: 4, DriverCreateP99: 6}
	}
	for name, test := range map[string]struct {
		analysis  *analysis.Analysis
		want, not []string
	}{
		"nothing": {
			of(func(*analysis.Analysis) {}), []string{"nothing was found, and no buffer was created: there was little to judge\n", "No buffer was created."},
			[]string{"no mistake", "p50", "Every buffer", "exited"},
		},
		"a bad end": {
			of(func(a *analysis.Analysis) { a.Snapshot.Processes[0].Status = 2 }),
			[]string{"there was little to judge; the process exited with status 2\n"}, nil,
		},
		"one of two": {
			of(func(a *analysis.Analysis) {
				some(a)
				a.Snapshot.Processes = append(a.Snapshot.Processes, stats.Process{State: stats.Exited, Status: 3, Number: 2, PID: 77, Program: "b"})
			}),
			[]string{"the process exited with status 3: pid 77"}, nil,
		},
		"nearly: buffers": {
			of(some), []string{"nothing was found: no mistake", "Every buffer was released.", "2 creates and 0 releases; create p50 4ns, p99 6ns\n", "calls        create p50 5ns, p99 7ns\n"},
			[]string{"little to judge", "No buffer was created"},
		},
		"one call": {
			of(func(a *analysis.Analysis) {
				some(a)
				a.Snapshot.Totals.CreatesTimed, a.Snapshot.Totals.DriverTimed = 1, 2
			}),
			[]string{"; create median 4ns\n", "calls        create 5ns\n"}, []string{"p50", "p99"},
		},
		"calls past us": {
			of(func(a *analysis.Analysis) { a.Snapshot.Unseen = []string{"/x/libmine.so"} }),
			[]string{"nothing was found, but calls through /x/libmine.so are not watched\n", "no request was seen: calls through /x/libmine.so are not watched\n"},
			[]string{"nothing was requested", "little to judge"},
		},
		"never used": {
			of(func(a *analysis.Analysis) { some(a); a.Lag = analysis.Lag{Unused: 2} }), []string{"all          2 never used\n"}, []string{"of 0 buffers"},
		},
		"unknown": {
			of(func(a *analysis.Analysis) { some(a); a.Lag = analysis.Lag{Unsure: 1} }), []string{"unknown      1 buffer: the end of the last use is unknown\n"}, []string{"more buffer"},
		},
		"nearly: known ones": {
			of(func(a *analysis.Analysis) { some(a); a.Lag = analysis.Lag{Known: 1, Unsure: 1} }), []string{"of 1 buffer, at least", "1 more buffer: the end"}, nil,
		},
	} {
		spaced := func(text string) string { return strings.Join(strings.Fields(text), " ") }
		text := spaced(textOf(t, WriteText, test.analysis, Options{All: true}))
		for _, want := range test.want {
			if !strings.Contains(text, spaced(want)) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		for _, not := range test.not {
			if strings.Contains(text, not) {
				t.Errorf("%s: %q in\n%s", name, not, text)
			}
		}
	}
}
