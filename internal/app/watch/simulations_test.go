package watch

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// setup returns the default settings of a program with a choice of policy.
func setup(t *testing.T, choice PolicyChoice) *Setup {
	t.Helper()
	s, err := NewSetup(&SetupOptions{PolicyChoice: choice, Tags: "stack", Depth: 8, Scrub: "none"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func simulations(t *testing.T, choice PolicyChoice, ghosts string, dashboard bool) *Simulations {
	t.Helper()
	s, err := NewSimulations(ghosts, setup(t, choice), dashboard)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhichGhostsThereAre(t *testing.T) {
	for _, test := range []struct {
		text      string
		dashboard bool
		want      string // of the configurations, with commas between; "…": several; "": none
	}{
		{"", false, ""}, {"", true, "…"}, {"usual", false, "…"}, {"off", true, ""},
		{"slab,none", false, "slab max_cached_bytes=1048576,none"}, // as far as they have the limits
	} {
		j := simulations(t, PolicyChoice{Policy: allocator.Default, MaxCached: "1MiB"}, test.text, test.dashboard)
		var names []string
		for _, r := range j.rivals {
			names = append(names, replay.Configuration.String(r))
		}
		got := strings.Join(names, ",")
		if len(names) > 5 {
			got = "…"
		}
		if got != test.want {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
		j.dashboard = false // without the curve
		model := stats.New(stats.Options{})
		tap, err := j.Start(model)
		if err != nil {
			t.Fatal(err)
		}
		if (tap != nil) != (test.want != "") || (j.Ghosts != nil) != (test.want != "") {
			t.Errorf("%q: ghosts %v, tap %v", test.text, j.Ghosts, tap)
		}
		if j.Ghosts != nil {
			if present := model.Snapshot().Ghosts.PresentGhost(); present == nil || present.Name != "futhark max_cached_bytes=1M" {
				t.Errorf("%q: present is %+v", test.text, present)
			}
			tap.Close()
		}
	}
}

func TestGhostNote(t *testing.T) {
	board := func(leader, present float64) *stats.Ghosts {
		return &stats.Ghosts{Rows: []stats.Ghost{
			{Name: "slab max_part=1M", DriverNS: leader, Requests: 1}, {Name: "futhark", DriverNS: present, Requests: 1, Present: true},
		}}
	}
	got := betterConfigurationNote(board(31e6, 50e6), 1e9)
	if got != "slab max_part=1M would have taken 38 % less time in the driver (19ms of 50ms, simulated): --policy slab --set max_part=1M" {
		t.Error(got)
	}
	assumed := board(31e6, 50e6)
	assumed.Rows[0].Assumed = true
	if got := betterConfigurationNote(assumed, 1e9); got != "" {
		t.Errorf("at assumed costs: %q", got)
	}
	if got := betterConfigurationNote(&stats.Ghosts{Stopped: "stopped: too fast"}, 0); got != "no other policy was simulated to the end: stopped: too fast" {
		t.Error(got)
	}
	stopped := board(31e6, 50e6)
	stopped.Rows[1].Stopped = "stopped"
	for name, g := range map[string]*stats.Ghosts{
		"none": nil, "hardly better": board(46e6, 50e6), "not worth it": board(0.1e6, 1e6), "hardly any of the run": board(31e6, 50e6), "nothing to compare with": stopped,
	} {
		if got := betterConfigurationNote(g, 2e9); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestWhenGhostsMayRest: ghosts that a dashboard or the summary shows simulate the whole run.
func TestWhenGhostsMayRest(t *testing.T) {
	for _, test := range []struct {
		policy, text string
		dashboard    bool
		want         bool
	}{
		{"auto", "", false, true}, {"auto", "", true, false}, {"auto", "usual", false, false}, {"futhark", "", true, false},
	} {
		j := simulations(t, PolicyChoice{Policy: test.policy}, test.text, test.dashboard)
		tap, err := j.Start(stats.New(stats.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		if board := j.Ghosts.Leaderboard(); j.Resting != test.want || (board == nil) != test.want {
			t.Errorf("%+v: rest %v, board %v", test, j.Resting, board)
		}
		tap.Close()
	}
}
