package ui

import (
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// spans of time that a chart covers, in ns: the shortest that holds the history.
var chartSpans = []uint64{10e9, 20e9, 30e9, 60e9, 120e9, 300e9, 600e9, 1200e9, 1800e9, 3600e9, 7200e9, 14400e9, 43200e9, 86400e9}

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
	if modeFor(d.w, d.h) == full {
		return []span{{" peak reserved ", dim}, {bytesText(s.Totals.PeakReserved) + " ", plain}}
	}
	return []span{{" █", inUseStyle}, {" in use ", dim}, {"▒", cachedStyle}, {" cached ", dim}, {"░", coolingStyle}, {" cooling ", dim}}
}

// eachColumn cuts the history into n equal spans of time that end now, and calls f with the samples of each. A span
// without samples gets the last sample before it; before the first sample f is not called.
func eachColumn(h []model.Sample, n int, f func(column int, samples []model.Sample)) {
	if len(h) == 0 || n <= 0 {
		return
	}
	length := chartSpan(h)
	end := h[len(h)-1].Time
	i := 0
	for c := range n {
		behind := uint64(float64(length) * float64(n-1-c) / float64(n))
		until := since(behind, end)
		from := i
		for i < len(h) && (h[i].Time <= until || c == n-1) {
			i++
		}
		switch {
		case i > from:
			f(c, h[from:i])
		case i > 0:
			f(c, h[i-1:i])
		}
	}
}

// memoryColumns returns the stack for n dot columns and the bytes that the top stands for. Within a span the sample
// with the most reserved counts, so that no peak is averaged away.
func memoryColumns(h []model.Sample, n int) ([]column, uint64) {
	columns := make([]column, n)
	for i := range columns {
		columns[i].absent = true
	}
	largest := uint64(0)
	for i := range h {
		largest = max(largest, add(h[i].InUse, h[i].Cached, h[i].Cooling))
	}
	top := niceCeiling(largest)
	eachColumn(h, n, func(c int, samples []model.Sample) {
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
	columns, top := memoryColumns(s.History, 2*chart.w)
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
	if axis {
		drawTimeAxis(r.sub(labels, r.h-1, r.w-labels, 1), s)
	}
}

// drawTimeAxis labels quarters of the chart's time, and marks when limits changed.
func drawTimeAxis(r region, s *model.Snapshot) {
	length := chartSpan(s.History)
	quarters := 4
	if r.w < 40 {
		quarters = 2
	}
	for q := range quarters {
		x := r.w * q / quarters
		r.text(x, 0, "-"+axisTime(length*uint64(quarters-q)/uint64(quarters)), dim)
	}
	r.right(r.w, 0, "now", dim)
	if len(s.History) == 0 {
		return
	}
	end := s.History[len(s.History)-1].Time
	for _, m := range s.Marks {
		behind := since(m.Time, end)
		if m.Time > end || behind >= length {
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
