package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// pointsSnapshot is the sample with a mistake, growth and a row that has missed since.
func pointsSnapshot(since time.Duration) *stats.Snapshot {
	s := mistaken(sampleSnapshot())
	s.Time += uint64(since)
	if since == 0 {
		return s
	}
	for i := range s.Tags {
		s.Tags[i].Trend = stats.Trend{}
	}
	trend := make([]uint64, 20)
	for i := range trend {
		trend[i] = uint64(i) * 8 * mib
	}
	s.Tags[2].Trend = stats.TrendOf(trend)
	t := &s.Tags[4]
	t.Misses += 90
	t.MissReasons[wire.MissLimit] += 90
	s.Totals.Misses += 90
	s.Totals.MissReasons[wire.MissLimit] += 90
	s.Totals.DriverNS += uint64(since)
	return s
}

// pointsTest is a dashboard of the sample, judged.
func pointsTest(o Options, w, h int) *dashboard {
	d := newTest(o, w, h, pointsSnapshot(0))
	d.Update(frameMsg{now: testStart.Add(5 * time.Second), snap: pointsSnapshot(5 * time.Second)})
	return d
}

func TestPointsGolden(t *testing.T) {
	for _, theme := range []struct {
		name string
		id   Theme
	}{{"dark", Dark}, {"mono", Mono}} {
		for _, size := range [][2]int{{140, 42}, {80, 24}, {60, 20}} {
			t.Run(theme.name+itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
				o := (&calls{}).options()
				o.Theme = theme.id
				d := pointsTest(o, size[0], size[1])
				main := frameText(d)
				press(d, "!")
				checkFrame(t, frameText(d), size[0], size[1])
				golden.RequireEqual(t, main+"\n"+frameText(d))
			})
		}
	}
}

// TestPointsLeadToTheirSites: enter shows the call site.
func TestPointsLeadToTheirSites(t *testing.T) {
	d := pointsTest((&calls{}).options(), 140, 42)
	shows(t, d, "✗ double release at make_tmp · stale read at staging · +8.00 MiB/s at upload · tmp_flags hits 0.0 %", "! list  y")
	press(d, "!")
	shows(t, d, "findings 4", "▸✗")
	at := slices.IndexFunc(names(d), func(n string) bool { return n == "main.c:140 upload" })
	press(d, "j", "j")
	shows(t, d, "memory grows 8.00 MiB/s: at this rate the device is full in 31m 05s; all of it at main.c:140 upload")
	press(d, "enter")
	if d.zoom != paneTags || d.tags.at != at || chosenName(d) != "main.c:140 upload" {
		t.Errorf("pane %d, row %d, %q; want row %d", d.zoom, d.tags.at, chosenName(d), at)
	}
	shows(t, d, "call stack", "pipeline.c:31 run_stage")

	d.points.found = []analysis.Diagnosis{{Title: "of the whole run"}} // which is nowhere
	press(d, "!")
	shows(t, d, "esc back")
	hides(t, d, "go there")
}

// TestSuggestionsAreDone: the first y shows what is suggested, the second does it.
func TestSuggestionsAreDone(t *testing.T) {
	var c calls
	d := pointsTest(c.options(), 140, 42)
	press(d, "y")
	if d.zoom != panePoints || len(c.limits) > 0 {
		t.Fatalf("pane %d, asked for %v", d.zoom, c.limits)
	}
	shows(t, d, "press y again to set max_cached_bytes to 1.00G", "y: max_cached_bytes 512.0M → 1.00G; then u takes it back")
	shows(t, d, "y apply")
	press(d, "y")
	if !slices.Equal(c.limits, []string{"max_cached_bytes"}) || !slices.Equal(c.values, []string{"1073741824"}) {
		t.Errorf("asked for %v %v", c.limits, c.values)
	}
	press(d, "k", "k", "k", "k", "y") // the first is a mistake: no limit helps
	if len(c.limits) != 1 {
		t.Errorf("asked for %v", c.limits)
	}
	shows(t, d, "nothing is suggested here that can be done")
	hides(t, d, "y apply")

	o := c.options()
	o.ReadOnly = true
	d = pointsTest(o, 140, 42)
	hides(t, d, "y apply")
	press(d, "y", "y")
	if len(c.limits) != 1 {
		t.Errorf("asked for %v though it is read only", c.limits)
	}
}

// TestListSaysAllOfThem: the list has each with its reason, its stack, and what y does.
func TestListSaysAllOfThem(t *testing.T) {
	d := pointsTest((&calls{}).options(), 140, 42)
	press(d, "!")
	shows(t, d, "✗ double release: clReleaseMemObject", "✗ stale read: clEnqueueReadBuffer", "✗ memory grows 8.00 MiB/s: at this rate", "main.c:140 upload",
		"! scan.c:77 tmp_flags hits 0.0 %: 90 misses", "y: max_cached_bytes 512.0M → 1.00G; then u takes it back")
}

// TestDeedsArePromised: where the curve knows, y says what hit rate to expect.
func TestDeedsArePromised(t *testing.T) {
	curve := &view.Curve{
		Policy: "futhark", Limits: true, Requests: 1000, Points: []view.CurvePoint{{}, {Limit: 300 << 20, HitRate: 0.4}, {Limit: 600 << 20, HitRate: 1}},
		Exact: []view.CurvePoint{{Limit: 300 << 20, HitRate: 0.4}, {Limit: 512 << 20, HitRate: 0.4}, {Limit: 600 << 20, HitRate: 1}},
		Knee:  view.CurvePoint{Limit: 600 << 20, HitRate: 1}, Enough: view.CurvePoint{Limit: 600 << 20, HitRate: 1},
	}
	o := (&calls{}).options()
	o.Curve = func() *view.Curve { return curve }
	d := pointsTest(o, 200, 60)
	d.curve.curve = curve
	d.points.due = time.Time{}
	d.points.judgeSnapshot()
	shows(t, d, "y: max_cached_bytes 512.0M → 600.0M: hit 40.0 % → 100.0 %")
	press(d, "y")
	shows(t, d, "y: max_cached_bytes 512.0M → 600.0M: hit 40.0 % → 100.0 %; then u takes it back")
	d.live.Minute = []stats.Sample{{Time: d.live.Time, Hits: 37, Misses: 63}} // what is so now is counted
	d.dirty = true
	shows(t, d, "hit 37.0 % → 100.0 %; then u takes it back")
}

// TestTheKneeIsSuggested: where the curve is known, y sets the limit to its knee.
func TestTheKneeIsSuggested(t *testing.T) {
	for _, test := range []struct {
		curve *view.Curve
		want  string
	}{
		{&view.Curve{Policy: "futhark", Limits: true, Knee: view.CurvePoint{Limit: 600 << 20}}, "600.0M"},
		{&view.Curve{Policy: "futhark", Limits: true, Why: "too few requests", Knee: view.CurvePoint{Limit: 600 << 20}}, "1.00G"},
		{&view.Curve{Policy: "futhark", Limits: true, Knee: view.CurvePoint{Limit: view.Unlimited}}, "1.00G"},
		{&view.Curve{Policy: "futhark", Knee: view.CurvePoint{Limit: 600 << 20}}, "1.00G"},
	} {
		o := (&calls{}).options()
		o.Curve = func() *view.Curve { return test.curve }
		d := pointsTest(o, 140, 42)
		d.curve.curve = test.curve
		d.points.due = time.Time{}
		d.points.judgeSnapshot()
		press(d, "y")
		shows(t, d, "press y again to set max_cached_bytes to "+test.want)
		if says := strings.Contains(screen(d), "the knee of the curve (c)"); says != (test.want == "600.0M") {
			t.Errorf("the knee is named: %t", says)
		}
	}
}

// TestAllIsWell: where nothing is wrong the screen says so, and a program that leaked does not look well at its end.
func TestAllIsWell(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, sampleSnapshot())
	shows(t, d, "watching… (judged in 10 s)")
	s := sampleSnapshot()
	s.Time += 10e9
	d.Update(frameMsg{now: testStart.Add(10 * time.Second), snap: s})
	const fine = "✓ fine: no mistake, no growth of late; other policies are not compared"
	shows(t, d, fine)
	press(d, "!")
	shows(t, d, "findings 0", fine)
	noted := sampleSnapshot()
	noted.Time, noted.Totals.Exposed, noted.Totals.ExposedNewZero = s.Time+1e9, 3, 3
	d.Update(frameMsg{now: testStart.Add(11 * time.Second), snap: noted})
	shows(t, d, fine, "! 1 note", "kernels were the first to use at least 3 recycled buffers")
	s = sampleSnapshot()
	s.Processes[0].State, s.Processes[0].Totals, s.Processes[0].Orderly = stats.Exited, s.Totals, true
	s.Processes[0].Status = 0
	d.Update(frameMsg{now: testStart, snap: s})
	shows(t, d, "140 buffers never released: 1.43 GiB in all; 768.0 MiB of it from blur.c:88 make_tmp")
}

// TestVerdictFits: where the reason does not fit, a short title has what matters most, and a sentence ends with a clause.
func TestVerdictFits(t *testing.T) {
	d := newTest((&calls{}).options(), 60, 20, sampleSnapshot())
	d.points.found = []analysis.Diagnosis{{
		Severity: analysis.Problem, Title: "memory grows 1.12 GiB/s", Text: "at this rate the device is full in 13.2 s; all of it at leak.c:25 forget_result",
		Brief: "+1.12 GiB/s at leak.c:25 forget_result, full in 13.2 s", Tag: "leak.c:25 forget_result",
	}}
	shows(t, d, "✗ +1.12 GiB/s at forget_result, full in 13.2 s")
	d.resizeTo(120, 36)
	shows(t, d, "✗ memory grows 1.12 GiB/s: at this rate the device is full in 13.2 s; all of it at leak.c:25 forget_result")
	if got := withoutLastClauses("fine: no mistake, no growth of late; no simulated policy serves clearly more", 40); got != "fine: no mistake, no growth of late" {
		t.Errorf("%q", got)
	}
}

// TestKeysOfTheVerdict: all that y does where it fits beside the verdict, else what it sets, else that it does something.
func TestKeysOfTheVerdict(t *testing.T) {
	d := newTest((&calls{}).options(), 200, 60, sampleSnapshot())
	knob := analysis.Knob{Limit: "max_cached_bytes", Value: "2147483648"}
	d.points.found = []analysis.Diagnosis{
		{Severity: analysis.Problem, Title: strings.Repeat("a", 60)}, {Severity: analysis.Advice, Title: "max_cached_bytes bites", Knob: knob},
	}
	shows(t, d, "! list  y: max_cached_bytes 512.0M → 2.00G")
	d.resizeTo(120, 36)
	shows(t, d, "! list  y: max_cached_bytes 512.0M → 2.00G") // in the room of what the text leaves out
	d.resizeTo(110, 36)
	shows(t, d, "! list  y: max_cached_bytes → 2.00G")
	d.resizeTo(80, 24)
	shows(t, d, "! list  y apply")
}
