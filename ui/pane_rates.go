package ui

import (
	"math"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ratesPane shows how well the pool works: hit rate, allocations per second, and what calls cost.
type ratesPane struct{ basePane }

func (ratesPane) title(*stats.Snapshot) (title, hint []span) {
	return []span{{"rates", titleStyle}}, nil
}

func (p ratesPane) draw(r region, s *stats.Snapshot) {
	r = r.subRegion(1, 0, r.w-2, r.h)
	t := p.d.timeline(s)
	rough := p.d.cursor.moment.Rough
	if !p.d.mode.pool {
		t.drawPoollessRates(r, s, rough)
		return
	}
	r.writeAllItems(0, 0, 2, fitItems(p.hitItems(s, rough), r.w, 2))
	if r.h < 6 {
		t.drawShortRates(r, s, rough)
		return
	}
	// The two charts share what the lines of text leave.
	left := r.h - 4
	spark := max(1, left/4)
	hit := max(1, left-spark)
	y := 1
	t.drawHits(r.subRegion(0, y, r.w, hit))
	y += hit
	r.writeAllItems(0, y, 2, fitItems(allocItems(s, rough), r.w, 2))
	y++
	t.drawAllocs(r.subRegion(0, y, r.w, spark), rateLabels)
	y += spark
	r.writeAllItems(0, y, 2, fitItems(costItems(s, rough), r.w, 2))
	drawMissLine(r.subRegion(0, y+1, r.w, 1), s, rough)
}

// drawPoollessRates draws what programs without a pool request from the driver.
func (t *timeline) drawPoollessRates(r region, s *stats.Snapshot, rough bool) {
	asked, cost := allocItems(s, rough), costItems(s, rough)
	if !rough { // every allocation is one of the driver: the numbers would be the same
		asked, cost = slices.Delete(asked, 1, 2), cost[:2]
	}
	r.writeAllItems(0, 0, 2, fitItems(asked, r.w, 2))
	if r.h < 3 {
		return
	}
	t.drawAllocs(r.subRegion(0, 1, r.w, r.h-2), rateLabels)
	r.writeAllItems(0, r.h-1, 2, fitItems(cost, r.w, 2))
}

// drawShortRates fills the rows under the hit rate with the most important numbers.
func (t *timeline) drawShortRates(r region, s *stats.Snapshot, rough bool) {
	if r.h > 1 {
		x := r.writeAllItems(0, 1, 2, fitItems(allocItems(s, rough)[:1], r.w, 2)) + 1
		t.drawAllocs(r.subRegion(x, 1, r.w-x, 1), 0)
	}
	if r.h > 2 {
		r.writeAllItems(0, 2, 2, fitItems(costItems(s, rough), r.w, 2))
	}
	if r.h > 3 {
		r.writeAllItems(0, 3, 2, fitItems(allocItems(s, rough)[1:], r.w, 2))
	}
	if r.h > 4 {
		drawMissLine(r.subRegion(0, 4, r.w, 1), s, rough)
	}
}

// hitItems are the hit rates. Rough totals have only hits and misses. Those of the run are dim while it goes on: of late it
// may do better.
func (p ratesPane) hitItems(s *stats.Snapshot, rough bool) []item {
	t, w := &s.Totals, &s.Window
	steady := differenceOrZero(t.SteadyHits, t.SteadyRequests)
	total := item{0, []span{{"hit ", dim}, {hitRateText(t.Hits, t.Misses), p.d.styleOfRunHitRate(s, t.Hits, t.Misses)}}}
	if rough {
		return []item{total}
	}
	recent := 0.0
	if n := saturatingSum(w.Hits, w.Misses); n > 0 {
		recent = float64(w.Hits) / float64(n)
	}
	return []item{
		total,
		{2, []span{{"1 s ", dim}, {hitRateText(w.Hits, w.Misses), styleOfHitRate(recent, saturatingSum(w.Hits, w.Misses))}}},
		{1, []span{{"steady ", dim}, {hitRateText(t.SteadyHits, steady), p.d.styleOfRunHitRate(s, t.SteadyHits, steady)}}},
	}
}

func allocItems(s *stats.Snapshot, rough bool) []item {
	if rough {
		return []item{{0, []span{{formatCount(s.Totals.Creates), plain}, {" creates", dim}}}}
	}
	w := &s.Window
	busy := 0.0
	if w.NS > 0 {
		busy = float64(w.DriverNanos) / float64(w.NS)
	}
	return []item{
		{0, []span{{formatRate(w.Creates, w.NS), plain}, {" alloc/s", dim}}},
		{1, []span{{formatRate(w.DriverCreates, w.NS), plain}, {" driver/s", dim}}},
		{2, []span{{"in driver ", dim}, {formatPercent(busy) + "%", plain}}},
	}
}

func costItems(s *stats.Snapshot, rough bool) []item {
	if rough {
		return nil
	}
	t := &s.Totals
	name, p99 := "create p50 ", callTimeText(t.CreateP99NS)
	if n := t.CreatesTimed; n > 0 && n < stats.EnoughForP99 {
		name, p99 = map[bool]string{true: "create took ", false: "create median "}[n == 1], none
	}
	return []item{
		{0, []span{{name, dim}, {callTimeText(t.CreateP50NS), plain}}},
		{1, []span{{"p99 ", dim}, {p99, plain}}},
		{2, []span{{"driver ", dim}, {callTimeText(t.DriverCreateP50), plain}}},
	}
}

// callTimeText is how long calls took; 0: there was none.
func callTimeText(ns uint64) string {
	if ns == 0 {
		return none
	}
	return formatDuration(ns)
}

// drawMissLine names the most frequent reasons for misses.
func drawMissLine(r region, s *stats.Snapshot, rough bool) {
	if rough {
		r.writeAllItems(0, 0, 2, fitItems([]item{{0, []span{{"misses ", dim}, {formatCount(s.Totals.Misses), plain}}}}, r.w, 2))
		return
	}
	if s.Totals.Misses == 0 {
		r.writeText(0, 0, "no misses", dim)
		return
	}
	items := []item{{0, []span{{"misses ", dim}, {formatCount(s.Totals.Misses), plain}}}}
	for i, m := range rankMisses(&s.Totals.MissReasons) {
		items = append(items, item{i + 1, []span{{wire.Miss(m).String() + " ", dim}, {formatCount(s.Totals.MissReasons[m]), plain}}})
	}
	r.writeAllItems(0, 0, 2, fitItems(items, r.w, 2))
}

// rateLabels is the width of the labels beside the charts of rates.
const rateLabels = 5

// drawHits draws the hit rate over time. Spans without requests carry the last rate on as a thin line; a rate of 0 is a red line.
func (t *timeline) drawHits(r region) {
	const labels = rateLabels
	chart := r.subRegion(labels, 0, r.w-labels, r.h)
	if chart.w < 1 {
		return
	}
	columns := make([]column, 2*chart.w)
	for i := range columns {
		columns[i].absent = true
	}
	last, known := 0.0, false
	t.eachColumnWithSamples(len(columns), func(c int, samples []stats.Sample) {
		var hits, misses uint64
		for i := range samples {
			hits, misses = saturatingSum(hits, samples[i].Hits), saturatingSum(misses, samples[i].Misses)
		}
		n := float64(hits) + float64(misses)
		if n > 0 {
			last, known = float64(hits)/n, true
		}
		switch {
		case n > 0 && hits > 0:
			columns[c] = column{layers: [3]float64{last}}
		case n > 0:
			columns[c] = column{layers: [3]float64{0, 0, 1e-9}}
		case known && last > 0:
			columns[c] = column{layers: [3]float64{0, last}}
		}
	})
	r.drawScale(labels-1, chart.h, shareLabel)
	fillShortRests(columns)
	chart.drawStacked(columns, hitLayers)
}

// shareLabel writes a part of the whole on a scale.
func shareLabel(part float64) string {
	if part == 0 {
		return "0"
	}
	return strconv.FormatFloat(100*part, 'f', 0, 64) + "%"
}

// bridgeMost is how many dot columns without requests are drawn as if there had been some: programs rest between two iterations.
const bridgeMost = 5

// fillShortRests fills short rests between requests, which would look like noise.
func fillShortRests(columns []column) {
	for i := 0; i < len(columns); i++ {
		end := i
		for end < len(columns) && columns[end].layers[1] > 0 {
			end++
		}
		if i < end && end-i <= bridgeMost && i > 0 && columns[i-1].layers[0] > 0 && (end == len(columns) || columns[end].layers[0] > 0) {
			for j := i; j < end; j++ {
				columns[j].layers[0], columns[j].layers[1] = columns[j].layers[1], 0
			}
		}
		i = max(i, end)
	}
}

// drawAllocs draws allocations over time, with a scale in the labels' columns where there are rows for one.
func (t *timeline) drawAllocs(r region, labels int) {
	chart, step, most := r.subRegion(labels, 0, r.w-labels, r.h), t.stepLength(), 0.0
	values := make([]float64, chart.w)
	t.eachColumnWithSamples(len(values), func(c int, samples []stats.Sample) {
		for i := range samples {
			values[c] = math.Max(values[c], float64(samples[i].Creates))
		}
		most = math.Max(most, values[c])
	})
	if r.h >= scaleLeast && labels > 0 && step > 0 {
		r.drawScale(labels-1, r.h, func(part float64) string { return units.FormatCompact(part * most * 1e9 / float64(step)) })
	}
	chart.drawScaled(values, most, trendStyle)
}

// scaleLeast is how many rows a chart with a scale has at least.
const scaleLeast = 3
