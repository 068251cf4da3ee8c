package ui

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// sampleCurve rises in steps up to 400 MiB.
func sampleCurve() *view.Curve {
	c := &view.Curve{Policy: "futhark", Limits: true, Requests: 104817, Error: 0.023, Points: []view.CurvePoint{{}}}
	for i := range 12 {
		c.Points = append(c.Points, view.CurvePoint{Limit: uint64(200*kib) << i, HitRate: 0.94 * (1 - math.Exp2(-float64(i+1)/2))})
	}
	c.Exact = []view.CurvePoint{c.Points[2], c.Points[5], c.Points[8], c.Points[12]}
	c.Knee, c.Enough = c.Points[6], c.Points[12]
	return c
}

func curveTest(w, h int, c *view.Curve, charts Charts) *dashboard {
	o := (&calls{}).options()
	o.Curve, o.Charts = func() *view.Curve { return c }, charts
	d := newTest(o, w, h, sampleSnapshot())
	d.Update(frameMsg{now: testStart, curve: c})
	press(d, "c")
	return d
}

func TestCurveGolden(t *testing.T) {
	for _, size := range [][2]int{{120, 36}, {80, 24}, {60, 14}} {
		t.Run(itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
			d := curveTest(size[0], size[1], sampleCurve(), Braille)
			checkFrame(t, frameText(d), size[0], size[1])
			golden.RequireEqual(t, screen(d))
		})
	}
	t.Run("ascii", func(t *testing.T) { golden.RequireEqual(t, screen(curveTest(60, 20, sampleCurve(), ASCII))) })
}

// TestCurveNotes checks the notes on the curve, and the reasons for showing none.
func TestCurveNotes(t *testing.T) {
	dips := sampleCurve()
	dips.Exact[2].HitRate = dips.Exact[1].HitRate - 0.1
	few := sampleCurve()
	few.Requests = 3
	fine := sampleCurve()
	fine.Error = 0.004
	loose := sampleCurve()
	loose.Error, loose.Points[6].HitRate = 0.179, 0.998
	loose.Knee = loose.Points[6]
	beyond := sampleCurve() // estimates above the last exact point
	beyond.Points = append(beyond.Points, view.CurvePoint{Limit: 450 << 20, HitRate: beyond.Points[12].HitRate})
	rough := sampleCurve()
	rough.Exact, rough.Missed, rough.LeftOut = nil, 12, true
	for _, test := range []struct {
		curve *view.Curve
		want  []string
	}{
		{sampleCurve(), []string{"▲ knee 6.25M 80 to 85 %", "│ now 512.0M 92.5 %", "◆ exact, else ±2.3 points", "◆"}},
		{fine, []string{"▲ knee 6.25M ≈82.2 %", "else ±0.4 points"}},
		{loose, []string{"▲ knee 6.25M 82 to 100 %", "99 % of the best 400.0M 92.5 %", "else ±18 points", "····"}},
		{beyond, []string{"│ now 512.0M 93 to 95 %"}},
		{rough, []string{"nothing exact yet", "▲ knee 6.25M ≈82 %", "restarted after missing 12 events", "without some processes"}},
		{dips, []string{"a larger limit can hit less here"}},
		{few, []string{"too few requests so far: 3"}},
		{&view.Curve{Policy: "futhark"}, []string{"policy futhark does not limit cached bytes"}},
		{nil, []string{"no data yet"}},
	} {
		got := screen(curveTest(120, 36, test.curve, Braille))
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	}
	d := curveTest(120, 36, sampleCurve(), Braille)
	hides(t, d, "a larger limit can hit less here")
	press(d, "c")
	if d.zoom != noPane {
		t.Error("the same key does not go back")
	}
	d = curveTest(60, 11, sampleCurve(), Braille)
	if d.zoom != noPane || !strings.Contains(screen(d), "too small for that") {
		t.Errorf("no room:\n%s", screen(d))
	}
	d = newTest((&calls{}).options(), 80, 24, sampleSnapshot())
	press(d, "c")
	if !strings.Contains(screen(d), "no curve is computed here") {
		t.Error(screen(d))
	}
}

// TestCurveOfAnotherLimit: where a limit of unneeded memory was chosen, the pane shows what replays did at the values around it.
func TestCurveOfAnotherLimit(t *testing.T) {
	s := sampleSnapshot()
	s.Policy = "futhark"
	s.Limits = append(s.Limits, stats.Limit{Name: "proportion", Text: "1.5", Value: 1.5, Max: 1024, Zero: noLimit},
		stats.Limit{Name: "outgrown", Kind: stats.LimitSwitch, Text: "on", Value: 1, Choices: []string{"off", "on"}})
	var calls calls
	o := calls.options()
	o.Curve, o.WhatIf = sampleCurve, gaining
	d := newTest(o, 120, 36, s)
	d.Update(frameMsg{now: testStart, snap: s, curve: sampleCurve()})
	press(d, "c")
	shows(t, d, "hit rate by limit of cached bytes", "▲ knee")
	for limit, want := range map[string][]string{
		"proportion": {"hits and memory by proportion", "1.3 100.0 18.0M", "1.5 100.0 18.0M ● now", "1.7 100.0 18.0M", "no limit 100.0 18.0M"},
		"outgrown":   {"hits and memory by outgrown", "off 100.0 18.0M", "on 100.0 18.0M ● now"},
	} {
		d.limits.chosen, d.dirty = limit, true
		text := strings.Join(strings.Fields(screen(d)), " ")
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %q in\n%s", limit, part, screen(d))
			}
		}
	}
	d.limits.chosen = "proportion"
	press(d, "]")
	if len(calls.limits) != 1 || calls.limits[0] != "proportion" || calls.values[0] != "1.7" {
		t.Errorf("] sets %v to %v", calls.limits, calls.values)
	}
	d.o.WhatIf = func(*stats.Snapshot, []analysis.Trial) *analysis.Replays { return nil }
	d.dirty = true
	shows(t, d, "replayed as soon as there are requests")
}

// TestCurveChangesItsLimit checks that, on the curve, the keys for limits change the limit of cached bytes.
func TestCurveChangesItsLimit(t *testing.T) {
	var c calls
	o := c.options()
	o.Curve = sampleCurve
	d := newTest(o, 120, 36, sampleSnapshot())
	d.Update(frameMsg{now: testStart, curve: sampleCurve()})
	press(d, "6", "G", "6", "c", "]")
	if len(c.limits) != 1 || c.limits[0] != stats.MaxCachedBytes || !strings.Contains(screen(d), "[ ] limit c back") {
		t.Errorf("changed %q:\n%s", c.limits, screen(d))
	}
}

// TestCurveWithoutAPool checks that, without a pool, the keys try limits on the curve of a simulated one.
func TestCurveWithoutAPool(t *testing.T) {
	bare := sampleSnapshot()
	bare.Policy, bare.Limits = "none", nil
	for name, s := range map[string]*stats.Snapshot{"attached": attachedSnapshot(1), "none": bare} {
		t.Run(name, func(t *testing.T) {
			var asked calls
			o := asked.options()
			o.Curve, o.Attached = sampleCurve, name == "attached"
			d := newTest(o, 120, 36, nil)
			d.Update(frameMsg{now: testStart, snap: s, curve: sampleCurve()})
			press(d, "c")
			for _, step := range []struct{ keys, want string }{
				{"", "┊ with 512.0M 92.5 %"}, {"[", "┊ with 256.0M 90 to 93 %"}, {"{[[[[[", "┊ with 4.00M 77 to 80 %"}, {"]}", "┊ with 16.0M 83 to 88 %"},
				{strings.Repeat("[", 30), "┊ with 4.00K 0 to 2 %"}, {strings.Repeat("]", 40), "┊ with 1.00T 92.5 %"},
			} {
				press(d, strings.Split(step.keys, "")...)
				got := screen(d)
				for _, want := range []string{step.want, "now no pool 0 %", "hit rate of a pool by limit of cached bytes (futhark)", "[ ] limit c back"} {
					if !strings.Contains(got, want) {
						t.Errorf("after %q no %q in\n%s", step.keys, want, got)
					}
				}
			}
			if len(asked.limits) != 0 {
				t.Errorf("changed %q", asked.limits)
			}
			for _, size := range [][2]int{{100, 30}, {80, 24}, {60, 20}} {
				d.resizeTo(size[0], size[1])
				shows(t, d, "┊ with 1.00T", "(futhark)")
			}
		})
	}
}

// TestCurveAfterTheEnd: a limit that can no longer be changed stays marked beside the one that is supposed.
func TestCurveAfterTheEnd(t *testing.T) {
	d := curveTest(120, 36, sampleCurve(), Braille)
	d.Update(frameMsg{now: testStart, app: App{State: stats.Exited}, hasApp: true, curve: sampleCurve()})
	hides(t, d, "┊")
	press(d, "[")
	shows(t, d, "│ now 512.0M 92.5 %  ┊ with 256.0M 90 to 93 %")
}

// TestCurveFits checks that nothing is drawn outside the pane, whatever the figures are.
func TestCurveFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c view.Curve
		fill(t, reflect.ValueOf(&c).Elem())
		c.Limits, c.Requests = true, max(c.Requests, curveLeast)
		w, h := rapid.IntRange(1, 130).Draw(t, "w"), rapid.IntRange(1, 40).Draw(t, "h")
		checkFrame(t, frameText(curveTest(w, h, &c, Braille)), w, h)
	})
}
