package ui

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

const (
	// curveLeast is of how many requests a curve says something.
	curveLeast = 20
	// curveAxis is the width of the figures at its left.
	curveAxis = 6
)

// drawCurve draws the hit rate by limit of cached bytes, what it says in words above it, and under it the limits. Like the
// limits it shows the latest state even when the screen is frozen.
func (d *dashboard) drawCurve(r region) {
	c := d.curve
	r = r.sub(1, 0, r.w-2, r.h)
	if why := d.noCurve(); why != "" {
		for y, line := range wrap(why, r.w) {
			r.text(0, y, line, dim)
		}
		return
	}
	marks := d.curveMarks()
	r.lineOf(0, 0, 2, fit(append(c.words(marks), d.poolWords()...), r.w, 2))
	r.lineOf(0, 1, 2, fit(c.trust(), r.w, 2))
	plot := r.sub(curveAxis, 2, r.w-curveAxis, r.h-4)
	if plot.h < 2 || plot.w < 10 {
		return
	}
	for y, text := range []string{"100 %", "50 %", "0 %"} {
		if y != 1 || plot.h > 4 {
			r.right(curveAxis-1, 2+y*(plot.h-1)/2, text, dim)
		}
	}
	x := c.scale(marks, plot.w)
	columns := make([]column, 2*plot.w)
	for i := range columns {
		columns[i].layers[0] = c.at(x.limit(float64(i) / 2))
	}
	plot.stacked(columns, hitLayers)
	for _, m := range marks {
		for y := range plot.h {
			if x.has(m.limit) {
				plot.put(x.column(m.limit), y, m.sign, m.style)
			}
		}
	}
	for _, p := range c.Exact {
		plot.put(x.column(p.Limit), int(math.Round((1-p.HitRate)*float64(plot.h-1))), "◆", strong)
	}
	x.drawAxis(r.sub(curveAxis, r.h-2, plot.w, 2), c)
}

// showCurve shows the curve, or says why there can be none.
func (d *dashboard) showCurve() {
	switch {
	case modeFor(d.w, d.h) < compact:
		d.say(warnStyle, "there is no room for the curve")
	default:
		d.zoomOn(paneCurve)
	}
}

// noCurve says why there is nothing to draw, empty when there is something.
func (d *dashboard) noCurve() string {
	c := d.curve
	switch {
	case d.o.Curve == nil || d.live == nil:
		return "nobody works out a curve here"
	case c == nil:
		return "nothing is known yet"
	case c.Why != "":
		return c.Why
	case !c.Limits:
		return "policy " + c.Policy + " has no limit of cached bytes: there is no curve"
	case c.Whole && len(c.Exact) == 0:
		return "nothing in this recording asks for what a pool serves"
	case !c.Whole && c.Requests < curveLeast:
		return "too little is known: " + plural(c.Requests, "request") + " so far"
	case c.Enough.HitRate == 0:
		return "nothing hits, whatever the limit: no block that would serve was free when one was asked for"
	}
	return ""
}

// words are what the curve says.
func (c *Curve) words(marks []curveMark) []item {
	at := func(name string, p CurvePoint) []span {
		rate := " " + percent(p.HitRate) + " %"
		if !c.isExact(p.Limit) {
			rate = " ≈" + rate[1:]
		}
		return []span{{name + " ", dim}, {bytesText(p.Limit), strong}, {rate, plain}}
	}
	items := []item{{0, at("▲ knee", c.Knee)}, {2, at("99 % of the most", c.Enough)}}
	for _, m := range marks {
		items = append(items, item{1, at(m.sign+" "+m.name, CurvePoint{m.limit, c.at(float64(m.limit))})})
	}
	return items
}

// isExact reports whether the hit rate at a limit is not estimated: it is at an exact point, or above all, where it is the
// same.
func (c *Curve) isExact(limit uint64) bool {
	n := len(c.Exact)
	return n > 0 && limit >= c.Exact[n-1].Limit && c.at(float64(limit)) == c.Exact[n-1].HitRate || slices.ContainsFunc(c.Exact, func(p CurvePoint) bool { return p.Limit == limit })
}

// dips reports whether a larger limit hits clearly less, for certain.
func (c *Curve) dips() bool {
	most := 0.0
	for _, p := range c.Exact {
		if p.HitRate < most-0.01 {
			return true
		}
		most = max(most, p.HitRate)
	}
	return false
}

// trust are how far it can be trusted.
func (c *Curve) trust() []item {
	items := c.trusted()
	if c.dips() {
		items = append(items, item{3, []span{{"more can hit less here", dim}}})
	}
	return items
}

func (c *Curve) trusted() []item {
	if c.Whole {
		return []item{
			{0, []span{{"◆ played, not estimated", dim}}}, {1, []span{{"of all ", dim}, {plural(c.Requests, "request"), plain}, {" of the recording", dim}}},
		}
	}
	known := []span{{"nothing exact yet", warnStyle}}
	if len(c.Exact) > 0 {
		text := fmt.Sprintf("±%.1f points", 100*c.Error)
		known = []span{{"◆ exact, else ", dim}, {text, plain}}
	}
	items := []item{{0, known}, {2, []span{{"of the latest ", dim}, {plural(c.Requests, "request"), plain}}}}
	if c.Missed > 0 {
		items = append(items, item{1, []span{{"began anew, missed " + plural(c.Missed, "event"), warnStyle}}})
	}
	if c.LeftOut {
		items = append(items, item{1, []span{{"not of all processes", warnStyle}}})
	}
	return items
}

// at returns the hit rate at a limit.
func (c *Curve) at(limit float64) float64 {
	i := sort.Search(len(c.Points), func(i int) bool { return float64(c.Points[i].Limit) > limit })
	if i == 0 {
		return 0
	}
	return c.Points[i-1].HitRate
}

// scale is a logarithmic axis of limits over so many columns.
type scale struct {
	low, high float64 // log2 of bytes
	w         int
}

// scale returns the axis for a curve: from below its first step to above its last, with the marks.
func (c *Curve) scale(marks []curveMark, w int) scale {
	low, high := uint64(math.MaxUint64), uint64(1)
	include := func(limit uint64) {
		if limit > 0 && limit <= 1<<50 { // beyond, no limit was meant
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

// limit returns the bytes at a column.
func (x scale) limit(column float64) float64 {
	return math.Exp2(x.low + (x.high-x.low)*column/float64(max(1, x.w-1)))
}

// has reports whether a limit is on the axis.
func (x scale) has(limit uint64) bool {
	at := math.Log2(float64(max(limit, 1)))
	return at >= x.low && at <= x.high
}

// column returns where a limit is.
func (x scale) column(limit uint64) int {
	at := math.Log2(float64(max(limit, 1)))
	return int(math.Round((at - x.low) / (x.high - x.low) * float64(x.w-1)))
}

// drawAxis draws a line with the knee on it, and limits under it.
func (x scale) drawAxis(r region, c *Curve) {
	r.repeat(0, 0, r.w, "─", frameStyle)
	end := 0
	for power := math.Ceil(x.low); power <= x.high; power++ {
		text := size.Format(uint64(math.Exp2(power)))
		if at := x.column(uint64(math.Exp2(power))); at >= end && at+width(text) <= r.w {
			r.put(at, 0, "┴", frameStyle)
			end = r.text(at, 1, text, dim) + 3
		}
	}
	if x.has(c.Knee.Limit) {
		r.put(x.column(c.Knee.Limit), 0, "▲", warnStyle)
	}
}

func (d *dashboard) curveTitle() (title, hint []span) {
	title = []span{{"hit rate by limit of cached bytes", titleStyle}, {d.ofAll(), dim}}
	if d.curve != nil && d.poolless() {
		title = []span{{"hit rate of a pool by limit of cached bytes", titleStyle}, {" (" + d.curve.Policy + ")" + d.ofAll(), dim}}
	}
	if d.curve != nil && d.curve.Whole && !d.poolless() {
		title[1] = span{" (" + d.curve.Policy + ")" + d.ofAll(), dim}
	}
	hint = []span{{" c", keyStyle}, {" back ", dim}}
	if d.noCurve() == "" && (d.supposes() || d.o.SetLimit != nil) {
		hint = append([]span{{" [ ]", keyStyle}, {" limit", dim}}, hint...)
	}
	return title, hint
}
