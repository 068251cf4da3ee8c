package study

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/tune"
)

// TestCandidates: none of the policy in use, and an error where a search ended before it tried that.
func TestCandidates(t *testing.T) {
	point := func(policy string) tune.Point { return tune.Point{Configuration: replay.Configuration{Policy: policy}} }
	slab, futhark := point("slab"), point("futhark")
	found := &tune.Result{Points: []tune.Point{slab, futhark}, None: point("none"), Recommended: &slab, Present: &futhark}
	l := &liveTune{tuneSearch: &tuneSearch{}}
	list, err := l.chooseCandidates(found)
	if err != nil || len(list) != 2 || list[0].Configuration.Policy != "none" || list[1].Configuration.Policy != "slab" || l.start.Configuration.Policy != "futhark" {
		t.Errorf("%v, %v", list, err)
	}
	found.Present = nil
	if list, err := l.chooseCandidates(found); err == nil || !strings.Contains(err.Error(), "--budget") {
		t.Errorf("%v, %v", list, err)
	}
}

// TestLiveResult: what was tried is shown and written as seen from the candidate, and nothing is written where nothing is better.
func TestLiveResult(t *testing.T) {
	points := map[string]tune.Point{}
	for _, name := range []string{"none", "futhark", "slab"} {
		points[name] = tune.Point{Configuration: replay.Configuration{Policy: name}, Score: tune.Score{PeakReserved: 4 << 20}}
	}
	l := &liveTune{tuneSearch: &tuneSearch{options: &TuneOptions{}, what: "./blur"}, start: points["none"], best: points["futhark"]}
	faster := insideOf(1, 0.2) // the present configuration takes twice as long as the candidate
	faster.Requests, faster.Answer.Present.Time, faster.Answer.Alternative.Time = 3, 2e6, 1e6
	l.trials = []liveTrial{
		{candidate: points["futhark"], against: points["none"], adopted: true, result: faster.SeenFromAlternative()},
		{candidate: points["slab"], against: points["futhark"], result: &measure.Result{Auto: "stays with futhark: nothing could be measured: too short: it ended"}},
	}
	path := t.TempDir() + "/tuned.toml"
	l.options.Output = files.Output{Path: path}
	r, err := l.writeBest()
	if err != nil || !r.Better || r.Written != path || len(r.Trials) != 2 || r.Trials[1].Why != "too short: it ended" || r.Trials[1].Measured != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if m := r.Trials[0].Measured; m == nil || m.Difference != -0.5 || m.Low >= m.Difference || m.High <= m.Difference || m.Time != 1e6 {
		t.Errorf("%+v", m)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1.00 ms", "2.00 ms with none", "50 ± 5.6 % less, taken", "4.00 MiB, simulated", "slab: too short: it ended.", "best: --policy futhark", path} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &text)
		}
	}
	wantFile := "# gpumemtop tune --live, measured in one run of ./blur: an iteration takes\n" +
		"# 1.00 ms with futhark instead of 2.00 ms with none: 50 ± 5.6 % less, taken; 4.00 MiB, simulated\n" +
		"# not measured with slab: too short: it ended\n" +
		setting.SettingsFileText("futhark", nil)
	if got := r.settingsFileText(); got != wantFile {
		t.Errorf("%s\nwant\n%s", got, wantFile)
	}

	l.best, l.options.Output.Path = l.start, t.TempDir()+"/not.toml"
	r, err = l.writeBest()
	text.Reset()
	if err == nil {
		err = r.WriteText(&text)
	}
	if err != nil || r.Better || r.Written != "" || !strings.Contains(text.String(), "Nothing tried is better than none, which was in use: no file is written.") {
		t.Errorf("%+v, %v\n%s", r, err, &text)
	}
}
