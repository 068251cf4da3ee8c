package main

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

func TestWhichGhostsThereAre(t *testing.T) {
	for _, test := range []struct {
		text      string
		dashboard bool
		want      string // of the configurations, with commas between; "…": several; "": none
	}{
		{"", false, ""}, {"", true, "…"}, {"usual", false, "…"}, {"off", true, ""},
		{"slab,none", false, "slab max_cached_bytes=1048576,none"}, // as far as they have the limits
	} {
		c := defaults()
		c.ghosts, c.maxCached = test.text, "1MiB"
		j := job{config: c}
		var err error
		if j.plan, err = newPlan(c); err != nil {
			t.Fatal(err)
		}
		if err := j.checkGhosts(test.dashboard); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range j.rivals {
			names = append(names, lab.Configuration.String(r))
		}
		got := strings.Join(names, ",")
		if len(names) > 5 {
			got = "…"
		}
		if got != test.want {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
		j.model = model.New(model.Options{})
		tap, err := j.raise(false)
		if err != nil {
			t.Fatal(err)
		}
		if (tap != nil) != (test.want != "") || (j.ghosts != nil) != (test.want != "") {
			t.Errorf("%q: ghosts %v, tap %v", test.text, j.ghosts, tap)
		}
		if j.ghosts != nil {
			if present := j.model.Snapshot().Ghosts.Present(); present == nil || present.Name != "futhark max_cached_bytes=1M" {
				t.Errorf("%q: present is %+v", test.text, present)
			}
			tap.Close()
		}
	}
}

func TestGhostNote(t *testing.T) {
	board := func(leader, present float64) *model.Ghosts {
		return &model.Ghosts{Rows: []model.Ghost{
			{Name: "slab max_part=1M", DriverNS: leader, Requests: 1}, {Name: "futhark", DriverNS: present, Requests: 1, Present: true},
		}}
	}
	got := ghostNote(board(31e6, 50e6))
	if got != "slab max_part=1M would have taken 38 % less time in the driver (19ms of 50ms, simulated): --policy slab --set max_part=1M" {
		t.Error(got)
	}
	assumed := board(31e6, 50e6)
	assumed.Assumed = true
	if got := ghostNote(assumed); !strings.Contains(got, "assumed") {
		t.Error(got)
	}
	if got := ghostNote(&model.Ghosts{Stopped: "stopped: too fast"}); got != "no other policy was simulated to the end: stopped: too fast" {
		t.Error(got)
	}
	stopped := board(31e6, 50e6)
	stopped.Rows[1].Stopped = "stopped"
	for name, g := range map[string]*model.Ghosts{
		"none": nil, "hardly better": board(46e6, 50e6), "not worth it": board(0.1e6, 1e6), "nothing to compare with": stopped,
	} {
		if got := ghostNote(g); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestWhenGhostsMayRest: where somebody looks at them they are of the whole run.
func TestWhenGhostsMayRest(t *testing.T) {
	for _, test := range []struct {
		policy, text string
		dashboard    bool
		want         bool
	}{
		{"auto", "", false, true}, {"auto", "", true, false}, {"auto", "usual", false, false}, {"futhark", "", true, false},
	} {
		c := defaults()
		c.policy, c.ghosts = test.policy, test.text
		j := job{config: c}
		var err error
		if j.plan, err = newPlan(c); err != nil {
			t.Fatal(err)
		}
		if err := j.checkGhosts(test.dashboard); err != nil {
			t.Fatal(err)
		}
		j.model = model.New(model.Options{})
		tap, err := j.raise(test.dashboard)
		if err != nil {
			t.Fatal(err)
		}
		if board := j.ghosts.Board(); j.resting != test.want || (board == nil) != test.want {
			t.Errorf("%+v: rest %v, board %v", test, j.resting, board)
		}
		tap.Close()
	}
}
