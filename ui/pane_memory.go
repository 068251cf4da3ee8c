package ui

import (
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// stackColumns returns the stack for n dot columns and the bytes at the top, which labels divide into parts. The sample with
// the most reserved bytes stands for its span, so that no peak is averaged away.
func stackColumns(t *timeline, n, parts int) ([]column, uint64) {
	h := t.samples
	columns := make([]column, n)
	for i := range columns {
		columns[i].absent = true
	}
	largest := uint64(0)
	for i := range h {
		largest = max(largest, saturatingSum(h[i].InUse, h[i].Cached, h[i].Cooling))
	}
	top := roundAxisTop(largest, parts)
	t.eachColumnWithSamples(n, func(c int, samples []stats.Sample) {
		most := &samples[0]
		for i := range samples {
			s := &samples[i]
			if saturatingSum(s.InUse, s.Cached, s.Cooling) > saturatingSum(most.InUse, most.Cached, most.Cooling) {
				most = s
			}
		}
		scale := float64(top)
		columns[c] = column{layers: [3]float64{float64(most.InUse) / scale, float64(most.Cached) / scale, float64(most.Cooling) / scale}}
	})
	return columns, top
}

// memoryPane draws memory over time, with labels at the left and, if there is room, an axis of time.
type memoryPane struct{ basePane }

// title has a hint that explains the layers if the gauge does not, else the peak.
func (p memoryPane) title(s *stats.Snapshot) (title, hint []span) {
	d := p.d
	title = []span{{"memory", titleStyle}}
	if d.span > 0 {
		title = append(title, span{" " + axisTimeText(d.span), keyStyle})
	}
	if d.w-2 < gaugeLegend {
		hint = []span{{" █", inUseStyle}, {" in use ", dim}}
		if d.mode.pool {
			hint = append(hint, span{"▒", cachedStyle}, span{" cached ", dim}, span{"░", coolingStyle}, span{" cooling ", dim})
		}
		return title, hint
	}
	switch {
	case d.mode.pool && s.Spill != nil:
		hint = append(hint, span{" peak resident ", dim}, span{bytesText(s.Spill.PeakResident), plain})
	case d.mode.pool && !d.cursor.moment.Rough:
		hint = append([]span{{" ", dim}}, figureSpans(s, figures.PeakReserved, plain)...)
	}
	if sizeOfTerminal(d.w, d.h) == full {
		room, signs := d.w-spansWidth(append(title, hint...)), []span{{"  • message ■ end ★ mark", dim}}
		if d.zoom != paneMemory {
			room -= d.w - d.w*paneShares[paneMemory]/100
		}
		if d.mode.pool {
			signs = []span{{"  ╌", cachedStyle}, {" cached at most  Δ change • message ■ end ★ mark", dim}}
		}
		if room >= spansWidth(signs)+memoryKeys {
			hint = append(hint, signs...)
		}
		hint = append(hint, span{"  z", keyStyle}, span{" zoom ", dim}, span{d.theme.keysInTheme(" ← →"), keyStyle}, span{" time ", dim}, span{" < >", keyStyle}, span{" event", dim})
	}
	return title, append(hint, span{" ", dim})
}

// memoryKeys is how wide keys, mark and frame are beside title and hint of the memory pane.
const memoryKeys = 42

// machineSpans say what the machine reports, as far as whole figures fit; empty where it reports nothing.
func machineSpans(s *stats.Snapshot, width int) []span {
	var spans []span
	say := func(name, text string) {
		figure := []span{{textIf(len(spans) > 0, " · ") + name + " ", dim}, {text, plain}}
		if spansWidth(spans)+spansWidth(figure) <= width {
			spans = append(spans, figure...)
		}
	}
	if bytes, known := stats.BytesOnDevice(s.Machine); known {
		own, _ := stats.DriversOwnBytes(s.Machine, &s.Totals)
		say("machine", bytesText(bytes))
		say("driver's own", bytesText(own))
	}
	for i := range s.Machine {
		switch f := &s.Machine[i]; {
		case f.Unread != 0:
			say(f.SourceWord()+" not readable:", f.WhyUnread())
		case f.Source == wire.MachineRSS || f.Source == wire.MachineResident:
			say(f.SourceWord(), bytesText(f.Bytes))
		case f.Source == wire.MachineDMEM:
			say("control group", bytesText(f.Bytes))
		}
	}
	switch f := &s.Totals.InFlight; {
	case s.TransfersOnly && s.Totals.DriverReleases > 0:
		say("in flight", "not known without -o")
	case f.Peak > 0:
		say("in flight", bytesText(f.Now))
		say("at most", bytesText(f.Peak))
	}
	return spans
}

// spillSpans say what --spill does; empty before it took anything from the device.
func spillSpans(s *stats.Snapshot) []span {
	p := s.Spill
	if p == nil {
		return nil
	}
	var spans []span
	if p.Thrashing {
		spans = []span{{"thrashing: ", badStyle}, {"needs ", dim}, {bytesText(p.WorkingSet), plain}, {", has ", dim}, {bytesText(p.PeakResident), plain}}
		if len(p.Sites) > 0 {
			spans = append(spans, span{": " + p.Sites[0].Tag, dim})
		}
		return spans
	}
	for _, figure := range [...][2]string{
		{"spilled ", bytesText(p.Spilled)}, {" resident ", bytesText(p.Resident)}, {" out ", bytesText(p.Out.Bytes)}, {" back ", bytesText(p.In.Bytes)},
		{" stalls ", formatDuration(p.Stalls.NS)},
	} {
		spans = append(spans, span{figure[0], dim}, span{figure[1], plain})
	}
	return spans
}

// memoryLabels is the width of the labels beside the chart.
const memoryLabels = 7

// drawBounds draws what memory may reach, where the chart is as high: the device's memory, and what is in use with all that
// may be cached, if that is seen as a line.
func (p memoryPane) drawBounds(chart region, s *stats.Snapshot, columns []column, top float64) {
	row := func(v float64) int { return max(0, int(math.Ceil((1-v/top)*float64(chart.h)))-1) } // the lowest row that lies above v
	most, known := s.MaxCachedBytes()
	line := make([]int, chart.w) // the row of what may be cached; -1: nothing is known there
	for x := range line {
		c := &columns[2*x]
		if line[x] = -1; c.absent {
			continue
		}
		full := c.layers[0]*top + float64(most)
		line[x] = row(full)
		known = known && full <= top && chart.isBlank(x, line[x])
	}
	for x, y := range line {
		if known && p.d.mode.pool {
			chart.putCluster(x, y, "╌", cachedStyle)
		}
	}
	if y := row(float64(s.Device.Global)); s.Device.Global > 0 && float64(s.Device.Global) <= top && s.MostDevicesOfProcess() <= 1 {
		chart.repeatCluster(0, y, chart.w, "╌", badStyle)
		chart.writeText(0, y, "device ", badStyle)
	}
}

// isBlank reports whether nothing is drawn in a cell.
func (r region) isBlank(x, y int) bool { return y < r.h && r.c.cells[(r.y+y)*r.c.w+r.x+x].text == " " }

func (p memoryPane) draw(r region, s *stats.Snapshot) {
	const labels = memoryLabels
	for _, spans := range [...][]span{spillSpans(s), machineSpans(s, r.w-labels)} {
		if len(spans) > 0 && r.h >= 6 && !p.d.cursor.moment.Rough {
			r.subRegion(labels, 0, r.w-labels, 1).writeSpans(0, 0, spans...)
			r = r.withoutRows(1)
		}
	}
	t := p.d.timeline(s)
	lanes, events := p.lanesUnderMemory(r.h, s, &t)
	axis := r.h >= 5
	below := len(lanes)
	if axis {
		below++
	}
	if events {
		below++
	}
	chart := r.subRegion(labels, 0, r.w-labels, r.h-below)
	if chart.w < 4 || chart.h < 1 {
		return
	}
	columns, top := stackColumns(&t, 2*chart.w, labelledParts(chart.h))
	r.drawScale(labels-1, chart.h, func(part float64) string {
		if s.Totals.Creates == 0 && !slices.ContainsFunc(columns, func(c column) bool { return c.drawnHeight() > 0 }) { // there is nothing to measure
			return ""
		}
		return bytesText(uint64(part * float64(top)))
	})
	chart.drawStacked(columns, memLayers)
	p.drawBounds(chart, s, columns, float64(top))
	t.drawCursor(chart)
	p.drawLanes(r.withoutRows(chart.h), s, &t, lanes, events, axis)
}

// drawLanes draws the lines under the chart.
func (p memoryPane) drawLanes(r region, s *stats.Snapshot, t *timeline, lanes []*lane, events, axis bool) {
	const labels = memoryLabels
	y := 0
	row := func(name string) region {
		r.writeTextBefore(max(labels-2, textWidth(name)), y, name, dim) // one of all columns takes the blank before the axis, too
		r.putCluster(labels-1, y, "│", frameStyle)
		y++
		return r.subRegion(labels, y-1, r.w-labels, 1)
	}
	for _, l := range lanes {
		t.drawLane(row(l.name), l)
	}
	if events {
		t.drawEvents(row("event"), p.d.newestSnapshot(s).Marks, p.d.marks)
	}
	if axis {
		t.drawAxis(r.subRegion(labels, y, r.w-labels, 1))
	}
}
