package ui

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// drawTop draws header, numbers, gauge and, at full size, the legend of the gauge.
func (d *dashboard) drawTop(r region, s *stats.Snapshot, m size) {
	d.drawHeader(r, s)
	numbers := d.numberItems(s)
	gap := 2
	if m == full {
		gap = 3
	}
	r.line(1, 1, gap, numbers)
	drawGauge(r.sub(1, 2, r.w-2, 1), s, m)
	if m == full {
		r.line(1, 3, gap, d.legendItems(s))
	}
}

// numberItems are the numbers of the second line.
func (d *dashboard) numberItems(s *stats.Snapshot) []item {
	switch rough := d.cursor.moment.Rough; {
	case rough && d.mode.pool:
		return roughItems(s)
	case rough:
		return slices.Delete(roughItems(s), 2, 3) // the hit rate
	case d.mode.pool:
		return d.poolItems(s)
	}
	return d.poollessItems(s)
}

// peakSpans are the peak in use and its time.
func peakSpans(s *stats.Snapshot) []span {
	t := &s.Totals
	peak := []span{{figures.PeakInUse.Title() + " ", dim}, {leastText(s) + bytesText(t.PeakInUse), plain}}
	if t.PeakInUseTime > s.Started {
		peak = append(peak, span{" @" + units.Clock(since(s.Started, t.PeakInUseTime)), dim})
	}
	return peak
}

// inUseSpans are the most in use in the last second, and what is in use now if that is clearly less. In a recording they are
// what is in use at the time of the cursor.
func (d *dashboard) inUseSpans(s *stats.Snapshot) []span {
	t := &s.Totals
	most := max(t.Held, t.InUse)
	if d.mode.recording {
		most = t.InUse
	}
	spans := []span{{figures.InUse.Name + " ", dim}, {leastText(s) + bytesText(most), inUseStyle}}
	if most > add(t.InUse, t.InUse/20) {
		return append(spans, span{" now " + bytesText(t.InUse), dim})
	}
	return append(spans, span{tendency(s.History), dim})
}

// roughItems are the numbers that the summaries in a recording have.
func roughItems(s *stats.Snapshot) []item {
	t := &s.Totals
	return []item{
		{0, []span{{figures.InUse.Name + " up to ", dim}, {bytesText(t.InUse), inUseStyle}}},
		{1, figureSpans(s, figures.PeakInUse, plain)},
		{0, hitSpans(s)},
		{2, []span{{count(t.Creates), plain}, {" creates", dim}}},
	}
}

// figureSpans are the name and the value of a figure.
func figureSpans(s *stats.Snapshot, f *figures.Figure, st style) []span {
	return []span{{f.Title() + " ", dim}, {figureText(f, f.Of(figures.Run(s))), st}}
}

// figureText writes a value with the few digits that fit.
func figureText(f *figures.Figure, v figures.Value) string {
	switch f.Unit {
	case figures.Bytes:
		return bytesText(v.Exact)
	case figures.Rate:
		return percent(v.Number) + "%"
	case figures.Nanos, figures.Seconds:
		return duration(v.Exact)
	default:
		return count(v.Exact)
	}
}

func hitSpans(s *stats.Snapshot) []span {
	t := &s.Totals
	return []span{{"hit ", dim}, {hitText(t.Hits, t.Misses), rateStyle(t.HitRate(), t.Hits+t.Misses)}}
}

// lateNS is what colours and the first hit rate are about, in ns: what was cured earlier is no fault now.
const lateNS = 10e9

// lateHits counts the hits and misses of the last seconds.
func lateHits(s *stats.Snapshot) (hits, misses uint64) {
	for i := len(s.Minute) - 1; i >= 0 && since(s.Minute[i].Time, s.Time) < lateNS; i-- {
		hits, misses = add(hits, s.Minute[i].Hits), add(misses, s.Minute[i].Misses)
	}
	return hits, misses
}

// goesOn reports whether a snapshot is of all of a run that goes on, so that what happened of late is known, and counts.
func (d *dashboard) goesOn(s *stats.Snapshot) bool {
	return !d.mode.recording && !d.ended() && !d.processes.single(s) && len(s.Minute) > 0
}

// hitItems are the hit rate of the last seconds and that of the run.
func (d *dashboard) hitItems(s *stats.Snapshot) []item {
	if !d.goesOn(s) {
		return []item{{0, hitSpans(s)}}
	}
	hits, misses := lateHits(s)
	all := add(hits, misses)
	return []item{
		{0, []span{{"hit ", dim}, {hitText(hits, misses), rateStyle(float64(hits)/float64(max(all, 1)), all)}}},
		{5, []span{{"run ", dim}, {hitText(s.Totals.Hits, s.Totals.Misses), dim}}},
	}
}

// fewRequests are too few for their hit rate to be good or bad.
const fewRequests = 20

func (d *dashboard) poolItems(s *stats.Snapshot) []item {
	cached := figureSpans(s, figures.Cached, cachedStyle)
	if most, known := s.CachedMost(); known && most < unlimitedBytes {
		cached = append(cached, span{"/" + bytesText(most), dim})
	}
	if s.Totals.Idle > 0 {
		cached = append(cached, append([]span{{" ", dim}}, figureSpans(s, figures.Idle, cachedStyle)...)...)
	}
	wasteStyle := plain
	if s.Totals.Waste() >= 0.25 {
		wasteStyle = warnStyle
	}
	items := append([]item{
		{0, d.inUseSpans(s)},
		{1, cached},
		{6, figureSpans(s, figures.Reserved, plain)},
		{3, peakSpans(s)},
	}, d.hitItems(s)...)
	return append(items,
		item{4, figureSpans(s, figures.Waste, wasteStyle)},
		item{7, figureSpans(s, figures.ExternalFragmentation, plain)},
		item{2, []span{{perSecond(s.Window.Creates, s.Window.NS), plain}, {" alloc/s", dim}}})
}

// poollessItems are the numbers of programs without a pool, whose hit rate would look like a fault.
func (d *dashboard) poollessItems(s *stats.Snapshot) []item {
	t := &s.Totals
	return []item{
		{0, d.inUseSpans(s)},
		{2, []span{{"buffers ", dim}, {count(t.LiveBuffers), plain}}},
		{3, peakSpans(s)},
		{1, []span{{perSecond(s.Window.Creates, s.Window.NS), plain}, {" alloc/s", dim}}},
	}
}

// leastText marks what lost events may have made too high or too low, and a lower bound: sizes from before attach are known only from later uses.
func leastText(s *stats.Snapshot) string {
	switch {
	case s.Lost > 0:
		return "≈ "
	case s.BeforeAttach() == nil:
		return ""
	}
	return "≥ "
}

// poollessLegend counts calls instead of what a pool saved.
func poollessLegend(s *stats.Snapshot) []item {
	items := []item{
		{0, []span{{"█", inUseStyle}, {" in use", dim}}},
		{1, append(figureSpans(s, figures.Creates, plain), append([]span{{" ", dim}}, figureSpans(s, figures.Releases, plain)...)...)},
	}
	if before := s.BeforeAttach(); before != nil {
		items = append(items, item{2, []span{{"from before attach ", dim}, {count(before.Live), plain}, {" buffers", dim}}})
	}
	return append(items, item{3, []span{{"no pool: attach only watches", dim}}})
}

func hitText(hits, misses uint64) string {
	text := ratio(hits, add(hits, misses))
	if text == none {
		return text
	}
	return text + "%"
}

func rateStyle(rate float64, n uint64) style {
	switch {
	case n == 0:
		return dim
	case n < fewRequests:
		return plain
	case rate >= 0.9:
		return goodStyle
	case rate >= 0.5:
		return warnStyle
	}
	return badStyle
}

// tendency returns an arrow if memory in use has changed by more than two percent over the last ten samples.
func tendency(h []stats.Sample) string {
	if len(h) < 10 {
		return ""
	}
	was, is := float64(h[len(h)-10].InUse), float64(h[len(h)-1].InUse)
	switch {
	case is > was*1.02:
		return " ▲"
	case is < was*0.98:
		return " ▼"
	}
	return "  "
}

// drawGauge draws how much of the device is reserved.
func drawGauge(r region, s *stats.Snapshot, m size) {
	t := &s.Totals
	whole, label := s.Device.Global, bytesText(s.Device.Global)
	if whole == 0 {
		whole = niceCeiling(max(t.PeakReserved, add(t.InUse, t.Cached, t.Cooling)))
		label = "of " + bytesText(whole)
		if t.PeakReserved == 0 && t.InUse == 0 {
			label = none
		}
	}
	x := 0
	if m == full && s.Device.Global > 0 {
		x = r.text(0, 0, "device ", dim)
	}
	n := r.w - x - width(label) - 1
	r.bar(x, 0, n, whole, []part{{t.InUse, "█", inUseStyle}, {since(t.Idle, t.Cached), "▒", cachedStyle}, {t.Idle, "▂", cachedStyle}, {t.Cooling, "░", coolingStyle}})
	r.right(r.w, 0, label, dim)
}

// savingItems are what the pool has saved, if that is known.
func (d *dashboard) savingItems(s *stats.Snapshot) []item {
	return slices.DeleteFunc(d.legendItems(s), func(i item) bool { return i.rank < 3 })
}

// legendItems explain the gauge.
func (d *dashboard) legendItems(s *stats.Snapshot) []item {
	switch {
	case !d.cursor.moment.Rough && d.mode.pool:
		return d.poolLegend(s)
	case !d.cursor.moment.Rough:
		return poollessLegend(s)
	}
	return []item{
		{0, []span{{"█", inUseStyle}, {" in use", dim}}},
		{0, []span{{"▒", cachedStyle}, {" cached", dim}}},
		{1, []span{{"░", coolingStyle}, {" cooling", dim}}},
		{2, []span{{"at the peak of the interval before this time", dim}}},
	}
}

// poolLegend also says what the pool has saved, if that is known.
func (d *dashboard) poolLegend(s *stats.Snapshot) []item {
	t := &s.Totals
	items := []item{
		{0, []span{{"█", inUseStyle}, {" in use ", dim}, {bytesText(t.InUse), plain}}},
		{0, []span{{"▒", cachedStyle}, {" cached ", dim}, {bytesText(t.Cached), plain}}},
		{1, []span{{"░", coolingStyle}, {" cooling ", dim}, {bytesText(t.Cooling), plain}}},
	}
	if t.Idle > 0 {
		items = slices.Insert(items, 2, item{1, append([]span{{"▂", cachedStyle}, {" ", dim}}, figureSpans(s, figures.Idle, plain)...)})
	}
	if s.Device.Global > 0 {
		free := since(add(t.InUse, t.Cached, t.Cooling), s.Device.Global)
		items = append(items, item{2, []span{{"·", freeStyle}, {" free ", dim}, {bytesText(free), plain}}})
	}
	items = append(items,
		item{3, append(figureSpans(s, figures.DriverCreates, plain), span{" avoided ", dim}, span{count(t.Hits), goodStyle})})
	switch {
	case s.Measured.Known():
		return append(items, item{4, []span{{"measured ", dim}, {s.Measured.Change(), plain}}}, item{5, []span{{s.Measured.Other(), dim}}})
	case t.Saved.NS == 0 && t.Hits > 0 && d.o.Measure != nil:
		return append(items, item{4, []span{{"E", keyStyle}, {" measures what that gains", dim}}})
	case t.Saved.NS == 0:
		return items
	}
	of := "(estimate)"
	if !t.Saved.Releases {
		of = "of creates (estimate)"
	}
	return append(items, item{4, []span{{"saved ≈ ", dim}, {duration(t.Saved.NS), plain}}}, item{5, []span{{of, dim}}})
}

// drawNumbersOnly draws the numbers line by line, in a terminal too small for panes.
func (d *dashboard) drawNumbersOnly(r region, s *stats.Snapshot) {
	d.drawHeader(r, s)
	x, y := 1, 1
	for _, it := range append(d.numberItems(s), d.savingItems(s)...) {
		n := spansWidth(it.spans)
		if x > 1 && x+n > r.w-1 {
			x, y = 1, y+1
		}
		if y >= r.h-1 {
			break
		}
		x = r.spans(x, y, it.spans...) + 2
	}
	if d.note.text != "" {
		r.sub(0, r.h-2, r.w, 1).wipe()
	}
	if y+2 < r.h || d.note.text != "" {
		d.drawMessage(r.sub(0, r.h-2, r.w, 1), s)
	}
	d.drawKeys(r.sub(0, r.h-1, r.w, 1))
}
