package report

import (
	"fmt"
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/report/plot"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// drawHistogram draws bins between powers of two.
func drawHistogram(title string, bins []analysis.Bin, axis func(least, most uint64) plot.Axis, text func(uint64) string) htmlPlot {
	var most, all uint64
	for _, b := range bins {
		most, all = max(most, b.Count), all+b.Count
	}
	first, last := bins[0].From, bins[len(bins)-1].To
	c := plot.Chart{Title: title, X: axis(max(first, 1), max(last, 1)), Y: plot.CountsAxis(most)}
	for _, b := range bins {
		c.Bars = append(c.Bars, plot.Bar{
			From: float64(max(b.From, 1)), To: float64(max(b.To, 1)) + 1, Value: float64(b.Count), Class: "s0",
			Label: fmt.Sprintf("%s to %s: %s, %s, %s together", text(b.From), text(b.To), thingsText(b.Count, "buffer"),
				rateText(float64(b.Count)/float64(max(all, 1)), all), bytesText(b.Bytes)),
		})
	}
	return htmlPlot{Title: "buffers", SVG: c.DrawSVG()}
}

// binsToDraw bounds the bins of a histogram: 0, and at most 64 powers of two.
func binsToDraw(bins []analysis.Bin) []analysis.Bin { return bins[:min(len(bins), 65)] }

func (v *view) sizeChartSection() section {
	s := section{ID: "sizes", Title: "Requested sizes"}
	bins := binsToDraw(v.a.Sizes)
	if len(bins) == 0 {
		s.Intro = "No buffer was created."
		return s
	}
	s.Intro = "Buffers created, by size; each bar is a power of two and the sizes up to the next."
	s.Plots = []htmlPlot{drawHistogram("Buffers created by size", bins, plot.LogBytesAxis, bytesText)}
	return s
}

func (v *view) lifetimeChartSection() section {
	s := section{ID: "lifetimes", Title: "Lifetimes"}
	bins := binsToDraw(v.a.Lifetimes)
	if len(bins) == 0 {
		s.Intro = "No buffer was released."
		return s
	}
	s.Intro = "Buffers that were released, by how long they lived."
	s.Plots = []htmlPlot{drawHistogram("Released buffers by lifetime", bins, plot.LogTimesAxis, durationText)}
	return s
}

func (v *view) costChartsSection() section {
	s := section{ID: "driver", Title: "Cost of driver calls"}
	for _, of := range []struct {
		name  string
		curve *analysis.CostCurve
	}{{"creates", &v.a.CreateCost}, {"creates that copy", &v.a.CopyCost}, {"releases", &v.a.ReleaseCost}} {
		if len(of.curve.Points) > 0 {
			s.Plots = append(s.Plots, costPlot(of.name, of.curve))
		}
	}
	s.Intro = "Each dot is the median of the calls of one power of two, with half of them on its line (p25 to p75); the line is the least-squares fit a + b·size of all calls, where it explains half of their variance."
	if len(s.Plots) == 0 {
		s.Intro = "No driver call was measured."
	}
	return s
}

// costLineText writes the fitted line, or the median where no line fits.
func costLineText(c *analysis.CostCurve) string {
	if !c.LineFits() {
		text := medianCostText(c) + "; " + thingsText(c.Calls, "call")
		if c.Calls >= stats.EnoughForP99 {
			text += ", p99 " + durationText(c.P99)
		}
		return text
	}
	return fmt.Sprintf("%s + %s per MiB · size, R² %.3f; %s, %s", signedDuration(c.A), nanosText(c.B*(1<<20)), c.R2,
		thingsText(c.Calls, "call"), stats.SpreadText(c.Calls, durationText(c.P50), durationText(c.P99)))
}

func signedDuration(ns float64) string {
	if ns < 0 {
		return "−" + nanosText(-ns)
	}
	return nanosText(ns)
}

// curvePoints is the number of points of a fitted line, which is curved on logarithmic axes.
const curvePoints = 64

func costPlot(of string, curve *analysis.CostCurve) htmlPlot {
	points := curve.Points[:min(len(curve.Points), 65)]
	least, most := float64(points[0].P25), float64(points[0].P75)
	for _, p := range points {
		least, most = min(least, float64(p.P25)), max(most, float64(p.P75))
	}
	first, last := max(points[0].Size, 1), max(points[len(points)-1].Size, 1)
	c := plot.Chart{
		Title: "Duration of driver " + of + " by size: " + costLineText(curve), Height: 220,
		X: plot.LogBytesAxis(first/2+1, last*2-last/2), Y: plot.LogTimesAxis(uint64(max(least/1.5, 1)), uint64(max(most*1.5, 10))),
	}
	if curve.LineFits() {
		c.Curves = []plot.Curve{fittedLine(&c, curve)}
	}
	for _, p := range points {
		c.Points = append(c.Points, plot.Point{
			X: float64(p.Size), Y: float64(p.P50), Low: max(float64(p.P25), c.Y.Low), High: float64(p.P75), Class: "s0",
			Label: fmt.Sprintf("%s: median %s, half of %s from %s to %s", bytesText(p.Size), durationText(p.P50), thingsText(p.Calls, "call"),
				durationText(p.P25), durationText(p.P75)),
		})
	}
	return htmlPlot{Title: "driver " + of, Note: costLineText(curve), SVG: c.DrawSVG()}
}

func fittedLine(c *plot.Chart, curve *analysis.CostCurve) plot.Curve {
	fitted := plot.Curve{Class: "fit"}
	for i := range curvePoints + 1 {
		x := c.X.Low * math.Pow(c.X.High/c.X.Low, float64(i)/curvePoints)
		if y := curve.A + curve.B*x; y >= c.Y.Low && y <= c.Y.High {
			fitted.X, fitted.Y = append(fitted.X, x), append(fitted.Y, y)
		}
	}
	return fitted
}
