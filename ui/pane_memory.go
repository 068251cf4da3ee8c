package ui

import (
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// spans of time that a chart covers, in ns: the shortest that holds the history.
var chartSpans = []uint64{10e9, 20e9, 30e9, 60e9, 120e9, 300e9, 600e9, 1200e9, 1800e9, 3600e9, 7200e9, 14400e9, 43200e9, 86400e9}

// timeline is what charts show: samples, and the span of time that they cover.
type timeline struct {
	samples     []model.Sample
	from, until uint64
	whole       bool   // the whole of a recording; else what led to now
	at          uint64 // the time cursor, when whole
}

// timeline returns what charts of a snapshot show.
func (d *dashboard) timeline(s *model.Snapshot) timeline {
	if d.viewing() {
		return d.wholeRun(s)
	}
	t := timeline{samples: s.History}
	if n := len(s.History); n > 0 {
		t.until = s.History[n-1].Time
	}
	t.from = t.until - chartSpan(s.History) // may wrap around: only the difference counts
	return t
}

// wholeRun returns all that has been read of a recording, of the chosen process where there is one.
func (d *dashboard) wholeRun(s *model.Snapshot) timeline {
	m := &d.replay.moment
	t := timeline{samples: m.History, from: m.From, until: max(m.Until, m.From+1), whole: true, at: s.Time}
	if d.single(s) && m.Latest != nil {
		if i := d.one.find(m.Latest); i >= 0 {
			t.samples = m.Latest.Processes[i].History
		}
	}
	return t
}

// chartSpan returns the time that charts cover.
func chartSpan(h []model.Sample) uint64 {
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

// memoryHint explains the layers where no gauge does, else it tells the peak.
func (d *dashboard) memoryHint(s *model.Snapshot) []span {
	if d.o.Attached {
		return watchedHint(modeFor(d.w, d.h))
	}
	if modeFor(d.w, d.h) == full {
		if d.replay.moment.Rough {
			return nil
		}
		return []span{{" peak reserved ", dim}, {bytesText(s.Totals.PeakReserved) + " ", plain}}
	}
	return []span{{" █", inUseStyle}, {" in use ", dim}, {"▒", cachedStyle}, {" cached ", dim}, {"░", coolingStyle}, {" cooling ", dim}}
}

// eachColumn cuts the time into n equal spans, and calls f with the samples of each. A span without samples gets the
// last sample before it; before the first sample f is not called, nor where nothing has been read yet.
func (t *timeline) eachColumn(n int, f func(column int, samples []model.Sample)) {
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

// memoryColumns returns the stack for n dot columns and the bytes that the top stands for. Within a span the sample
// with the most reserved counts, so that no peak is averaged away.
func memoryColumns(t *timeline, n int) ([]column, uint64) {
	h := t.samples
	columns := make([]column, n)
	for i := range columns {
		columns[i].absent = true
	}
	largest := uint64(0)
	for i := range h {
		largest = max(largest, add(h[i].InUse, h[i].Cached, h[i].Cooling))
	}
	top := niceCeiling(largest)
	t.eachColumn(n, func(c int, samples []model.Sample) {
		most := &samples[0]
		for i := range samples {
			s := &samples[i]
			if add(s.InUse, s.Cached, s.Cooling) > add(most.InUse, most.Cached, most.Cooling) {
				most = s
			}
		}
		scale := float64(top)
		columns[c] = column{layers: [3]float64{float64(most.InUse) / scale, float64(most.Cached) / scale, float64(most.Cooling) / scale}}
	})
	return columns, top
}

// drawMemory draws memory over time, with labels at the left and, where there is room, an axis of time.
func (d *dashboard) drawMemory(r region, s *model.Snapshot) {
	const labels = 7
	chart := r.sub(labels, 0, r.w-labels, r.h)
	axis := r.h >= 5
	if axis {
		chart = r.sub(labels, 0, r.w-labels, r.h-1)
	}
	if chart.w < 4 || chart.h < 1 {
		return
	}
	t := d.timeline(s)
	columns, top := memoryColumns(&t, 2*chart.w)
	for y := range chart.h {
		r.put(labels-1, y, "│", frameStyle)
	}
	label := func(y int, v uint64) {
		r.sub(0, 0, labels-1, r.h).right(labels-1, y, bytesText(v), dim)
		r.put(labels-1, y, "┤", frameStyle)
	}
	label(0, top)
	if chart.h >= 5 {
		label(chart.h/2, top/2)
	}
	label(chart.h-1, 0)
	chart.stacked(columns, memLayers)
	t.drawCursor(chart)
	if axis {
		t.drawAxis(r.sub(labels, r.h-1, r.w-labels, 1), d.latestMarks(s))
	}
}

// latestMarks returns the marks to draw: of a recording also those behind the cursor.
func (d *dashboard) latestMarks(s *model.Snapshot) []model.Mark {
	if d.viewing() && d.replay.moment.Latest != nil {
		return d.replay.moment.Latest.Marks
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

// drawAxis labels quarters of the chart's time, and marks when limits changed.
func (t *timeline) drawAxis(r region, marks []model.Mark) {
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
	if t.whole {
		last = duration(length)
	}
	r.right(r.w, 0, last, dim)
	if len(t.samples) > 0 {
		t.drawMarks(r, marks)
	}
}

func (t *timeline) drawMarks(r region, marks []model.Mark) {
	length := t.until - t.from
	for i := range marks {
		m := &marks[i]
		behind := since(m.Time, t.until)
		if m.Time > t.until || behind >= length {
			continue
		}
		x := r.w - 1 - int(float64(behind)/float64(length)*float64(r.w))
		if m.Kind == wire.KindLimit {
			r.put(x, 0, "▲", warnStyle)
		} else {
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
