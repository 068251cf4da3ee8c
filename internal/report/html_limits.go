package report

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/report/plot"
)

// limitChartSection draws the hit rate that replays with other limits of cached bytes found.
func (v *view) limitChartSection() section {
	m := v.o.Limits
	if m == nil {
		return section{}
	}
	s := section{ID: "limits", Title: "Hit rate by limit"}
	if why := whyNoLimitFigures(m); why != "" {
		s.Intro = "Limit: " + why + "."
		return s
	}
	most := max(m.Exact[0].Limit+1, m.Enough.Limit)
	for _, e := range m.Exact {
		if !e.IsUnlimited() {
			most = max(most, e.Limit)
		}
	}
	c := plot.Chart{
		Title: "Hit rate by limit of cached bytes", Height: 220, X: plot.LogBytesAxis(m.Exact[0].Limit, most), Y: plot.PercentAxis(),
		Marks: []plot.Mark{{X: float64(m.Knee.Limit), Label: "knee: " + cacheLimitText(m.Knee), Class: "knee"}},
	}
	if m.Present > 0 && m.Present <= most {
		c.Marks = append(c.Marks, plot.Mark{X: float64(m.Present), Label: "present limit: " + bytesText(m.Present), Class: "change"})
	}
	line := plot.Curve{Class: "s0"}
	for _, e := range m.Exact {
		at := float64(min(e.Limit, most))
		line.X, line.Y = append(line.X, at), append(line.Y, e.HitRate)
		c.Points = append(c.Points, plot.Point{
			X: at, Y: e.HitRate, Low: e.HitRate, High: e.HitRate, Class: "s0",
			Label: fmt.Sprintf("%s: %s, at most %s reserved", cacheLimitText(e), rateText(e.HitRate, m.Requests), bytesText(e.PeakReserved)),
		})
	}
	c.Curves = []plot.Curve{line}
	s.Intro = fmt.Sprintf("Poolable creates served without a driver create, by max_cached_bytes in each process, with %s: "+
		"replays of the whole recording%s. The knee is at %s with %s; %s is enough for %s.", m.Policy, poollessNote(m, v.a), cacheLimitText(m.Knee),
		rateText(m.Knee.HitRate, m.Requests), cacheLimitText(m.Enough), rateText(m.Enough.HitRate, m.Requests))
	s.Plots = []htmlPlot{{Title: "hits of all requests", SVG: c.DrawSVG()}}
	return s
}
