package ui

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// later is the sample some time after, with as many creates as seconds have passed.
func later(after time.Duration) *stats.Snapshot {
	s := sampleSnapshot()
	s.Time += uint64(after)
	s.Totals.LiveBuffers, s.Totals.InUse = uint64(after.Seconds()), uint64(after.Seconds())*mib
	s.Totals.Held = s.Totals.InUse
	for i := range s.History {
		s.History[i].Time += uint64(after)
	}
	for i := range uint64(stats.MinuteMax) {
		s.Minute = append(s.Minute, stats.Sample{Time: s.Time - (stats.MinuteMax-1-i)*1e8, InUse: i * mib, Misses: i % 7, Hits: 1, DriverNS: i * 1e5})
	}
	return s
}

// run gives a dashboard a frame for every half second.
func run(d *dashboard, from, to time.Duration) {
	for t := from; t <= to; t += pastStep {
		d.Update(frameMsg{now: testStart.Add(t), snap: later(t)})
	}
}

func TestLookBack(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, later(0))
	run(d, pastStep, 10*time.Second)
	shows(t, d, "in use 10.0M")
	press(d, "left", "left", "left")
	shows(t, d, "in use 9.00M", "FROZEN 1 s", "frozen")
	press(d, "shift+left")
	shows(t, d, "in use 4.00M")
	run(d, 10500*time.Millisecond, 12*time.Second)
	shows(t, d, "in use 4.00M", "FROZEN 8 s")
	press(d, "right", "right")
	shows(t, d, "in use 5.00M")
	press(d, "esc")
	shows(t, d, "in use 12.0M", "now")
	hides(t, d, "FROZEN")
	press(d, "left", "right", "right")
	hides(t, d, "FROZEN")
	press(d, "shift+left", "shift+left", "shift+left", "left")
	shows(t, d, "in use 0")
}

// TestFrozenChartHasACursor: the chart keeps the time up to when it was frozen.
func TestFrozenChartHasACursor(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, later(0))
	run(d, pastStep, 10*time.Second)
	press(d, "left", "left")
	before := d.timeline(d.shownSnapshot())
	run(d, 11*time.Second, 12*time.Second)
	if got := d.timeline(d.shownSnapshot()); got.until != before.until || got.at != d.frozen.Time || got.at >= got.until {
		t.Errorf("until %d, then %d; cursor %d, frozen at %d", before.until, got.until, got.at, d.frozen.Time)
	}
	shows(t, d, "┤⣿", "frozen")
}

func TestPastIsBounded(t *testing.T) {
	for _, tags := range []int{1, 2000, 100_000} {
		var p past
		list := make([]stats.Tag, tags)
		for i := range uint64(5000) {
			p.keepMoment(&stats.Snapshot{Time: i * uint64(pastStep), Tags: list})
		}
		if n := len(p.moments); n > pastMoments || n > pastFewest && n*tags > pastTags || n < min(pastFewest/2, pastTags/tags+1) {
			t.Errorf("%d tags: %d moments", tags, n)
		}
		last := p.moments[len(p.moments)-1].Time
		for i := 1; i < len(p.moments) && len(p.moments) > pastFewest; i++ {
			gap, age := p.moments[i].Time-p.moments[i-1].Time, last-p.moments[i-1].Time
			if p.moments[0].Time != 0 || age > 20e9 && float64(gap) > 0.7*float64(age) || age <= 5e9 && gap > 2e9 && tags == 1 {
				t.Errorf("%d tags: a gap of %d s at an age of %d s", tags, gap/1e9, age/1e9)
			}
		}
	}
}

// TestLookBackFromBetween: a screen that was frozen between two moments goes back to the first of them.
func TestLookBackFromBetween(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, later(0))
	run(d, pastStep, 10*time.Second)
	d.Update(frameMsg{now: testStart.Add(10300 * time.Millisecond), snap: later(10300 * time.Millisecond)})
	press(d, "f", "left")
	shows(t, d, "in use 10.0M")
	press(d, "left", "right")
	shows(t, d, "in use 10.0M", "FROZEN")
}

// TestLateEvents: the present shows what no kept moment does.
func TestLateEvents(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, later(0))
	run(d, pastStep, 10*time.Second)
	s := later(10200 * time.Millisecond)
	s.Marks = []stats.Mark{{Time: s.Time - 1e8, Kind: wire.KindLimit, Text: "max_age=3"}}
	d.Update(frameMsg{now: testStart.Add(10200 * time.Millisecond), snap: s})
	press(d, "<")
	shows(t, d, "Δ max_age = 3s", "FROZEN 0 s")
}

func TestSpans(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, later(10*time.Second))
	for _, want := range []struct {
		seconds float64
		samples int
		text    string
	}{{10, 100, "10s"}, {60, 600, "60s"}, {60, 600, "10m"}, {60, 600, "all time"}} {
		press(d, "z")
		got := d.timeline(d.shownSnapshot())
		if float64(got.until-got.from)/1e9 != want.seconds || len(got.samples) != want.samples {
			t.Errorf("%s: %d samples of %d s", want.text, len(got.samples), (got.until-got.from)/1e9)
		}
		shows(t, d, "charts show "+want.text)
	}
	press(d, "z")
	shows(t, d, "memory 10s", "-7.5s", "-2.5s")
	golden.RequireEqual(t, screen(d))
}

// TestEventsOnTheAxis: events have a line of their own, and < and > go from one to the next.
func TestEventsOnTheAxis(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, later(0))
	run(d, pastStep, 10*time.Second)
	press(d, "M")
	s := later(12 * time.Second)
	s.Marks = []stats.Mark{
		{Time: s.Time - 8e9, Kind: wire.KindLimit, Text: "max_age=3"}, {Time: s.Time - 7e9, Kind: wire.KindExit, Text: "ended"},
	}
	d.Update(frameMsg{now: testStart.Add(12 * time.Second), snap: s})
	d.Update(frameMsg{now: testStart.Add(12 * time.Second), snap: later(13 * time.Second)})
	d.live.Marks = s.Marks
	press(d, "<")
	shows(t, d, "01:33  ★ mark 1", "in use 10.0M")
	press(d, "<", "<")
	shows(t, d, "01:27  Δ max_age = 3s", "in use 4.00M")
	press(d, "<")
	shows(t, d, "no event there", "in use 4.00M")
	press(d, ">")
	shows(t, d, "01:28  ■ ended", "in use 5.00M")
	for _, line := range strings.Split(screen(d), "\n") {
		if strings.Contains(line, "event│") && (!strings.Contains(line, "Δ") || !strings.Contains(line, "■") || !strings.Contains(line, "★")) {
			t.Errorf("events: %s", line)
		}
		if strings.Contains(line, "-15s") && !strings.Contains(line, "-60s           ") {
			t.Errorf("the labels are overwritten: %s", line)
		}
	}
}

// TestNoRequestIsNoMiss: where nothing was requested the chart carries the last rate on; 0 % is a line.
func TestNoRequestIsNoMiss(t *testing.T) {
	draw := func(hits, misses uint64) string {
		s := sampleSnapshot()
		s.Totals.Hits, s.Totals.Misses = 1, 1
		for i := range s.History {
			h := &s.History[i]
			h.Hits, h.Misses = 0, 0
			if i%20 == 0 {
				h.Hits, h.Misses = hits, misses
			}
		}
		d := newTest((&calls{}).options(), 140, 42, s)
		var rows []string
		for _, line := range strings.Split(screen(d), "\n") {
			if at := strings.LastIndex(line, "100%┤"); at >= 0 {
				rows = append(rows, line[at:])
			}
			if at := strings.LastIndex(line, "    0┤"); at >= 0 {
				rows = append(rows, line[at:])
			}
		}
		return strings.Join(rows, "\n")
	}
	all, none, nothing := draw(3, 0), draw(0, 3), draw(0, 0)
	if strings.Count(all, "⠀")+strings.Count(all, "  ") > 2 {
		t.Errorf("gaps between requests:\n%s", all)
	}
	if none == nothing || !strings.Contains(none, "⣀") && !strings.Contains(none, "⡀") {
		t.Errorf("0 %%:\n%s\nno request:\n%s", none, nothing)
	}
}

func TestAxisTime(t *testing.T) {
	for ns, want := range map[uint64]string{
		0: "0", 22.5e9: "22.5s", 15e9: "15s", 225e9: "3:45", 150e9: "2:30", 75e9: "75s", 300e9: "5m", 3600e9: "1h", 5400e9: "90m", 9000e9: "2:30:00", 5e6: "5.0 ms",
	} {
		if got := axisTimeText(ns); got != want {
			t.Errorf("%d: %q, want %q", ns, got, want)
		}
	}
}

// TestNoCreateTookNoTime: before the first create there is no time that it took.
func TestNoCreateTookNoTime(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, &stats.Snapshot{})
	shows(t, d, "create p50 —  p99 —")
}

// TestEnterStaysInGhosts: enter leads from there to no free list.
func TestEnterStaysInGhosts(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, ghostSnapshot())
	press(d, "w", "enter")
	if d.zoom != paneGhosts {
		t.Errorf("enter leads to pane %d", d.zoom)
	}
}

// TestChartsMoveInSteps: between two steps no line of a chart changes, so that a frame is small.
func TestChartsMoveInSteps(t *testing.T) {
	d := newTest((&calls{}).options(), 200, 60, later(0))
	chart := func() string {
		l := d.arrangePanes()
		lines := strings.Split(screen(d), "\n")[l.panes[0].y : l.panes[0].y+l.panes[0].h-1]
		for i := range lines {
			lines[i] = string([]rune(lines[i])[:l.panes[0].w])
		}
		return strings.Join(lines, "\n")
	}
	changes, last := 0, chart()
	for i := range 50 {
		after := time.Duration(i) * 100 * time.Millisecond
		s := later(after)
		s.History = nil
		for at := s.Started + 50e9; at <= s.Time; at += 1e8 {
			n := at / 1e8
			s.History = append(s.History, stats.Sample{Time: at, InUse: n * 7919 % 97 * mib, Misses: n % 5, DriverNS: n % 3 * 1e7})
		}
		d.Update(frameMsg{now: testStart.Add(after), snap: s})
		if now := chart(); now != last {
			changes, last = changes+1, now
		}
	}
	if changes < 8 || changes > 11 {
		t.Errorf("the chart moved %d times in 5 s", changes)
	}
}

// TestScales: four or five rows from label to label, except in heights that cannot be divided so; the top and the bottom have
// one.
func TestScales(t *testing.T) {
	for h := 1; h <= 80; h++ {
		r := newCanvas(20, h).wholeRegion()
		r.drawScale(10, h, func(float64) string { return "1" })
		var rows, gaps []int
		for y := range h {
			if r.c.cells[y*20+9].text == "1" {
				rows = append(rows, y)
			}
		}
		for i := range len(rows) - 1 {
			gaps = append(gaps, rows[i+1]-rows[i])
		}
		want := map[int][]int{1: nil, 2: {1}, 3: {2}, 4: {3}, 7: {3, 3}, 8: {4, 3}, 12: {4, 3, 4}}
		if exact, is := want[h]; is && !slices.Equal(gaps, exact) || !is && (slices.Min(gaps) < 4 || slices.Max(gaps) > 5) || rows[0] != 0 || rows[len(rows)-1] != h-1 {
			t.Errorf("%d rows: labels in %v", h, rows)
		}
	}
	for _, v := range []uint64{0, 1, 5, 1000, 900 * mib, 1<<63 - 1, math.MaxUint64} {
		for parts := 1; parts <= 16; parts++ {
			if top := roundAxisTop(v, parts); top < v || v > 64 && v < 1<<62 && top > v+v/3 {
				t.Errorf("%d in %d parts: %d", v, parts, top)
			}
		}
	}
}

// TestIdleTimeIsALine: between requests the hit rate is a thin line, no noise over the whole height.
func TestIdleTimeIsALine(t *testing.T) {
	columns := []column{{layers: [3]float64{0, 1}}, {layers: [3]float64{0, 1}}}
	r := newCanvas(1, 3).wholeRegion()
	r.drawStacked(columns, hitLayers)
	if got := r.c.cells[0].text + r.c.cells[1].text + r.c.cells[2].text; got != "⠉  " {
		t.Errorf("drawn: %q", got)
	}
}

// TestLimitsAreInTheChart: what memory may reach is in the chart where the chart is as high.
func TestLimitsAreInTheChart(t *testing.T) {
	s := sampleSnapshot()
	d := newTest((&calls{}).options(), 140, 42, s)
	hides(t, d, "┤device")
	s = sampleSnapshot()
	s.Device.Global = 1800 * mib
	shows(t, newTest((&calls{}).options(), 140, 42, s), "┤device ╌╌")
	s = sampleSnapshot()
	for i := range s.History {
		s.History[i].InUse, s.History[i].Cached, s.History[i].Cooling = 100*mib, 30*mib, 0
	}
	s.Limits[0].Value = 50 * mib
	shows(t, newTest((&calls{}).options(), 140, 42, s), "┤"+strings.Repeat("╌", 40))
	s.History[9].InUse = 150 * mib // then it would leave the chart there
	hides(t, newTest((&calls{}).options(), 140, 42, s), "┤╌")
	for device, want := range map[uint64]int{1: 2, 4: 0, 5: -1} { // in a chart of four rows for 4 bytes, above what fills it that far
		d.live.Device.Global = device
		r := newCanvas(8, 4).wholeRegion()
		memoryPane{basePane{d}}.drawBounds(r, d.live, make([]column, 16), 4)
		for y := range r.h {
			if is := r.c.cells[y*8].text == "d"; is != (y == want) {
				t.Errorf("a device of %d is in row %d: %v", device, y, is)
			}
		}
	}
}
