package report

import (
	"fmt"
	"math"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func (v *view) temporaries() section {
	if len(v.a.Temporaries) == 0 {
		return section{}
	}
	rows, left := top(v, v.a.Temporaries)
	t := table{columns: []string{"temporary", "creates", "bytes", "life p50", "driver", "tag"}, left: left, thing: "tag"}
	for i := range rows {
		r := &rows[i]
		t.add(fmt.Sprint(r.Buffers), fmt.Sprint(r.Creates), size.Format(r.Bytes), plain.Duration(r.LifeP50),
			plain.Duration(r.DriverNS), plain.Clean(r.Name))
	}
	return section{heading: "temporary buffers, by tag", tables: []table{t}}
}

func (v *view) phases() section {
	if len(v.a.Phases) == 0 {
		return section{}
	}
	rows, left := top(v, v.a.Phases)
	t := table{columns: []string{"from", "to", "iterations", "period", "creates", "growth", "peak", "process, thread"}, left: left}
	for i := range rows {
		p := &rows[i]
		cells := []string{v.clock(p.Start), v.clock(p.End), "0", "-", "-", "-", size.Format(p.PeakInUse), ""}
		if p.Iterations > 0 {
			cells = []string{
				v.clock(p.Start), v.clock(p.End), fmt.Sprint(p.Iterations), plain.Duration(p.Period), fmt.Sprint(p.Creates),
				growth(p.Growth), size.Format(p.PeakInUse), fmt.Sprintf("#%d, %d", p.Process, p.Thread),
			}
		}
		t.add(cells...)
	}
	return section{heading: "phases", tables: []table{t}}
}

// growth writes a difference of sizes.
func growth(bytes int64) string {
	if bytes < 0 {
		return "-" + size.Format(uint64(-bytes))
	}
	if bytes > 0 {
		return "+" + size.Format(uint64(bytes))
	}
	return "0"
}

func (v *view) costs() section {
	s := section{heading: "what the driver's calls cost"}
	if v.attached() && v.a.CreateCost.Calls+v.a.CopyCost.Calls > 0 {
		s.notes = []string{"the probes' own time is in it, some µs a call; releases are not timed"}
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
		s.facts = append(s.facts, [2]string{c.name, fmt.Sprintf("%s; R² %.2f; %d measured, p50 %s, p99 %s", costLine(c.curve),
			c.curve.R2, c.curve.Calls, plain.Duration(c.curve.P50), plain.Duration(c.curve.P99))})
		t := table{title: c.title, columns: []string{"mean size", "calls", "mean", "deviation", ""}}
		for i := range c.curve.Points {
			p := &c.curve.Points[i]
			t.add(size.Format(p.Size), fmt.Sprint(p.Calls), duration(p.NS), duration(p.StdDev), "")
		}
		s.tables = append(s.tables, t)
	}
	return s
}

// duration writes one that is no whole number, and that a line may take below 0.
func duration(ns float64) string {
	if ns < 0 {
		return "-" + plain.Duration(uint64(math.Round(-ns)))
	}
	return plain.Duration(uint64(math.Round(ns)))
}

// costLine writes a + b·size, b per MiB.
func costLine(c *analysis.CostCurve) string {
	perMiB := c.B * (1 << 20)
	if perMiB < 0 {
		return fmt.Sprintf("%s - %s per MiB", duration(c.A), duration(-perMiB))
	}
	return fmt.Sprintf("%s + %s per MiB", duration(c.A), duration(perMiB))
}

func (v *view) lag() section {
	l := &v.a.Lag
	s := section{heading: "lag, from last use to release"}
	if l.Known+l.Unused == 0 {
		if v.t.Uses == 0 && v.t.Releases > 0 {
			s.notes = []string{"unknown: uses were not recorded"}
		}
		return s
	}
	s.facts = [][2]string{{"all", fmt.Sprintf("%s, p50 %s, p99 %s, %s × s held for nothing; %d never used", plain.Count(l.Known, "buffer"),
		plain.Duration(l.P50), plain.Duration(l.P99), byteSeconds(l.ByteSeconds), l.Unused)}}
	rows, left := top(v, l.Tags)
	if len(rows) == 0 {
		return s
	}
	t := table{columns: []string{"bytes × s", "buffers", "p50", "p99", "tag"}, left: left, thing: "tag"}
	for i := range rows {
		r := &rows[i]
		t.add(byteSeconds(r.ByteSeconds), fmt.Sprint(r.Known), plain.Duration(r.P50), plain.Duration(r.P99), plain.Clean(r.Name))
	}
	s.tables = []table{t}
	return s
}

func byteSeconds(v float64) string { return size.FormatLong(uint64(min(v, 1<<62))) }

// chartWidth is how many columns of a text show the run.
const chartWidth = 60

func (v *view) overTime() section {
	l := &v.a.Timeline
	if len(l.InUse) == 0 {
		return section{}
	}
	free := make([]float64, len(l.Cached))
	inUse := make([]float64, len(l.InUse))
	for i := range free {
		inUse[i], free[i] = float64(l.InUse[i]), float64(l.Cached[i]+l.Cooling[i])
	}
	line := func(name string, values []float64, text func(float64) string) string {
		bars, most := bars(values)
		return fmt.Sprintf("%-14s %s  at most %s", name, bars, text(most))
	}
	bytes := func(v float64) string { return size.FormatLong(uint64(v)) }
	rate := func(v float64) string { return plain.Percent(v, 1) }
	chart := []string{line("in use", inUse, bytes)}
	if !v.attached() {
		chart = append(chart, line("free", free, bytes), line("fragmentation", l.Fragmentation, rate), line("waste", l.Waste, rate))
	}
	return section{heading: "over time", chart: append(chart,
		fmt.Sprintf("%-14s %-30s%30s", "", v.clock(l.Start), v.clock(min(l.Start+l.Step*uint64(len(l.InUse)), max(l.Start, v.s.Time-min(v.s.Started, v.s.Time))))),
	)}
}

// bars draws the most of each column as a bar whose full height is the most of all.
func bars(values []float64) (drawn string, most float64) {
	const heights = "▁▂▃▄▅▆▇█"
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	for i := range chartWidth {
		from, to := i*len(values)/chartWidth, (i+1)*len(values)/chartWidth
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

func (v *view) sizes() section {
	s := section{heading: "sizes and lifetimes"}
	for _, h := range []struct {
		title, column string
		bins          []analysis.Bin
		text          func(uint64) string
	}{
		{"buffers, by size asked for", "from", v.a.Sizes, size.Format},
		{"buffers that were released, by lifetime", "from", v.a.Lifetimes, plain.Duration},
	} {
		if len(h.bins) == 0 {
			continue
		}
		t := table{title: h.title, columns: []string{h.column, "buffers", "bytes", ""}}
		var most uint64
		for i := range h.bins {
			most = max(most, h.bins[i].Count)
		}
		for i := range h.bins {
			bin := &h.bins[i]
			t.add(h.text(bin.From), fmt.Sprint(bin.Count), size.Format(bin.Bytes),
				strings.Repeat("█", int(math.Ceil(40*float64(bin.Count)/float64(most)))))
		}
		s.tables = append(s.tables, t)
	}
	return s
}

// poolColumns are those of a table about shares or processes that say nothing where there is no pool.
var poolColumns = []string{"cached", "blocks", "hits", "misses", "hit rate"}

var shareColumns = []string{"in use", "cached", "blocks", "creates", "hits", "misses", "hit rate"}

func shareCells(s *model.Share, what string) []string {
	return []string{
		size.Format(s.InUse), size.Format(s.Cached + s.Cooling), fmt.Sprint(s.Blocks), fmt.Sprint(s.Creates), fmt.Sprint(s.Hits),
		fmt.Sprint(s.Misses), plain.Percent(s.HitRate(), s.Hits+s.Misses), what,
	}
}

// leavePoolsOut drops what says nothing of programs that were only watched.
func (v *view) leavePoolsOut(t *table) {
	if v.attached() {
		t.drop(poolColumns...)
	}
}

// classes tells buckets and classes apart, where there are several.
func (v *view) classes() section {
	s := section{heading: "buckets and classes"}
	if len(v.s.Buckets) > 1 {
		rows, left := top(v, v.s.Buckets)
		t := table{title: "buckets", columns: append(shareColumns[:7:7], "granted"), left: left}
		for i := range rows {
			t.add(shareCells(&rows[i].Share, "from "+size.Format(rows[i].Smallest))...)
		}
		v.leavePoolsOut(&t)
		s.tables = append(s.tables, t)
	}
	if len(v.s.Classes) > 1 {
		rows, left := top(v, v.s.Classes)
		t := table{title: "classes", columns: append(shareColumns[:7:7], "class"), left: left}
		for i := range rows {
			t.add(shareCells(&rows[i].Share, rows[i].Name)...)
		}
		v.leavePoolsOut(&t)
		s.tables = append(s.tables, t)
	}
	return s
}

func (v *view) processes() section {
	if len(v.s.Processes) < 2 {
		return section{}
	}
	rows, left := top(v, plain.ProcessesByPeak(v.s.Processes))
	t := table{columns: []string{"pid", "creates", "hits", "hit rate", "peak", "in use", "ended", "program"}, left: left}
	for _, p := range rows {
		r := &p.Totals
		t.add(fmt.Sprint(p.PID), fmt.Sprint(r.Creates), fmt.Sprint(r.Hits), plain.Percent(r.HitRate(), r.Hits+r.Misses),
			size.Format(r.PeakInUse), size.Format(r.InUse), plain.Ended(p), plain.ProgramName(p.Program))
	}
	v.leavePoolsOut(&t)
	return section{heading: "processes, by peak", tables: []table{t}}
}

// mistakes lists the findings; nothing when there are none.
func (v *view) mistakes() section {
	if len(v.s.Findings) == 0 {
		return section{}
	}
	s := section{heading: "mistakes of the program"}
	shown, left := top(v, v.s.Findings)
	stale := false
	for i := range v.s.Findings {
		kind := v.s.Findings[i].Kind
		stale = stale || kind == wire.DiagStaleRead || kind == wire.DiagStaleArgument
	}
	for i := range shown {
		f := &shown[i]
		s.items = append(s.items, plain.Clean(v.clockOf(f.First)+" "+f.Text(size.FormatLong)))
	}
	if left > 0 {
		s.notes = append(s.notes, fmt.Sprintf("and %d more", left))
	}
	if v.s.OtherFindings > 0 {
		s.notes = append(s.notes, "and "+plain.Count(v.s.OtherFindings, "other")+" that came when this list was full")
	}
	if stale {
		s.notes = append(s.notes, "(Of kernels only their arguments are known: one that may write an argument counts as having written it.)")
	}
	return s
}

func (v *view) happened() section {
	if len(v.s.Marks) == 0 {
		return section{}
	}
	t := table{columns: []string{"time", "what", ""}}
	for _, mark := range v.s.Marks {
		t.add(v.clockOf(mark.Time), mark.Kind.String(), plain.Clean(mark.Text))
	}
	s := section{heading: "what happened", tables: []table{t}}
	if len(v.s.Marks) == model.MarksMax {
		s.notes = []string{fmt.Sprintf("(the last %d)", model.MarksMax)}
	}
	return s
}
