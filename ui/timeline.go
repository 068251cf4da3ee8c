package ui

import (
	"sort"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// chartSpans are the lengths of time that a chart may cover, in ns. The shortest that holds the history is used.
var chartSpans = []uint64{10e9, 20e9, 30e9, 60e9, 120e9, 300e9, 600e9, 1200e9, 1800e9, 3600e9, 7200e9, 14400e9, 43200e9, 86400e9}

// timeline is what charts show: samples and the time that they cover.
type timeline struct {
	samples     []stats.Sample
	from, until uint64
	whole       bool   // a whole recording; else the time up to now
	over        bool   // up to the end of the program instead
	at          uint64 // the time cursor of a recording
}

// timeline returns what charts of a snapshot show.
func (d *dashboard) timeline(s *stats.Snapshot) timeline {
	if d.mode.recording {
		return d.wholeRun(s)
	}
	t := timeline{samples: s.History}
	if last := lastEnd(s); d.ended() && last > 0 {
		t.over = true
		at := sort.Search(len(t.samples), func(i int) bool { return t.samples[i].Time > last })
		t.samples = t.samples[:min(at+1, len(t.samples))] // the sample with the end in it
	}
	if n := len(t.samples); n > 0 {
		t.until = t.samples[n-1].Time
	}
	t.from = t.until - chartSpan(t.samples) // may wrap around: only the difference counts
	return t
}

// wholeRun returns the part of a recording that has been read, for the chosen process if there is one.
func (d *dashboard) wholeRun(s *stats.Snapshot) timeline {
	m := &d.cursor.moment
	t := timeline{samples: m.History, from: m.From, until: max(m.Until, m.From+1), whole: true, at: s.Time}
	if d.processes.single(s) && m.Latest != nil {
		if i := d.processes.find(m.Latest); i >= 0 {
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
	length := since(h[0].Time, h[len(h)-1].Time)
	for _, s := range chartSpans {
		if length <= s {
			return s
		}
	}
	return length
}

// eachColumn cuts the time into n equal spans and calls f with the samples of each. A span without samples gets the last
// sample before it. f is not called for spans before the first sample, or that have not been read yet.
func (t *timeline) eachColumn(n int, f func(column int, samples []stats.Sample)) {
	h := t.samples
	if len(h) == 0 || n <= 0 {
		return
	}
	length := t.until - t.from
	known := add(h[len(h)-1].Time, length/uint64(n), length/100)
	i := 0
	for c := range n {
		behind := uint64(float64(length) * float64(n-1-c) / float64(n))
		until := since(behind, t.until)
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

// latestMarks returns the marks to draw, in a recording also those after the cursor.
func (d *dashboard) latestMarks(s *stats.Snapshot) []stats.Mark {
	if d.mode.recording && d.cursor.moment.Latest != nil {
		return d.cursor.moment.Latest.Marks
	}
	return s.Marks
}

// drawCursor marks the time that is shown.
func (t *timeline) drawCursor(chart region) {
	if !t.whole {
		return
	}
	x := t.column(t.at, chart.w)
	for y := range chart.h {
		chart.put(x, y, "│", focusStyle)
	}
}

// column returns the cell of a time among w.
func (t *timeline) column(at uint64, w int) int {
	share := float64(since(t.from, min(at, t.until))) / float64(max(t.until-t.from, 1))
	return max(0, min(w-1, int(share*float64(w))))
}

// drawAxis labels the quarters of the time, and marks changes of limits and messages.
func (t *timeline) drawAxis(r region, marks []stats.Mark) {
	length := t.until - t.from
	quarters := 4
	if r.w < 40 {
		quarters = 2
	}
	for q := range quarters {
		behind := length / uint64(quarters) * uint64(quarters-q)
		label := "-" + axisTime(behind)
		if t.whole {
			label = duration(length / uint64(quarters) * uint64(q))
		}
		r.text(r.w*q/quarters, 0, label, dim)
	}
	last := "now"
	switch {
	case t.whole:
		last = duration(length)
	case t.over:
		last = "end"
	}
	r.right(r.w, 0, last, dim)
	if len(t.samples) > 0 {
		t.drawMarks(r, marks)
	}
}

func (t *timeline) drawMarks(r region, marks []stats.Mark) {
	length := t.until - t.from
	for i := range marks {
		m := &marks[i]
		behind := since(m.Time, t.until)
		if m.Time > t.until || behind >= length {
			continue
		}
		x := r.w - 1 - int(float64(behind)/float64(length)*float64(r.w))
		switch m.Kind {
		case wire.KindLimit:
			r.put(x, 0, "▲", warnStyle)
		case wire.KindExit:
			r.put(x, 0, "■", dim)
		default:
			r.put(x, 0, "!", badStyle)
		}
	}
}

// axisTime formats a whole time in its largest unit that keeps it short.
func axisTime(ns uint64) string {
	switch s := ns / uint64(time.Second); {
	case s < 120 && ns%uint64(time.Second) != 0:
		return decimals(float64(ns)/1e9) + "s"
	case s < 120:
		return count(s) + "s"
	case s < 7200:
		return count(s/60) + "m"
	default:
		return count(s/3600) + "h"
	}
}
