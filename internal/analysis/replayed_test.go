package analysis

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// TestReplayed: a finding names what gained, and nothing else.
func TestReplayed(t *testing.T) {
	now := Outcome{Hits: 50, Requests: 100, PeakReserved: 20 << 20}
	knob := Knob{Limit: "max_waste_ratio", Value: "3", Why: "why"}
	limit := Trial{"futhark", "max_waste_ratio", "3"}
	for name, test := range map[string]struct {
		gain     gain
		knob     Knob
		policies string
		outcomes map[Trial]Outcome
		want     string
	}{
		"less memory": {
			lessMemory, Knob{}, "slab arena", map[Trial]Outcome{
				{Policy: "slab"}: {Hits: 50, Requests: 100, PeakReserved: 15 << 20}, {Policy: "arena"}: {Hits: 50, Requests: 100, PeakReserved: 10 << 20},
			}, "text; replayed with arena, part: 10.0 MiB reserved at most instead of 20.0 MiB, the same 50.0 % hits",
		},
		"hits lost":     {lessMemory, Knob{}, "arena", map[Trial]Outcome{{Policy: "arena"}: {Hits: 40, Requests: 100, PeakReserved: 10 << 20}}, "text"},
		"hardly less":   {lessMemory, Knob{}, "arena", map[Trial]Outcome{{Policy: "arena"}: {Hits: 50, Requests: 100, PeakReserved: 19 << 20}}, "text"},
		"fails":         {lessMemory, Knob{}, "arena", map[Trial]Outcome{{Policy: "arena"}: {Hits: 50, Requests: 100, PeakReserved: 10 << 20, Failures: 1}}, "text"},
		"more hits":     {anyGain, knob, "", map[Trial]Outcome{limit: {Hits: 74, Requests: 100, PeakReserved: 20 << 20}}, "text; replayed with max_waste_ratio=3, part: the same 20.0 MiB reserved at most, 74.0 % hits instead of 50.0 %"},
		"no more":       {anyGain, knob, "", map[Trial]Outcome{limit: {Hits: 52, Requests: 100, PeakReserved: 20 << 20}}, "text"},
		"at no loss":    {noLoss, knob, "", map[Trial]Outcome{limit: {Hits: 50, Requests: 100, PeakReserved: 20 << 20}}, "text; replayed with max_waste_ratio=3, part: the same 20.0 MiB reserved at most, the same 50.0 % hits"},
		"at a loss":     {noLoss, knob, "", map[Trial]Outcome{limit: {Hits: 40, Requests: 100, PeakReserved: 20 << 20}}, "text"},
		"nothing named": {anyGain, Knob{}, "", nil, "text; not tried"},
	} {
		d := Diagnosis{Text: "text", Knob: test.knob}
		d.try(test.gain, "; not tried", strings.Fields(test.policies)...)
		a := &Analysis{Snapshot: &stats.Snapshot{Policy: "futhark", Totals: stats.Totals{Misses: 1}}, Diagnoses: []Diagnosis{d}, Misses: []Miss{{Knob: test.knob}}}
		if got := len(a.Trials()); got != len(test.outcomes) {
			t.Errorf("%s: %d trials", name, got)
		}
		a.Replayed(now, test.outcomes, ", part")
		if got := a.Diagnoses[0]; got.Text != test.want || (got.Knob.Limit != "") != (test.knob.Limit != "" && strings.Contains(test.want, "replayed")) {
			t.Errorf("%s: %+v", name, got)
		}
		if k := a.Misses[0].Knob; (k.Limit != "") != (name == "more hits") || (k.Limit != "") != strings.HasPrefix(k.Why, "why; replayed with ") {
			t.Errorf("%s: of misses %+v", name, k)
		}
	}
}

// TestNoTrials: of runs whose configuration is not that of the whole run nothing is replayed.
func TestNoTrials(t *testing.T) {
	for name, s := range map[string]*stats.Snapshot{
		"nothing requested": {}, "another policy before": {Change: stats.PolicyChange{Former: []string{"slab"}}, Totals: stats.Totals{Hits: 1}},
		"a plan": {Totals: stats.Totals{Hits: 1, Plans: stats.Plans{Installed: 1}}}, "auto": {Auto: &stats.Auto{}, Totals: stats.Totals{Hits: 1}},
	} {
		if list := (&Analysis{Snapshot: s, Diagnoses: []Diagnosis{{Knob: Knob{Limit: "max_age", Value: "1"}}}}).Trials(); list != nil {
			t.Errorf("%s: %v", name, list)
		}
	}
}

// TestLeaner: beside a run the ghosts show which policy reserves less; without them nothing is named that was not tried.
func TestLeaner(t *testing.T) {
	ghosts := func(hits, reserved uint64) *stats.Ghosts {
		return &stats.Ghosts{Rows: []stats.Ghost{
			{Name: "arena", Policy: "arena", Hits: hits, Requests: 100, PeakReserved: reserved},
			{Name: "futhark", Policy: "futhark", Present: true, Hits: 56, Requests: 100, PeakReserved: 20 << 20},
		}}
	}
	for name, test := range map[string]struct {
		ghosts *stats.Ghosts
		want   string
	}{
		"less":        {ghosts(56, 5<<20), "; simulated beside the run with arena: 5.00 MiB reserved at most instead of 20.0 MiB, the same 56.0 % hits"},
		"hardly less": {ghosts(56, 19<<20), ""},
		"fewer hits":  {ghosts(40, 5<<20), ""},
		"no ghosts":   {nil, "; gpumemtop tune tries on a recording whether another policy reserves less"},
	} {
		e := &Evidence{Run: &stats.Snapshot{Policy: "futhark", Ghosts: test.ghosts}}
		if got := e.leaner(); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
