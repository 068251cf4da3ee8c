package tune

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestGatheredIsSearched plays recordings one by one, and expects the result of a search over all of them, to the last
// bit.
func TestGatheredIsSearched(t *testing.T) {
	racetest.Slow(t)
	tapes := []*replay.Loaded{bursts(t, 6), stairs(t, 12), random(t, 3, 300)}
	for n := 1; n <= len(tapes); n++ {
		for _, o := range []Options{{Most: 60}, {Most: 40, MaxMemory: 1 << 30, Present: &replay.Configuration{Policy: "pow2"}}} {
			o.Fit = true
			want := look(t, o, tapes[:n]...)
			var columns []Column
			for _, tape := range tapes[:n] {
				c, err := PlayRecording(context.Background(), tape, want.Configurations(), 2)
				if err != nil {
					t.Fatal(err)
				}
				columns = append(columns, *c)
			}
			if diff := cmp.Diff(columns, want.Columns()); diff != "" {
				t.Fatalf("columns: %s", diff)
			}
			have, err := GatherResult(want.Configurations(), columns, want.Ending, o)
			if err != nil {
				t.Fatal(err)
			}
			folds, gathered := want.CrossValidate(context.Background()), have.CrossValidate(context.Background())
			if n == 1 {
				gathered = folds // halves need the recording
			}
			if diff := cmp.Diff(want.DocumentOfResult(folds), have.DocumentOfResult(gathered)); diff != "" || fmt.Sprint(want.Points) != fmt.Sprint(have.Points) {
				t.Errorf("%d recordings, %+v: %s", n, o, diff)
			}
		}
	}
}

func TestGatherOfColumns(t *testing.T) {
	list := []replay.Configuration{noPool, {Policy: "futhark"}, {Policy: "slab"}}
	column := func(ns ...float64) Column {
		c := Column{Priced: true, Bound: replay.Bound{Whole: 1, Carved: 1, Peak: 5}}
		for _, v := range ns {
			c.Scores = append(c.Scores, Score{DriverNS: v, PeakReserved: 5, Hits: 1, Requests: 2})
		}
		return c
	}
	a, b := column(9e6, 2e6, 1e6), column(9e6, 2e6, 1e6)
	b.Cannot = []int{2}
	r, err := GatherResult(list, []Column{a, b}, Enough, Options{})
	if err != nil || len(r.Points) != 2 || r.Recommended.Configuration.Policy != "futhark" || r.Recommended.DriverNS != 4e6 {
		t.Errorf("%+v, %v: what cannot be on one recording is no choice", r, err)
	}
	a.AddRecording(&b)
	if a.Scores[1].DriverNS != 4e6 || a.Scores[1].Hits != 2 || a.Scores[1].PeakReserved != 5 || a.Bound.Whole != 2 || len(a.Cannot) != 1 {
		t.Errorf("a sum of columns: %+v", a)
	}
	if _, err := GatherResult(list, []Column{{Scores: b.Scores, Bound: b.Bound}}, Enough, Options{}); !errors.Is(err, ErrNoCost) {
		t.Errorf("without a timed create: %v", err)
	}
	if _, err := GatherResult(list, []Column{{Scores: b.Scores, Priced: true}}, Enough, Options{}); !errors.Is(err, ErrNoRequest) {
		t.Errorf("without a request: %v", err)
	}
}

// TestManyFolds scores each of many recordings on a choice that it was not part of.
func TestManyFolds(t *testing.T) {
	list := []replay.Configuration{noPool, {Policy: "futhark"}, {Policy: "slab"}}
	var columns []Column
	for i := range 100 {
		c := Column{Priced: true, Bound: replay.Bound{Peak: 1}, Scores: []Score{{DriverNS: 9e7}, {DriverNS: 2e6}, {DriverNS: 8e7}}}
		if i == 77 { // it suits another policy
			c.Scores[1], c.Scores[2] = c.Scores[2], c.Scores[1]
		}
		columns = append(columns, c)
	}
	r, err := GatherResult(list, columns, Enough, Options{})
	if err != nil {
		t.Fatal(err)
	}
	folds := r.CrossValidate(context.Background())
	if len(folds) != 100 {
		t.Fatalf("%d folds", len(folds))
	}
	for i := range folds {
		f := &folds[i]
		if f.Held != i || f.OverFits() != (i == 77) || f.Chosen.Configuration.Policy != "futhark" {
			t.Errorf("fold %d: %+v", i, f)
		}
	}
}

// TestNoCostOfOne: a recording without costs of its own gets those of the others, as in a search.
func TestNoCostOfOne(t *testing.T) {
	p := labtest.NewTape()
	p.AddRelease(p.CreateBuffer(1<<20, 1), wire.OutcomeCached)
	c, err := PlayRecording(context.Background(), load(t, p), []replay.Configuration{noPool}, 0)
	if err != nil || c.Priced || c.Scores[0].Requests != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}
