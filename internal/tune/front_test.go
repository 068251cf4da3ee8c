package tune

import (
	"context"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// points makes points from pairs of ms and MiB; their policies are a, b, c …
func points(pairs ...float64) (list []Point) {
	for i := 0; i < len(pairs); i += 2 {
		s := Score{DriverNS: pairs[i] * 1e6, PeakReserved: uint64(pairs[i+1] * (1 << 20))}
		list = append(list, Point{Configuration: replay.Configuration{Policy: string(rune('a' + i/2))}, Score: s, On: []Score{s}})
	}
	return list
}

func TestRecommend(t *testing.T) {
	for name, c := range map[string]struct {
		pairs  []float64
		none   []float64
		most   uint64
		want   string
		reason Reason
	}{
		"saves all at no more memory":        {[]float64{1, 100}, []float64{50, 100}, 0, "a", Close},
		"saves nearly all":                   {[]float64{1, 300, 2, 120, 50, 100}, []float64{50, 100}, 0, "b", Close},
		"one in a hundred for less memory":   {[]float64{1, 120, 1.4, 110, 3, 105, 50, 100}, []float64{50, 100}, 0, "b", Close},
		"costs memory":                       {[]float64{1, 900, 2, 300, 48, 110, 50, 100}, []float64{50, 100}, 0, "b", Knee},
		"no pool is best":                    {[]float64{50, 100}, []float64{50, 100}, 0, "a", Vain},
		"no pool is best within a bound":     {[]float64{1, 900, 50, 100}, []float64{50, 100}, 200 << 20, "b", Vain},
		"within a bound":                     {[]float64{1, 900, 2, 300, 48, 110, 50, 100}, []float64{50, 100}, 200 << 20, "c", Fits},
		"within a bound that takes them all": {[]float64{1, 900, 2, 300, 48, 110, 50, 100}, []float64{50, 100}, 1 << 40, "a", Fits},
		"within too little":                  {[]float64{1, 900, 50, 100}, []float64{50, 100}, 99 << 20, "", NoneFits},
		"of nothing":                         {nil, []float64{50, 100}, 0, "", NoneFits},
	} {
		p, reason := recommendFrom(points(c.pairs...), &points(c.none...)[0], c.most)
		got := ""
		if p != nil {
			got = p.Configuration.Policy
		}
		if got != c.want || reason != c.reason {
			t.Errorf("%s: %q, reason %d, want %q, %d", name, got, reason, c.want, c.reason)
		}
	}
}

func TestPeel(t *testing.T) {
	all := points(5, 5, 1, 9, 5, 5, 9, 1, 6, 6, 1, 10)
	front, rest := splitFront(all, nil)
	if got := letters(front); got != "bad" {
		t.Errorf("front %q, want b, a (as good as c), d", got)
	}
	if got := letters(rest); got != "fe" {
		t.Errorf("rest %q, want f and e", got)
	}
	present := replay.Configuration{Policy: "c"}
	if front, _ := splitFront(all, &present); letters(front) != "bcd" {
		t.Errorf("front %q, want c, which is in use", letters(front))
	}
	all[0].Configuration.Settings = []allocator.Setting{{Name: "x", Value: "1"}}
	if front, _ := splitFront(all, nil); letters(front) != "bcd" {
		t.Errorf("front %q, want c, which sets nothing", letters(front))
	}
}

// TestEqualPolicies: of policies with equal results, the one that needs no flag is named.
func TestEqualPolicies(t *testing.T) {
	all := points(1, 1, 1, 1, 1, 1)
	for i, name := range []string{"futhark-2018", "pow2", "futhark"} {
		all[i].Configuration.Policy = name
	}
	if front, _ := splitFront(all, nil); len(front) != 1 || front[0].Configuration.Policy != allocator.Default {
		t.Errorf("front %+v", front)
	}
	all[1].Configuration.Policy = "none"
	if front, _ := splitFront(all, nil); front[0].Configuration.Policy != "none" {
		t.Errorf("front %+v: a pool that does nothing comes before none", front)
	}
}

func letters(list []Point) (text string) {
	for i := range list {
		text += list[i].Configuration.Policy
	}
	return text
}

func TestFolds(t *testing.T) {
	scores := func(name string, pairs ...float64) Point {
		p := Point{Configuration: replay.Configuration{Policy: name}}
		for _, one := range points(pairs...) {
			p.On = append(p.On, one.Score)
		}
		return p
	}
	result := func(most uint64, list ...Point) *Result {
		r := &Result{Points: append([]Point{scores("none", 100, 10, 100, 10)}, list...), options: Options{MaxMemory: most}}
		r.testbed.tapes = make([]*replay.Loaded, 2)
		return r
	}
	check := func(name string, r *Result, want ...[2]bool) {
		t.Helper()
		folds := r.CrossValidate(context.Background())
		if len(folds) != len(want) {
			t.Fatalf("%s: %d folds, want %d", name, len(folds), len(want))
		}
		for i := range folds {
			if f := &folds[i]; f.Slower != want[i][0] || f.Larger != want[i][1] || f.OverFits() != (f.Slower || f.Larger) {
				t.Errorf("%s, fold %d: slower %t, larger %t; %+v", name, i, f.Slower, f.Larger, f)
			}
		}
	}
	check("one is best everywhere", result(0, scores("a", 1, 10, 1, 10), scores("b", 9, 10, 9, 10)), [2]bool{}, [2]bool{})
	check("a is best of the first, b of the second", result(0, scores("a", 1, 10, 50, 10), scores("b", 50, 10, 1, 10)), [2]bool{true, false}, [2]bool{true, false})
	check("less than 1 ms apart", result(0, scores("a", 1, 10, 1.9, 10), scores("b", 1.9, 10, 1, 10)), [2]bool{}, [2]bool{})
	check("more memory for nothing", result(0, scores("a", 1, 10, 1.5, 12), scores("b", 1.9, 10, 1.4, 10)), [2]bool{}, [2]bool{false, true})
	check("less than 1 MiB more", result(0, scores("a", 1, 5, 1.5, 5.9), scores("b", 1.9, 5, 1.4, 5)), [2]bool{}, [2]bool{})
	check("more memory than there is", result(11<<20, scores("a", 1, 10, 1, 12), scores("b", 1.9, 10, 1.9, 10)), [2]bool{}, [2]bool{false, true})
	check("nothing fits", result(1<<20))
}

func TestFoldsOfTapes(t *testing.T) {
	racetest.Slow(t)
	r := look(t, Options{}, stairs(t, 40), bursts(t, 20))
	folds := r.CrossValidate(context.Background())
	if len(folds) != 2 {
		t.Fatalf("%d folds", len(folds))
	}
	if !folds[0].OverFits() && !folds[1].OverFits() {
		t.Errorf("what suits one suits the other: %+v", folds)
	}
	r = look(t, Options{}, bursts(t, 20), bursts(t, 25))
	for _, f := range r.CrossValidate(context.Background()) {
		if f.OverFits() {
			t.Errorf("two runs of the same program: %+v", f)
		}
	}
}

func TestFoldsOfHalves(t *testing.T) {
	racetest.Slow(t)
	folds := look(t, Options{}, bursts(t, 20)).CrossValidate(context.Background())
	if len(folds) != 2 || folds[0].OverFits() || folds[1].OverFits() {
		t.Errorf("a program that does the same again and again: %+v", folds)
	}
	p := labtest.NewTape() // many sizes of one call site, then many buffers at a time
	for n := range 300 {
		p.AddRelease(create(p, 1<<20+uint64(n)*4096, 1), wire.OutcomeCached)
	}
	var all []uint64
	for range 10 {
		for range 15 {
			all = append(all, create(p, 4<<20, 2))
		}
		for _, object := range all {
			p.AddRelease(object, wire.OutcomeCached)
		}
		all = all[:0]
	}
	folds = look(t, Options{}, load(t, p)).CrossValidate(context.Background())
	if len(folds) != 2 || !folds[0].OverFits() && !folds[1].OverFits() {
		t.Errorf("two programs in one: %+v", folds)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if folds := look(t, Options{Most: 1}, bursts(t, 3)).CrossValidate(ctx); folds != nil {
		t.Errorf("no time: %+v", folds)
	}
	empty := labtest.NewTape()
	empty.AddCreate(1, 1)
	if folds := look(t, Options{Most: 1}, load(t, empty)).CrossValidate(context.Background()); folds != nil {
		t.Errorf("one request has no halves: %+v", folds)
	}
}
