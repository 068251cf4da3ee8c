package ui

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// chartSpans are the lengths of time that a chart may cover, in ns. The shortest that holds the history is used.
var chartSpans = []uint64{10e9, 20e9, 30e9, 60e9, 120e9, 300e9, 600e9, 1200e9, 1800e9, 3600e9, 7200e9, 14400e9, 43200e9, 86400e9}

// timeline is what charts show: samples and the time that they cover.
type timeline struct {
	samples     []stats.Sample
	from, until uint64
	whole       bool   // of a recording; else the time up to now
	over        bool   // up to the end of the program instead
	frozen      bool   // up to when the screen was frozen instead
	at          uint64 // the time cursor, 0: none
	start       uint64 // of the recording
}

// spans are the lengths of time that one key shows in turn, in ns; 0: all.
var spans = []uint64{0, 10e9, 60e9, 600e9}

// showNextSpan shows the next length of time.
func (d *dashboard) showNextSpan() {
	d.showSpan(spans[(slices.Index(spans, d.span)+1)%len(spans)])
}

// showSpan lets charts cover a length of time in ns; 0: all.
func (d *dashboard) showSpan(span uint64) {
	d.span = span
	text := "all time"
	if d.span != 0 {
		text = axisTimeText(d.span)
	}
	d.sayMessage(dim, "charts show "+text)
}

// timeline returns the samples and the time that charts of a snapshot cover.
func (d *dashboard) timeline(s *stats.Snapshot) timeline {
	var t timeline
	if d.mode.recording {
		t = d.timelineOfRecording(s)
	} else {
		t = d.timelineOfRun(s)
	}
	if d.span > 0 && d.span < t.until-t.from {
		t.keepLastSpan(d.span)
	}
	return t
}

// timelineOfRun returns the run up to now. A frozen screen keeps the time up to when it was frozen.
func (d *dashboard) timelineOfRun(s *stats.Snapshot) timeline {
	t := timeline{}
	if d.frozen != nil && d.frozenLive != nil {
		t.frozen, t.at = true, s.Time
		s = d.processes.snapshotOfChosen(d.frozenLive)
	}
	t.samples = s.History
	if d.span > 0 && d.span <= minuteNS && len(s.Minute) > 0 && !d.processes.isOneOfSeveral(s) {
		t.samples = s.Minute
	}
	if d.hasProgramEnded() {
		t.over = true
		last := s.EndTime()
		at := sort.Search(len(t.samples), func(i int) bool { return t.samples[i].Time > last })
		t.samples = t.samples[:min(at+1, len(t.samples))] // the sample with the end in it
	}
	if n := len(t.samples); n > 0 && !t.over && !t.frozen && differenceOrZero(t.samples[n-1].Time, d.live.Time) < chartStep {
		t.samples = t.samples[:max(1, countSamplesUpToStep(t.samples, d.live.Started))]
	}
	if n := len(t.samples); n > 0 {
		t.until = t.samples[n-1].Time
	}
	t.from = t.until - chartSpan(t.samples) // may wrap around: only the difference counts
	return t
}

// chartStep is how often charts of a live program move, in ns of the run: each move redraws all of their lines.
const chartStep = 5e8

// countSamplesUpToStep returns how many samples there are up to the latest step.
func countSamplesUpToStep(h []stats.Sample, started uint64) int {
	last := h[len(h)-1].Time
	end := last - differenceOrZero(started, last)%chartStep
	return sort.Search(len(h), func(i int) bool { return h[i].Time > end })
}

// minuteNS is the time that Snapshot.Minute covers.
const minuteNS = 60e9

// keepLastSpan leaves only the last part of the time, or that around the time cursor.
func (t *timeline) keepLastSpan(span uint64) {
	if t.at != 0 {
		t.until = min(t.until, max(saturatingSum(t.at, span/2), t.from+span))
	}
	t.from = t.until - span
	first := sort.Search(len(t.samples), func(i int) bool { return t.samples[i].Time > t.from })
	last := sort.Search(len(t.samples), func(i int) bool { return t.samples[i].Time > t.until })
	t.samples = t.samples[first:max(first, last)]
}

// timelineOfRecording returns the part of a recording that has been read, for the chosen process if there is one.
func (d *dashboard) timelineOfRecording(s *stats.Snapshot) timeline {
	m := &d.cursor.moment
	t := timeline{samples: m.History, from: m.From, until: max(m.Until, m.From+1), whole: true, at: s.Time, start: m.From}
	if d.processes.isOneOfSeveral(s) && m.Latest != nil {
		if i := d.processes.indexOfChosen(m.Latest); i >= 0 {
			t.samples = m.Latest.Processes[i].History
		}
	}
	return t
}

// chartSpan returns the time that charts cover.
func chartSpan(h []stats.Sample) uint64 {
	if len(h) == 0 {
		return chartSpans[0]
	}
	length := differenceOrZero(h[0].Time, h[len(h)-1].Time)
	for _, s := range chartSpans {
		if length <= s {
			return s
		}
	}
	return length
}

// eachColumnWithSamples cuts the time into n equal spans and calls f with the samples of each. A span without samples gets the last
// sample before it. f is not called for spans before the first sample, or that have not been read yet.
func (t *timeline) eachColumnWithSamples(n int, f func(column int, samples []stats.Sample)) {
	h := t.samples
	if len(h) == 0 || n <= 0 {
		return
	}
	length := t.until - t.from
	known := saturatingSum(h[len(h)-1].Time, length/uint64(n), length/100)
	i := 0
	for c := range n {
		behind := uint64(float64(length) * float64(n-1-c) / float64(n))
		until := differenceOrZero(behind, t.until)
		from := i
		for i < len(h) && (h[i].Time <= until || c == n-1) {
			i++
		}
		switch {
		case i > from:
			f(c, h[from:i])
		case t.whole && until > known:
		case i > 0:
			f(c, h[i-1:i])
		}
	}
}

// newestSnapshot returns the newest snapshot, which has all marks and failures, in a recording also those after the cursor.
func (d *dashboard) newestSnapshot(s *stats.Snapshot) *stats.Snapshot {
	switch {
	case d.mode.recording && d.cursor.moment.Latest != nil:
		return d.cursor.moment.Latest
	case !d.mode.recording && d.live != nil:
		return d.live
	}
	return s
}

// drawCursor marks the time that is shown.
func (t *timeline) drawCursor(chart region) {
	if t.at == 0 {
		return
	}
	x := t.columnOfTime(t.at, chart.w)
	for y := range chart.h {
		chart.putCluster(x, y, "│", focusStyle)
	}
}

// columnOfTime returns the cell of a time among w.
func (t *timeline) columnOfTime(at uint64, w int) int {
	share := float64(differenceOrZero(t.from, min(at, t.until))) / float64(max(t.until-t.from, 1))
	return max(0, min(w-1, int(share*float64(w))))
}

// drawAxis labels the quarters of the time.
func (t *timeline) drawAxis(r region) {
	length := t.until - t.from
	quarters := 4
	if r.w < 40 {
		quarters = 2
	}
	for q := range quarters {
		at := length / uint64(quarters) * uint64(q)
		label := "-" + axisTimeText(length-at)
		if t.whole {
			label = axisTimeText(differenceOrZero(t.start, t.from) + at)
		}
		r.writeText(r.w*q/quarters, 0, label, dim)
	}
	last := "now"
	switch {
	case t.whole:
		last = axisTimeText(differenceOrZero(t.start, t.until))
	case t.frozen:
		last = "frozen"
	case t.over:
		last = "end"
	}
	r.writeTextBefore(r.w, 0, last, dim)
}

// drawEvents draws a line with what happened.
func (t *timeline) drawEvents(r region, marks []stats.Mark, own []userMark) {
	if len(t.samples) == 0 {
		return
	}
	for i := range marks {
		sign := signOfEvent(marks[i].Kind)
		t.drawEvent(r, marks[i].Time, sign)
	}
	for _, m := range own {
		t.drawEvent(r, m.time, span{"★", keyStyle})
	}
}

func (t *timeline) drawEvent(r region, at uint64, sign span) {
	if x, shown := t.eventColumn(at, r.w); shown {
		r.putCluster(x, 0, sign.text, sign.style)
	}
}

// eventColumn returns where the sign of an event is among w cells.
func (t *timeline) eventColumn(at uint64, w int) (x int, shown bool) {
	behind, length := differenceOrZero(at, t.until), t.until-t.from
	if at > t.until || behind >= length {
		return 0, false
	}
	return w - 1 - int(float64(behind)/float64(length)*float64(w)), true
}

// axisTimeText formats a time exactly enough for an axis, in a few columns: "22.5s", "3:45", "2h".
func axisTimeText(ns uint64) string {
	const second, minute, hour = uint64(time.Second), uint64(time.Minute), uint64(time.Hour)
	switch {
	case ns == 0:
		return "0"
	case ns < second:
		return formatDuration(ns)
	case ns < 2*minute && ns%second != 0:
		return strconv.FormatFloat(float64(ns)/1e9, 'f', 1, 64) + "s"
	case ns < 2*minute:
		return formatCount(ns/second) + "s"
	case ns%hour == 0:
		return formatCount(ns/hour) + "h"
	case ns%minute == 0 && ns < 2*hour:
		return formatCount(ns/minute) + "m"
	}
	return strings.TrimPrefix(units.FormatClock(ns), "0")
}
