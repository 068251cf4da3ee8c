package ui

import (
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// TestGuideLeadsFromFindingToGain: a line leads from what stands out to what a change gains, in every size, and its keys can be clicked.
func TestGuideLeadsFromFindingToGain(t *testing.T) {
	var c calls
	o := c.options()
	o.Guide, o.Measure = true, func() (string, error) { return "measuring", nil }
	d := newTest(o, 120, 36, sampleSnapshot())
	d.points.found = nil
	shows(t, d, "next   it runs: faults show above, others in the report  ? what")
	d.points.found = []analysis.Diagnosis{
		{Severity: analysis.Problem, Title: "memory grows", Tag: "main.c:140 upload"},
		{Severity: analysis.Advice, Title: "max_cached_bytes bites", Knob: analysis.Knob{Limit: "max_cached_bytes", Value: "2147483648"}},
	}
	d.dirty = true
	clickOn(t, d, "what stands out, and")
	if d.zoom != panePoints {
		t.Fatal("the key of the line does nothing")
	}
	shows(t, d, "next   j to what y can do  enter where it happens  esc back")
	press(d, "j")
	shows(t, d, "next   y do it: max_cached_bytes 512.0M → 2.00G  enter where")
	press(d, "y", "esc")
	s := sampleSnapshot()
	s.Time += 1e9
	l := &s.Limits[0]
	l.Value, l.Wanted, l.Request = 2<<30, 2<<30, stats.Request{Sequence: 1, AnsweredAt: s.Time}
	d.Update(frameMsg{now: testStart.Add(time.Second), snap: s})
	d.resizeTo(80, 24) // where each key has room
	shows(t, d, "next   ✓ done: what it changes is known in 3 s  u undo")
	later := *s
	later.Time += 4e9
	later.Totals.Hits += 99
	later.Totals.Misses++
	d.Update(frameMsg{now: testStart.Add(5 * time.Second), snap: &later})
	shows(t, d, "after  E measure the pool  u undo")
	measured := later
	measured.Time, measured.Measured = later.Time+1e9, measure.Results{{Alternative: "none", Running: true}}
	d.Update(frameMsg{now: testStart.Add(6 * time.Second), snap: &measured})
	shows(t, d, "next   measuring: without the pool, but watched  E end that")
	ended := measured
	ended.Processes = append([]stats.Process(nil), later.Processes...)
	for i := range ended.Processes {
		ended.Processes[i].State = stats.Exited
	}
	d.Update(frameMsg{now: testStart.Add(7 * time.Second), snap: &ended})
	shows(t, d, "next   the program has ended  q quit: what was found follows")
	for _, size := range goldenSizes {
		d.resizeTo(size[0], size[1])
		checkFrame(t, frameText(d), size[0], size[1])
	}
	d.resizeTo(80, 24)
	shows(t, d, "next   the program has ended")
}
