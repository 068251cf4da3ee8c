package report

import (
	"fmt"
	"math"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func (v *view) costsSection() section {
	s := section{Title: "Cost of driver calls"}
	if v.isAttached() && v.a.CreateCost.Calls+v.a.CopyCost.Calls > 0 {
		s.Notes = []string{"includes the time of the probes, some µs a call; releases are not timed"}
	}
	for _, c := range []struct {
		name, title string
		curve       *analysis.CostCurve
	}{
		{"creates", "creates", &v.a.CreateCost}, {"copying", "creates that copy", &v.a.CopyCost}, {"releases", "releases", &v.a.ReleaseCost},
	} {
		if c.curve.Calls == 0 {
			continue
		}
		s.addFact(c.name, callCostText(c.curve))
		t := v.newTable("", 0, numberColumn("mean size"), numberColumn("calls"), numberColumn("p25"), numberColumn("median"),
			numberColumn("p75"), wordsColumn(""))
		t.heading = c.title
		for i := range c.curve.Points {
			p := &c.curve.Points[i]
			t.addRow(v.bytesCell(p.Size), v.countCell(p.Calls), v.durationCell(p.P25), v.durationCell(p.P50), v.durationCell(p.P75), cell{})
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}

// callCostText says how long calls take: a + b·size, b per MiB, if a line describes them, else the median.
func callCostText(c *analysis.CostCurve) string {
	if !c.LineFits() {
		text := fmt.Sprintf("%s (%s)", medianCostText(c), units.Plural(c.Calls, "call", "calls"))
		if c.Calls >= stats.EnoughForP99 {
			text += ", p99 " + units.Duration(c.P99)
		}
		return text
	}
	return fmt.Sprintf("%s + %s per MiB; R² %.2f; %d measured, %s", units.DurationOfComputed(c.A), units.DurationOfComputed(c.B*(1<<20)), c.R2,
		c.Calls, stats.SpreadText(c.Calls, units.Duration(c.P50), units.Duration(c.P99)))
}

// medianCostText describes calls that no line describes.
func medianCostText(c *analysis.CostCurve) string {
	median := units.Duration(c.P50)
	if c.Calls > 1 {
		median = "median " + median
	}
	if c.HasOneSize() {
		return median
	}
	return "no line fits: " + median
}

// chartWidth is the width of a chart in a text, columns, beside its name and most.
func (v *view) chartWidth() int { return max(10, min(60, v.o.lineWidth()-40)) }

func (v *view) overTimeSection() section {
	l := &v.a.Timeline
	if len(l.InUse) == 0 {
		return section{}
	}
	line := func(name string, values []float64, text func(float64) string) string {
		bars, most := drawBars(values, v.chartWidth())
		return fmt.Sprintf("%-14s %s  at most %s", name, bars, text(most))
	}
	sampled := func(name string, values []float64, text func(float64) string) string { // at the ends of the steps alone
		return strings.Replace(line(name, values, text), "  at most ", "  samples up to ", 1)
	}
	bytes := func(v float64) string { return units.FormatLong(uint64(v)) }
	rate := func(v float64) string { return units.Percent(v, 1) }
	chart := []string{line(figures.InUse.Name, floatsOf(l.InUse), bytes)}
	if !v.isAttached() {
		chart = append(chart, line(figures.Cached.Name, floatsOf(l.MostCached), bytes))
		if idle := floatsOf(l.Idle); anyNonZero(idle) {
			chart = append(chart, sampled(figures.Idle.Name, idle, bytes))
		}
		if cooling := floatsOf(l.MostCooling); anyNonZero(cooling) {
			chart = append(chart, line(figures.Cooling.Name, cooling, bytes))
		}
		chart = append(chart, sampled("fragmentation", l.Fragmentation, rate), sampled(figures.Waste.Name, l.Waste, rate))
	}
	for _, m := range l.Machine {
		chart = append(chart, sampled(stats.MachineWord(m.Source), floatsOf(m.Values), bytes))
	}
	half := v.chartWidth() / 2
	return section{Title: "Over time", Chart: append(chart,
		fmt.Sprintf("%-14s %-*s%*s", "", half, v.clockText(l.Start), v.chartWidth()-half, v.clockText(min(l.Start+l.Step*uint64(len(l.InUse)), max(l.Start, v.sinceStart(v.s.Time))))),
	)}
}

func floatsOf(values []uint64) []float64 {
	floats := make([]float64, len(values))
	for i, v := range values {
		floats[i] = float64(v)
	}
	return floats
}

// drawBars draws the largest value of each column as a bar. The largest of all has the full height.
func drawBars(values []float64, width int) (drawn string, most float64) {
	const heights = "▁▂▃▄▅▆▇█"
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	for i := range width {
		if len(values) == 0 {
			break
		}
		from, to := i*len(values)/width, (i+1)*len(values)/width
		column := 0.0
		for _, v := range values[from:max(to, from+1)] {
			column = max(column, v)
		}
		if column <= 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune([]rune(heights)[min(int(column/most*8), 7)])
	}
	return b.String(), most
}

func (v *view) sizesSection() section {
	s := section{Title: "Sizes and lifetimes"}
	for _, h := range []struct {
		title string
		bins  []analysis.Bin
		text  func(uint64) string
	}{
		{v.memoryNoun() + "s, by requested size", v.a.Sizes, units.Format},
		{v.memoryNoun() + "s that were released, by lifetime", v.a.Lifetimes, units.Duration},
	} {
		if len(h.bins) == 0 {
			continue
		}
		t := v.newTable("", 0, numberColumn("from"), numberColumn(v.memoryNoun()+"s"), numberColumn("bytes"), wordsColumn(""))
		t.heading = h.title
		var most uint64
		for i := range h.bins {
			most = max(most, h.bins[i].Count)
		}
		for i := range h.bins {
			bin := &h.bins[i]
			bar := math.Ceil(float64(min(40, v.o.lineWidth()-34)) * float64(bin.Count) / float64(most))
			t.addRow(cell{Text: h.text(bin.From)}, v.countCell(bin.Count), v.bytesCell(bin.Bytes),
				cell{Text: strings.Repeat("█", int(bar))})
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}

// memorySharesSection compares buckets, kinds of memory and classes, if there are several.
func (v *view) memorySharesSection() section {
	s := section{Title: "Buckets and classes"}
	list := func(heading, last string, least, n int, share func(i int) (*stats.Share, string)) {
		if n < least {
			return
		}
		t := v.newTable("", n, atEndColumn, numberColumn("cached").withPoolOnly(), figureColumn(figures.BlocksCached),
			figureColumn(figures.Creates),
			figureColumn(figures.Hits), figureColumn(figures.Misses), figureColumn(figures.HitRate), wordsColumn(last))
		t.heading = heading
		for i := range v.countRowsToShow(n) {
			r, what := share(i)
			v.addFigureRow(&t, func(f *figures.Figure) figures.Value { return f.ValueOfShare(r) }, v.bytesCell(r.Cached+r.Cooling), cell{Text: what})
		}
		s.Tables = append(s.Tables, t)
	}
	list("buckets", "granted", 2, len(v.s.Buckets), func(i int) (*stats.Share, string) {
		return &v.s.Buckets[i].Share, "from " + units.Format(v.s.Buckets[i].Smallest)
	})
	kinds := 2
	if len(v.s.Kinds) == 1 && v.s.Kinds[0].Memory != wire.MemoryBuffer {
		kinds = 1
	}
	list("kinds", "kind", kinds, len(v.s.Kinds), func(i int) (*stats.Share, string) { return &v.s.Kinds[i].Share, v.s.Kinds[i].Memory.WordsForCreated() })
	list("classes", "class", 2, len(v.s.Classes), func(i int) (*stats.Share, string) { return &v.s.Classes[i].Share, v.s.Classes[i].Name })
	return s
}
