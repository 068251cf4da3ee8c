package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/report/plot"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	htmlSeries = 8   // call sites with a colour of their own: more colours look alike
	htmlBands  = 60  // phases that are shaded
	nearLimit  = 0.5 // least part of the device's memory in use for which a line shows its size
)

// layer is a series with its name and the class of its colour.
type layer struct {
	name, class string
	values      []float64
}

// plotData is the data of a chart over time, for the script.
type plotData struct {
	Start  uint64       `json:"start"`
	Step   uint64       `json:"step"`
	Unit   string       `json:"unit"` // "bytes" or "rate"
	Total  string       `json:"total,omitempty"`
	Series []plotSeries `json:"series"`
}

type plotSeries struct {
	Name   string     `json:"name"`
	Class  string     `json:"class"`
	Values []*float64 `json:"values"` // null: unknown
}

// timelinePointCount returns the number of points of the timeline.
func (v *view) timelinePointCount() int { return min(len(v.a.Timeline.InUse), analysis.PointsMax) }

func (v *view) timeAxis() plot.Axis {
	t := &v.a.Timeline
	return plot.TimesAxis(t.Start, t.Start+uint64(v.timelinePointCount())*max(t.Step, 1))
}

// seriesOfTimeline converts values to a series as long as the timeline.
func (v *view) seriesOfTimeline(values []uint64) []float64 {
	floats := make([]float64, v.timelinePointCount())
	for i := range min(len(floats), len(values)) {
		floats[i] = float64(values[i])
	}
	return floats
}

// colouredLayers gives colours to the first call sites and sums up the others. If there is a total, the others include the part
// of it that no call site holds.
func (v *view) colouredLayers(series []analysis.Series, total []uint64) []layer {
	shownSeries := min(len(series), htmlSeries)
	if len(series) == htmlSeries+1 {
		shownSeries++ // the others would be just one call site
	}
	layers := make([]layer, 0, shownSeries+1)
	rest := layer{name: "others", class: "rest", values: make([]float64, v.timelinePointCount())}
	sum := make([]float64, v.timelinePointCount())
	for i, s := range series {
		values := v.seriesOfTimeline(s.Values)
		for j, value := range values {
			sum[j] += value
			if i >= shownSeries {
				rest.values[j] += value
			}
		}
		if i < shownSeries {
			layers = append(layers, layer{cleanName(s.Name), fmt.Sprintf("s%d", i), values})
		}
	}
	for j, whole := range v.seriesOfTimeline(total) {
		rest.values[j] += max(0, whole-sum[j])
	}
	if anyNonZero(rest.values) {
		layers = append(layers, rest)
	}
	return layers
}

func anyNonZero(values []float64) bool {
	return slices.ContainsFunc(values, func(value float64) bool { return value > 0 })
}

// stackLayers returns the areas, the legend and the data of layers, and the highest sum.
func (v *view) stackLayers(layers []layer) (areas []plot.Series, legend []htmlLegend, data *plotData, highest float64) {
	data = &plotData{Start: v.a.Timeline.Start, Step: v.a.Timeline.Step, Unit: "bytes", Total: "sum", Series: []plotSeries{}}
	sum := make([]float64, v.timelinePointCount())
	for _, l := range layers {
		areas = append(areas, plot.Series{Class: l.class, Values: l.values})
		legend = append(legend, htmlLegend{l.class, l.name})
		data.addValues(l.name, l.class, l.values, nil)
		for i, value := range l.values {
			sum[i] += value
			highest = max(highest, sum[i])
		}
	}
	return areas, legend, data, highest
}

func (d *plotData) addValues(name, class string, values []float64, known []bool) {
	s := plotSeries{name, class, make([]*float64, len(values))}
	for i := range values {
		if (known == nil || known[i]) && !math.IsNaN(values[i]) && !math.IsInf(values[i], 0) {
			rounded := math.Round(values[i]*1e4) / 1e4
			s.Values[i] = &rounded
		}
	}
	d.Series = append(d.Series, s)
}

// jsonText writes the data as JSON.
func (d *plotData) jsonText() string {
	text, err := json.Marshal(d)
	if err != nil {
		return "" // the chart has no read-out: a value is no number
	}
	return string(text)
}

func (v *view) memorySection() section {
	s := section{ID: "memory", Title: "Memory over time"}
	if v.timelinePointCount() == 0 {
		s.Intro = "Nothing was recorded over time."
		return s
	}
	t := &v.a.Timeline
	layers := v.colouredLayers(t.Tags, t.InUse)
	cached, idle := v.seriesOfTimeline(t.Cached), v.seriesOfTimeline(t.Idle)
	for i := range cached {
		idle[i] = min(idle[i], cached[i]) // idle and cached are of different times within a step
		cached[i] -= idle[i]
	}
	for _, l := range []layer{{figures.Cached.Name, "cached", cached}, {figures.Idle.Name, "idle", idle}, {figures.Cooling.Name, "cooling", v.seriesOfTimeline(t.Cooling)}} {
		if anyNonZero(l.values) {
			layers = append(layers, l)
		}
	}
	areas, legend, data, highest := v.stackLayers(layers)
	title, pool := "Memory in use by call site, cached and cooling, over time", ", then what is cached, idle and cooling in the pool: together what is reserved"
	if v.a.Run.Header.Attached {
		title, pool = "Memory in use by call site over time", ""
	}
	c := plot.Chart{Title: title, Height: 300, X: v.timeAxis(), Areas: areas, Data: data.jsonText()}
	note := v.drawDeviceMemoryRule(&c, &highest)
	c.Y = plot.BytesAxis(uint64(highest))
	c.Bands, c.Marks = v.phaseBands(), v.chartMarks()
	s.Intro = "In use by call site" + pool + ". Each step shows its moment of highest use. " + v.phaseBandsText()
	s.Plots = []htmlPlot{{Title: "bytes", Note: note, SVG: c.DrawSVG(), Legend: legend}}
	if p, reported := v.machinePlot(); reported {
		s.Plots = append(s.Plots, p)
	}
	return s
}

// machinePlot draws the machine's figures beside reserved memory; false if none of them changes.
func (v *view) machinePlot() (htmlPlot, bool) {
	t := &v.a.Timeline
	if len(t.Machine) == 0 {
		return htmlPlot{}, false
	}
	reserved := layer{figures.Reserved.Name, "s5", v.seriesOfTimeline(t.InUse)}
	for _, more := range [][]uint64{t.Cached, t.Cooling} {
		for i, value := range v.seriesOfTimeline(more) {
			reserved.values[i] += value
		}
	}
	lines := []layer{reserved}
	for i, m := range t.Machine {
		lines = append(lines, layer{stats.MachineWord(cleanName(m.Source)), fmt.Sprintf("s%d", i), v.seriesOfTimeline(m.Values)})
	}
	data := plotData{Start: t.Start, Step: t.Step, Unit: "bytes"}
	c := plot.Chart{Title: "What the machine reports, and what is reserved, over time", X: v.timeAxis()}
	var legend []htmlLegend
	highest := 0.0
	for _, l := range lines {
		c.Lines = append(c.Lines, plot.Series{Class: l.class, Values: l.values})
		data.addValues(l.name, l.class, l.values, nil)
		legend = append(legend, htmlLegend{l.class, l.name})
		highest = max(highest, slices.Max(l.values))
	}
	c.Y, c.Data = plot.BytesAxis(uint64(highest)), data.jsonText()
	return htmlPlot{Title: "what the machine reports", SVG: c.DrawSVG(), Legend: legend}, true
}

// drawDeviceMemoryRule draws the device's memory if it is near enough, and makes room for it; otherwise it returns a note.
func (v *view) drawDeviceMemoryRule(c *plot.Chart, highest *float64) string {
	limit, what := v.a.Run.Header.DeviceMemory, "simulated device memory"
	if limit == 0 {
		limit, what = v.s.Device.Global, "device memory"
	}
	switch {
	case limit == 0:
		return ""
	case *highest < nearLimit*float64(limit):
		return fmt.Sprintf("%s %s, far above", what, bytesText(limit))
	}
	*highest = max(*highest, float64(limit))
	c.Rules = append(c.Rules, plot.Rule{Value: float64(limit), Label: what + " " + bytesText(limit), Class: "limit"})
	return ""
}

// placesOfMainPhases returns the places of the phases of the thread with the most iterations: phases of several threads may overlap
// and would hide each other.
func (v *view) placesOfMainPhases() (places []int, threads int) {
	type thread struct{ process, number uint32 }
	repeats := map[thread]uint64{}
	var most thread
	for i := range v.a.Phases {
		p := &v.a.Phases[i]
		of := thread{p.Process, p.Thread}
		if repeats[of] += p.Iterations; i == 0 || repeats[of] > repeats[most] {
			most = of
		}
	}
	for i := range v.a.Phases {
		if p := &v.a.Phases[i]; (thread{p.Process, p.Thread}) == most {
			places = append(places, i)
		}
	}
	return places, len(repeats)
}

func (v *view) phaseBands() []plot.Band {
	places, _ := v.placesOfMainPhases()
	var bands []plot.Band
	for n, i := range places[:min(len(places), htmlBands)] {
		p := &v.a.Phases[i]
		bands = append(bands, plot.Band{
			From: float64(p.Start), To: float64(p.End), Name: fmt.Sprintf("phase %d", i+1), Label: phaseText(i, p), Class: [...]string{"even", "odd"}[n%2],
		})
	}
	return bands
}

func (v *view) phaseBandsText() string {
	places, threads := v.placesOfMainPhases()
	if len(places) < 2 { // a single phase has only a name
		return ""
	}
	text := "Shaded: every other phase"
	if n := len(places); n > htmlBands {
		text = fmt.Sprintf("Shaded: every other one of the first %d of %d phases", htmlBands, n)
	}
	if threads > 1 {
		text += fmt.Sprintf(" of the busiest of %d threads", threads)
	}
	return text + "."
}

func phaseText(i int, p *analysis.Phase) string {
	if p.Iterations == 0 {
		return fmt.Sprintf("phase %d: nothing repeats", i+1)
	}
	text := fmt.Sprintf("phase %d: %s", i+1, thingsText(p.Iterations, "iteration"))
	if p.IsMedianTypical() {
		text += " of " + durationText(p.Period)
	}
	return text
}

// markClasses are the kinds of marks that charts show.
var markClasses = map[wire.Kind]string{wire.KindLimit: "change", wire.KindDiag: "mistake", wire.KindLost: "lost", wire.KindExit: "exit"}

func (v *view) chartMarks() []plot.Mark {
	var marks []plot.Mark
	t := &v.a.Timeline
	end := t.Start + uint64(v.timelinePointCount())*max(t.Step, 1)
	for i := range v.s.Marks[:min(len(v.s.Marks), stats.MarksMax)] {
		m := &v.s.Marks[i]
		at := v.sinceStart(m.Time)
		if class, drawn := markClasses[m.Kind]; drawn && at >= t.Start && at <= end {
			marks = append(marks, plot.Mark{X: float64(at), Label: durationText(at) + ": " + cleanName(m.Text), Class: class})
		}
	}
	return marks
}

func (v *view) hitRateSection() section {
	if v.isAttached() {
		return section{}
	}
	s := section{ID: "hit-rate", Title: "Hit rate over time"}
	t, n := &v.a.Timeline, min(v.timelinePointCount(), len(v.a.Timeline.Hits), len(v.a.Timeline.Misses))
	values, known, requests := make([]float64, n), make([]bool, n), uint64(0)
	for i := range n {
		if all := t.Hits[i] + t.Misses[i]; all > 0 {
			values[i], known[i] = float64(t.Hits[i])/float64(all), true
			requests += all
		}
	}
	if requests == 0 {
		s.Intro = "No request could have been served from the pool."
		return s
	}
	data, class := plotData{Start: t.Start, Step: t.Step, Unit: "rate"}, "s0"
	data.addValues(figures.HitRate.Name, class, values, known)
	if isLineShort(known) {
		class += " sparse"
	}
	c := plot.Chart{Title: "Hit rate over time", X: v.timeAxis(), Y: plot.PercentAxis(), Bands: v.phaseBands(), Marks: v.chartMarks(),
		Lines: []plot.Series{{Class: class, Values: values, Known: known}}, Data: data.jsonText()}
	s.Intro = "Poolable creates served without a driver create. There is no line where there was no request."
	s.Plots = []htmlPlot{{Title: "hits of all requests", SVG: c.DrawSVG()}}
	return s
}

// isLineShort reports whether a line has too few steps to be seen easily.
func isLineShort(known []bool) bool {
	n := 0
	for _, k := range known {
		if k {
			n++
		}
	}
	return n < len(known)/4
}

func (v *view) freeListSection() section {
	if v.isAttached() {
		return section{}
	}
	s := section{ID: "free-list", Title: "Free list over time"}
	layers := v.colouredLayers(v.a.Timeline.Free, nil)
	areas, legend, data, highest := v.stackLayers(layers)
	if highest == 0 {
		if s.Intro = "Nothing was ever free in the pool."; v.s.Totals.PeakCached+v.s.Totals.PeakCooling > 0 {
			s.Intro = "In no step was anything free in the pool when use was highest."
		}
		return s
	}
	c := plot.Chart{Title: "Free memory in the pool by the call site that used it last, over time", X: v.timeAxis(),
		Y: plot.BytesAxis(uint64(highest)), Areas: areas, Bands: v.phaseBands(), Marks: v.chartMarks(), Data: data.jsonText()}
	s.Intro = "Free memory in the pool, cached and cooling, by the call site that used it last."
	s.Plots = []htmlPlot{{Title: "bytes", SVG: c.DrawSVG(), Legend: legend}}
	return s
}

func (v *view) fragmentationSection() section {
	if v.isAttached() {
		return section{}
	}
	s := section{ID: "fragmentation", Title: "Fragmentation and waste over time"}
	t := &v.a.Timeline
	n := min(v.timelinePointCount(), len(t.Fragmentation), len(t.Waste))
	if n == 0 {
		s.Intro = "Nothing was recorded over time."
		return s
	}
	data := plotData{Start: t.Start, Step: t.Step, Unit: "rate"}
	var legend []htmlLegend
	c := plot.Chart{Title: "External fragmentation and waste over time", X: v.timeAxis(), Y: plot.PercentAxis()}
	for _, l := range []layer{{figures.ExternalFragmentation.Name, "s0", t.Fragmentation[:n]}, {figures.Waste.Name, "s5", t.Waste[:n]}} {
		c.Lines = append(c.Lines, plot.Series{Class: l.class, Values: l.values})
		data.addValues(l.name, l.class, l.values, nil)
		legend = append(legend, htmlLegend{l.class + " stroke", l.name})
	}
	c.Data, c.Bands, c.Marks = data.jsonText(), v.phaseBands(), v.chartMarks()
	s.Intro = "External fragmentation: 1 − largest cached block / all cached bytes. Waste: granted but not requested, of what is in use."
	s.Plots = []htmlPlot{{Title: "rate", SVG: c.DrawSVG(), Legend: legend}}
	return s
}
