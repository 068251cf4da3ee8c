package analysis

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestFindingNamesWhatGained: a finding names what gained, and nothing else.
func TestFindingNamesWhatGained(t *testing.T) {
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
		"few hits lost": {
			lessMemory, Knob{}, "arena", map[Trial]Outcome{{Policy: "arena"}: {Hits: 496, Requests: 1000, PeakReserved: 10 << 20}},
			"text; replayed with arena, part: 10.0 MiB reserved at most instead of 20.0 MiB, 49.6 % hits instead of 50.0 %",
		},
		"hits lost": {lessMemory, Knob{}, "arena", map[Trial]Outcome{{Policy: "arena"}: {Hits: 40, Requests: 100, PeakReserved: 11 << 20}}, "text"},
		"all lost":  {lessMemory, Knob{}, "arena", map[Trial]Outcome{{Policy: "arena"}: {Requests: 100, PeakReserved: 10 << 20}}, "text"},
		"half of it, at a loss": {
			lessMemory, Knob{}, "slab arena", map[Trial]Outcome{{Policy: "slab"}: {Hits: 40, Requests: 100, PeakReserved: 10 << 20}, {Policy: "arena"}: {Hits: 50, Requests: 100, PeakReserved: 19 << 20}},
			"text; replayed with slab, part: 10.0 MiB reserved at most instead of 20.0 MiB, 40.0 % hits instead of 50.0 %",
		},
		"hardly less":   {lessMemory, Knob{}, "arena", map[Trial]Outcome{{Policy: "arena"}: {Hits: 50, Requests: 100, PeakReserved: 19 << 20}}, "text"},
		"fails":         {lessMemory, Knob{}, "arena", map[Trial]Outcome{{Policy: "arena"}: {Hits: 50, Requests: 100, PeakReserved: 10 << 20, Failures: 1}}, "text"},
		"more hits":     {anyGain, knob, "", map[Trial]Outcome{limit: {Hits: 74, Requests: 100, PeakReserved: 20 << 20}}, "text; replayed with max_waste_ratio=3, part: the same 20.0 MiB reserved at most, 74.0 % hits instead of 50.0 %"},
		"for too much":  {anyGain, knob, "", map[Trial]Outcome{limit: {Hits: 74, Requests: 100, PeakReserved: 41 << 20}}, "text"},
		"no more":       {anyGain, knob, "", map[Trial]Outcome{limit: {Hits: 52, Requests: 100, PeakReserved: 20 << 20}}, "text"},
		"part":          {anyGain, knob, "", map[Trial]Outcome{limit: {Hits: 74, Requests: 100, PeakReserved: 10 << 20, Unpooled: 5}}, "text; replayed with max_waste_ratio=3, part: 10.0 MiB of poolable memory reserved at most instead of 20.0 MiB, 74.0 % hits instead of 50.0 %"},
		"at no loss":    {noLoss, knob, "", map[Trial]Outcome{limit: {Hits: 50, Requests: 100, PeakReserved: 20 << 20}}, "text; replayed with max_waste_ratio=3, part: the same 20.0 MiB reserved at most, the same 50.0 % hits"},
		"at a loss":     {noLoss, knob, "", map[Trial]Outcome{limit: {Hits: 40, Requests: 100, PeakReserved: 20 << 20}}, "text"},
		"nothing named": {anyGain, Knob{}, "", nil, "text"},
	} {
		d := Diagnosis{Text: "text", Knob: test.knob}
		d.offerBestPolicy(test.gain, strings.Fields(test.policies)...)
		a := &Analysis{Snapshot: &stats.Snapshot{Policy: "futhark", Totals: stats.Totals{Misses: 1}}, Diagnoses: []Diagnosis{d}, Misses: []Miss{{Knob: test.knob}}}
		if got := len(a.TrialsOfFindings()); (got > 0) != (len(test.outcomes) > 0) {
			t.Errorf("%s: %d trials", name, got)
		}
		a.ApplyReplays(&Replays{now, test.outcomes, ", part"})
		if got := a.Diagnoses[0]; got.Text != test.want || (got.Knob.Limit != "") != (test.knob.Limit != "" && strings.Contains(test.want, "replayed")) {
			t.Errorf("%s: %+v", name, got)
		}
		if k := a.Misses[0].Knob; (k.Limit != "") != (name == "more hits" || name == "part") || (k.Limit != "") != strings.HasPrefix(k.Why, "why; replayed with ") {
			t.Errorf("%s: of misses %+v", name, k)
		}
	}
}

// A finding that needs a policy that serves more is taken back where replays show that none does, and stays where none was replayed.
func TestNeedsMoreHits(t *testing.T) {
	for hits, want := range map[uint64]int{0: 0, 4: 0, 5: 1, 90: 1, 1000: 1} {
		outcomes := map[Trial]Outcome{{Policy: "futhark"}: {Hits: hits, Requests: 100, PeakReserved: 50 << 20}, {Policy: "slab"}: {Requests: 100}}
		if hits > 100 {
			outcomes = nil
		}
		d := Diagnosis{}
		d.offerBestPolicy(moreHits, "futhark", "slab", "arena")
		d.needed = true
		a := &Analysis{Snapshot: &stats.Snapshot{Policy: "none", Totals: stats.Totals{Misses: 1}}, Diagnoses: []Diagnosis{d}}
		a.ApplyReplays(&Replays{Outcome{Requests: 100, PeakReserved: 20 << 20}, outcomes, ""})
		if len(a.Diagnoses) != want {
			t.Errorf("%d hits: %d findings", hits, len(a.Diagnoses))
		}
	}
}

// TestNoTrials: of runs whose configuration is not that of the whole run nothing is replayed.
func TestNoTrials(t *testing.T) {
	for name, s := range map[string]*stats.Snapshot{
		"nothing requested": {}, "another policy before": {Change: stats.PolicyChange{Former: []string{"slab"}}, Totals: stats.Totals{Hits: 1}},
		"a plan": {Totals: stats.Totals{Hits: 1, Plans: stats.Plans{Installed: 1}}}, "auto": {Auto: &stats.Auto{}, Totals: stats.Totals{Hits: 1}},
	} {
		if list := (&Analysis{Snapshot: s, Diagnoses: []Diagnosis{{Knob: Knob{Limit: "max_age", Value: "1"}}}}).TrialsOfFindings(); list != nil {
			t.Errorf("%s: %v", name, list)
		}
	}
}

// TestGhostsShowWhatReservesLess: beside a run the ghosts show which policy reserves less; without them policies are tried.
func TestGhostsShowWhatReservesLess(t *testing.T) {
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
		"no ghosts":   {nil, ""},
	} {
		e := &Evidence{Run: &stats.Snapshot{Policy: "futhark", Ghosts: test.ghosts}}
		var d Diagnosis
		if d.nameLeanestGhost(e); d.Text != test.want || (len(d.listTrials("futhark")) > 0) != (test.ghosts == nil) {
			t.Errorf("%s: %q, %v", name, d.Text, d.listTrials("futhark"))
		}
	}
}

// gaining is a replay in which each trial serves all requests with half of the memory.
func gaining(_ *stats.Snapshot, list []Trial) *Replays {
	r := &Replays{Present: Outcome{Requests: 100, PeakReserved: 20 << 20}, Outcomes: map[Trial]Outcome{}}
	for _, t := range list {
		r.Outcomes[t] = Outcome{Hits: 100, Requests: 100, PeakReserved: 10 << 20}
	}
	return r
}

// TestLiveSaysWhatWasReplayed: beside a run a finding names a limit once a replay has shown what it gives.
func TestLiveSaysWhatWasReplayed(t *testing.T) {
	nothing := func(*stats.Snapshot, []Trial) *Replays { return nil }
	for name, test := range map[string]struct {
		replay Replay
		auto   *stats.Auto
		want   string
	}{
		"gains":             {gaining, nil, "; replayed with max_waste_ratio=2.5: 10.0 MiB reserved at most instead of 20.0 MiB, 100.0 % hits instead of 0.0 %"},
		"not yet":           {nothing, nil, ""},
		"cannot":            {nil, nil, ""},
		"auto varies it so": {gaining, &stats.Auto{}, ""},
	} {
		s := missed(lively(5), 0, 100, wire.MissTooWasteful)
		s.Auto = test.auto
		l := Live{Replay: test.replay}
		l.Update(s)
		if p := titled(&l, "a.c:1 f hits"); p == nil || p.Text != "100 misses of late, mostly too wasteful"+test.want || (p.Knob.Limit != "") != (test.want != "") {
			t.Errorf("%s: %+v", name, l.Points)
		}
	}
}

// TestDefaultLimitsAreTried: those of the policy in force are another configuration, which gains or, where the run has them, does not.
func TestDefaultLimitsAreTried(t *testing.T) {
	for peak, want := range map[uint64]string{
		5: "; replayed with futhark and its default limits: 5 B reserved at most instead of 10 B, the same 50.0 % hits", 10: "",
	} {
		d := Diagnosis{}
		d.offerBestPolicy(lessMemory, "futhark")
		present, other := Outcome{Hits: 1, Requests: 2, PeakReserved: 10}, Outcome{Hits: 1, Requests: 2, PeakReserved: peak}
		d.applyReplays("futhark", &Replays{Present: present, Outcomes: map[Trial]Outcome{{Policy: "futhark"}: other}})
		if d.Text != want {
			t.Errorf("%q, want %q", d.Text, want)
		}
	}
}
