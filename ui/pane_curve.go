package ui

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

const (
	curveLeast = 20 // requests before a curve is shown
	curveAxis  = 6  // width of the labels at the left
)

// curvePane is the hit rate by limit of cached bytes, with notes above it and the limits under it. Like the limits it
// shows the latest state even while the screen is frozen.
type curvePane struct {
	basePane
	curve *view.Curve // nil: none received yet
	tried uint64      // limit that the user tries on the curve; 0: none

	plotX, plotW int // where the last frame has the plot
}

func (p *curvePane) title(*stats.Snapshot) (title, hint []span) {
	if l := p.replayedLimit(); l != nil {
		return []span{{"hits and memory by " + l.Name, titleStyle}}, []span{{" [ ]", keyStyle}, {" limit", dim}, {" c", keyStyle}, {" back ", dim}}
	}
	title = []span{{"hit rate by limit of cached bytes", titleStyle}, {p.d.processes.scopeMarkText(), dim}}
	if c := p.curve; c != nil && (c.Whole || p.d.hasNoPool()) {
		title[1].text = " (" + c.Policy + ")" + p.d.processes.scopeMarkText()
		if p.d.hasNoPool() {
			title[0].text = "hit rate of a pool by limit of cached bytes"
		}
	}
	hint = []span{{" c", keyStyle}, {" back ", dim}}
	if p.missingText() == "" {
		hint = append([]span{{" [ ]", keyStyle}, {" limit", dim}}, hint...)
	}
	return title, hint
}

func (p *curvePane) draw(r region, _ *stats.Snapshot) {
	c := plotted{p.curve}
	r = r.subRegion(1, 0, r.w-2, r.h)
	if l := p.replayedLimit(); l != nil {
		p.drawReplayed(r, l)
		return
	}
	if why := p.missingText(); why != "" {
		r.writeLines(0, 0, why, dim)
		return
	}
	marks := p.limitMarks()
	r.writeAllItems(0, 0, 2, fitItems(append(c.pointsNamedInFirstLine(marks), p.poollessNote()...), r.w, 2))
	r.writeAllItems(0, 1, 2, fitItems(c.reliabilityItems(), r.w, 2))
	plot := r.subRegion(curveAxis, 2, r.w-curveAxis, r.h-4)
	p.plotX, p.plotW = plot.x, plot.w
	if plot.h < 2 || plot.w < 10 {
		return
	}
	r.subRegion(0, 2, r.w, plot.h).drawScale(curveAxis-1, plot.h, shareLabel)
	x := c.scaleOfAxis(marks, plot.w)
	columns := make([]column, 2*plot.w)
	for i := range columns {
		columns[i].layers[0] = c.hitRateAt(x.limitAt(float64(i) / 2))
	}
	plot.drawStacked(columns, hitLayers)
	c.drawErrorBand(plot, x)
	for _, m := range marks {
		for y := range plot.h {
			if x.isOnAxis(m.limit) {
				plot.putCluster(x.columnOfLimit(m.limit), y, m.sign, m.style)
			}
		}
	}
	for _, p := range c.Exact {
		plot.putCluster(x.columnOfLimit(p.Limit), int(math.Round((1-p.HitRate)*float64(plot.h-1))), "◆", strong)
	}
	x.drawAxis(r.subRegion(curveAxis, r.h-2, plot.w, 2), c)
}

// drawErrorBand draws how far off the estimates may be, above and below the curve, where that is a row or more.
func (c plotted) drawErrorBand(plot region, x scale) {
	rows := float64(plot.h - 1)
	if !c.IsKnown() || c.Error*rows < 1 {
		return
	}
	for column := range plot.w {
		limit := x.limitAt(float64(column))
		if c.isExact(uint64(limit)) {
			continue
		}
		low, high := c.rangeOfEstimate(view.CurvePoint{Limit: uint64(limit), HitRate: c.hitRateAt(limit)})
		for _, bound := range []float64{low, high} {
			plot.putCluster(column, int(math.Round((1-bound)*rows)), "·", dim)
		}
	}
}

// missingText says why there is no curve to draw, empty if there is one.
func (p *curvePane) missingText() string {
	c := p.curve
	switch {
	case p.d.o.Curve == nil || p.d.live == nil:
		return "no curve is computed here"
	case c == nil:
		return "no data yet"
	case c.Why != "":
		return c.Why
	case !c.Limits:
		return "policy " + c.Policy + " does not limit cached bytes: there is no curve"
	case c.Whole && len(c.Exact) == 0:
		return "this recording has no poolable requests"
	case !c.Whole && c.Requests < curveLeast:
		return "too few requests so far: " + formatCount(c.Requests)
	case c.Enough.HitRate == 0:
		return "no limit gives any hit: no suitable block was free when one was requested"
	}
	return ""
}

// plotted is a curve with the methods that the pane needs to draw it.
type plotted struct{ *view.Curve }

// pointsNamedInFirstLine returns the points of the curve that the first line names: the knee, the limit in force, the one to try.
func (c plotted) pointsNamedInFirstLine(marks []curveMark) []item {
	at := func(name string, p view.CurvePoint) []span {
		return []span{{name + " ", dim}, {bytesText(p.Limit), strong}, {" " + c.rateText(p), plain}}
	}
	items := []item{{0, at("▲ knee", c.Knee)}, {2, at("99 % of the best", c.Enough)}}
	for _, m := range marks {
		items = append(items, item{1, at(m.sign+" "+m.name, view.CurvePoint{Limit: m.limit, HitRate: c.hitRateAt(float64(m.limit))})})
	}
	return items
}

// roundError is the error from which an estimate is a range.
const roundError = 0.01

// rateText writes the hit rate at a point: a range where an estimate may be off by a point or more.
func (c plotted) rateText(p view.CurvePoint) string {
	switch {
	case c.isExact(p.Limit):
		return formatPercent(p.HitRate) + " %"
	case !c.IsKnown() && p.HitRate >= 0.995:
		return "perhaps 100 %"
	case !c.IsKnown():
		return fmt.Sprintf("≈%.0f %%", 100*p.HitRate)
	case c.Error >= roundError || p.HitRate+c.Error > 1:
		low, high := c.rangeOfEstimate(p)
		return fmt.Sprintf("%.0f to %.0f %%", 100*low, 100*high)
	}
	return "≈" + formatPercent(p.HitRate) + " %"
}

// rangeOfEstimate returns the range that an estimate may be in: within the error, and within the exact points beside it.
func (c plotted) rangeOfEstimate(p view.CurvePoint) (low, high float64) {
	low, high = max(0, p.HitRate-c.Error), min(1, p.HitRate+c.Error)
	for _, exact := range c.Exact {
		switch {
		case exact.Limit <= p.Limit:
			low = max(low, min(exact.HitRate, p.HitRate))
		case exact.HitRate >= p.HitRate:
			high = min(high, exact.HitRate)
		}
	}
	return low, high
}

// isExact reports whether the hit rate at a limit is exact: at an exact point, or above all of them where the curve has
// no step left.
func (c plotted) isExact(limit uint64) bool {
	n := len(c.Exact)
	return n > 0 && limit >= c.Exact[n-1].Limit && c.pointAt(float64(limit)).Limit <= c.Exact[n-1].Limit ||
		slices.ContainsFunc(c.Exact, func(p view.CurvePoint) bool { return p.Limit == limit })
}

// hasDipAtExactPoints reports whether a larger limit has a clearly lower hit rate at exact points.
func (c plotted) hasDipAtExactPoints() bool {
	most := 0.0
	for _, p := range c.Exact {
		if p.HitRate < most-0.01 {
			return true
		}
		most = max(most, p.HitRate)
	}
	return false
}

// reliabilityItems returns words on how reliable the curve is.
func (c plotted) reliabilityItems() []item {
	items := c.itemsIfExact()
	if c.hasDipAtExactPoints() {
		items = append(items, item{3, []span{{"a larger limit can hit less here", dim}}})
	}
	return items
}

func (c plotted) itemsIfExact() []item {
	if c.Whole {
		return []item{
			{0, []span{{"◆ simulated, not estimated", dim}}}, {1, []span{{"of all ", dim}, {pluralText(c.Requests, "request"), plain}, {" of the recording", dim}}},
		}
	}
	known := []span{{"nothing exact yet", warnStyle}}
	if len(c.Exact) > 0 {
		text := fmt.Sprintf("±%.2g points", 100*c.Error)
		known = []span{{"◆ exact, else ", dim}, {text, plain}}
	}
	items := []item{{0, known}, {2, []span{{"of the latest ", dim}, {pluralText(c.Requests, "request"), plain}}}}
	if c.Missed > 0 {
		items = append(items, item{1, []span{{"restarted after missing " + pluralText(c.Missed, "event"), warnStyle}}})
	}
	if c.LeftOut {
		items = append(items, item{1, []span{{"without some processes", warnStyle}}})
	}
	return items
}

// hitRateAt returns the hit rate at a limit.
func (c plotted) hitRateAt(limit float64) float64 { return c.pointAt(limit).HitRate }

// pointAt returns the point of the curve whose hit rate holds at a limit.
func (c plotted) pointAt(limit float64) view.CurvePoint {
	i := sort.Search(len(c.Points), func(i int) bool { return float64(c.Points[i].Limit) > limit })
	if i == 0 {
		return view.CurvePoint{}
	}
	return c.Points[i-1]
}

// scale is a logarithmic axis of limits over w columns.
type scale struct {
	low, high float64 // log2 of bytes
	w         int
}

// scaleOfAxis returns an axis that covers all steps of the curve and the marks.
func (c plotted) scaleOfAxis(marks []curveMark, w int) scale {
	low, high := uint64(math.MaxUint64), uint64(1)
	include := func(limit uint64) {
		if limit > 0 && limit <= view.Unlimited {
			low, high = min(low, limit), max(high, limit)
		}
	}
	for i := 1; i < len(c.Points); i++ {
		if c.Points[i].HitRate > 0 {
			include(c.Points[i].Limit)
		}
	}
	for _, m := range marks {
		include(m.limit)
	}
	low = min(low, high)
	return scale{math.Floor(math.Log2(float64(low))) - 1, math.Ceil(math.Log2(float64(high))) + 1, w}
}

// limitAt returns the bytes at a column.
func (x scale) limitAt(column float64) float64 {
	return math.Exp2(x.low + (x.high-x.low)*column/float64(max(1, x.w-1)))
}

// isOnAxis reports whether a limit is on the axis.
func (x scale) isOnAxis(limit uint64) bool {
	at := math.Log2(float64(max(limit, 1)))
	return at >= x.low && at <= x.high
}

// columnOfLimit returns where a limit is.
func (x scale) columnOfLimit(limit uint64) int {
	at := math.Log2(float64(max(limit, 1)))
	return int(math.Round((at - x.low) / (x.high - x.low) * float64(x.w-1)))
}

// drawAxis draws a line with the knee on it, and limits under it.
func (x scale) drawAxis(r region, c plotted) {
	r.repeatCluster(0, 0, r.w, "─", frameStyle)
	end := 0
	for power := math.Ceil(x.low); power <= x.high; power++ {
		text := units.Format(uint64(math.Exp2(power)))
		if at := x.columnOfLimit(uint64(math.Exp2(power))); at >= end && at+textWidth(text) <= r.w {
			r.putCluster(at, 0, "┴", frameStyle)
			end = r.writeText(at, 1, text, dim) + 3
		}
	}
	if x.isOnAxis(c.Knee.Limit) {
		r.putCluster(x.columnOfLimit(c.Knee.Limit), 0, "▲", warnStyle)
	}
}

// chooseLimitAt chooses the power of two that is nearest to a column of the screen: for the limit of cached bytes, or to try.
func (p *curvePane) chooseLimitAt(column int) {
	column -= p.plotX
	if p.missingText() != "" || column < 0 || column >= p.plotW {
		return
	}
	limit := math.Exp2(math.Round(math.Log2(plotted{p.curve}.scaleOfAxis(p.limitMarks(), p.plotW).limitAt(float64(column)))))
	at := p.d.limits.indexOfLimit(stats.MaxCachedBytes)
	switch why := adjustObstacle(p.d); {
	case p.triesLimits():
		p.tried = max(triedMin, min(uint64(limit), triedMax))
	case why != "" || at < 0:
		p.d.sayMessage(warnStyle, why)
	default:
		p.d.limits.requestLimitValue(at, clampToLimitRange(&p.d.live.Limits[at], limit))
	}
}

// handleEnter does nothing: the pane has no rows.
func (p *curvePane) handleEnter() {}
