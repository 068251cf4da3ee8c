package ui

import (
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// unneeded are the limits that say when memory that a program no longer needs goes back. No curve is estimated for them:
// values around the present one are replayed.
var unneeded = []string{"proportion", "outgrown", "max_age"}

// replayedSteps is how many values are replayed on each side.
const replayedSteps = 4

// replayedLimit returns the chosen limit, if the pane replays its values in place of the curve; else nil.
func (p *curvePane) replayedLimit() *stats.Limit {
	s := p.d.live
	if p.d.o.WhatIf == nil || s == nil || !slices.Contains(unneeded, p.d.limits.chosen) {
		return nil
	}
	if at := p.d.limits.indexOfLimit(p.d.limits.chosen); at >= 0 {
		return &s.Limits[at]
	}
	return nil
}

// valuesInKeyReach returns the values of a limit that its keys reach soon, and no limit.
func valuesInKeyReach(l *stats.Limit) (list []float64) {
	for _, step := range []limitStep{stepLess, stepMore} {
		for v, n := l.Value, 0; n <= replayedSteps; n++ {
			list = append(list, v)
			v = clampToLimitRange(l, nextLimitValue(l, v, step, 0))
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if l.Zero == noLimit && list[0] != 0 {
		list = append(list, 0)
	}
	return list
}

// drawReplayed draws what replays did at values of a limit.
func (p *curvePane) drawReplayed(r region, l *stats.Limit) {
	s := p.d.live
	values := valuesInKeyReach(l)
	trials := make([]analysis.Trial, len(values))
	for i, v := range values {
		trials[i] = analysis.Trial{Policy: s.Policy, Limit: l.Name, Value: strconv.FormatFloat(v, 'f', -1, 64)}
		if l.TakesWords() {
			trials[i].Value = l.Choices[int(v)]
		}
	}
	replays := p.d.o.WhatIf(s, trials)
	if replays == nil {
		r.writeLines(0, 0, "replayed as soon as there are requests", dim)
		return
	}
	t := units.Table{Align: "lrrl"}
	t.Add(l.Name, "HIT%", "RESERVED AT MOST", "")
	for i, v := range values {
		note := ""
		if v == l.Value {
			note = "● now"
		}
		if o, known := replays.Outcomes[trials[i]]; known {
			value := trials[i].Value
			if v == 0 && l.Zero != "" {
				value = l.Zero
			}
			t.Add(value, formatPercent(float64(o.Hits)/float64(max(o.Requests, 1))), bytesText(o.PeakReserved), note)
		}
	}
	y := 0
	for line := range strings.Lines(t.String()) {
		r.writeText(0, y, strings.TrimRight(line, "\n"), plain)
		y++
	}
	r.writeLines(0, y+1, "replayed"+replays.Part, dim)
}
