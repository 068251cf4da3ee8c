package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// drawTopLines draws header, numbers, gauge and, at full size, what the pool gains.
func (d *dashboard) drawTopLines(r region, s *stats.Snapshot, m size) {
	d.drawHeader(r, s)
	drawFields(r.subRegion(1, 1, r.w-2, 1), d.secondLineFields(s))
	d.drawGauge(r.subRegion(1, 2, r.w-2, 1), s)
	if m == full {
		drawFields(r.subRegion(1, 3, r.w-2, 1), d.poolGainFields(s))
	}
}

// field is a number in its place, which depends on the width of the terminal alone: whatever the values are, nothing moves and
// nothing comes or goes.
type field struct {
	rank  int // the field with the highest rank is left out first
	name  string
	value span
	w     int  // of the value
	key   bool // the name is a key
}

func (f *field) fieldWidth() int {
	if f.name == "" {
		return f.w
	}
	return textWidth(f.name) + 1 + f.w
}

// fieldGap is how many columns lie between two fields.
const fieldGap = 2

// fitFields drops fields until the rest fits w columns.
func fitFields(fields []field, w int) []field {
	for {
		n := -fieldGap
		for i := range fields {
			n += fieldGap + fields[i].fieldWidth()
		}
		if n <= w || len(fields) == 0 {
			return fields
		}
		fields = dropHighestRank(fields, func(f *field) int { return f.rank })
	}
}

// drawFields draws the fields that fit.
func drawFields(r region, fields []field) {
	x := 0
	for _, f := range fitFields(fields, r.w) {
		f.drawField(r, x, 0)
		x += f.fieldWidth() + fieldGap
	}
}

// drawField draws a field. A value that is too wide, as one with a sign before it, may take one of the blanks after it.
func (f *field) drawField(r region, x, y int) {
	st := dim
	if f.key {
		st = keyStyle
	}
	if r.writeText(x, y, f.name, st); f.name != "" {
		x += textWidth(f.name) + 1
	}
	r.writeTextInColumns(x, y, f.w+1, f.value.text, f.value.style)
}

// bytesField is a field with bytes.
func bytesField(rank int, name string, v uint64, sign string, st style) field {
	return field{rank: rank, name: name, value: span{sign + fewColumnsBytes(v), st}, w: bytesWide}
}

// fewColumnsBytes formats a size in at most bytesWide columns.
func fewColumnsBytes(v uint64) string {
	text := bytesText(v)
	if point := strings.IndexByte(text, '.'); textWidth(text) > bytesWide && point > 0 {
		text = text[:point] + text[len(text)-1:]
	}
	return text
}

// The widths of values.
const (
	bytesWide   = len("999.9M")
	percentWide = len("100.0%")
	shareWide   = len("100%")
	rateWide    = len("999.9k")
)

// narrowRateText writes a rate with two digits or three.
func narrowRateText(rate float64) string {
	if text := strconv.FormatFloat(100*max(0, min(rate, 1)), 'f', 1, 64); len(text) < shareWide {
		return text + "%"
	}
	return strconv.FormatFloat(100*max(0, min(rate, 1)), 'f', 0, 64) + "%"
}

// secondLineFields are the numbers of the second line.
func (d *dashboard) secondLineFields(s *stats.Snapshot) []field {
	t := &s.Totals
	sign := uncertaintySign(s)
	switch rough := d.cursor.moment.Rough; {
	case rough:
		fields := []field{
			bytesField(0, figures.InUse.Name+" up to", t.InUse, sign, inUseStyle), bytesField(2, figures.PeakInUse.ColumnTitle(), t.PeakInUse, sign, plain),
			{rank: 3, name: "creates", value: span{formatCount(t.Creates), plain}, w: len("99 999 999")},
		}
		if d.mode.pool {
			fields = slices.Insert(fields, 2, d.hitFields(s)[0])
		}
		return fields
	case d.mode.pool:
		return d.poolFields(s)
	}
	fields := append(d.heldFields(s, 1), field{rank: 3, name: "buffers", value: span{formatCount(t.LiveBuffers), plain}, w: len("9 999 999")},
		bytesField(2, figures.PeakInUse.ColumnTitle(), t.PeakInUse, sign, plain), createsField(s), d.peakTimeField(s))
	for i := range fields {
		fields[i].w++ // for the sign of a lower bound, which there mostly is
	}
	return fields
}

// nameOfInUse names what is in use. Once all processes have ended, that is what was in use at their end. The name is as long, so that
// nothing moves.
func nameOfInUse(s *stats.Snapshot) string {
	if stateOfProgram(s).State != stats.Running {
		return "at end"
	}
	return figures.InUse.Name
}

// heldFields are what is in use and held, both of the cursor in a recording.
func (d *dashboard) heldFields(s *stats.Snapshot, rank int) []field {
	inUse, most, sign := s.Totals.InUse, max(s.Totals.Held, s.Totals.InUse), uncertaintySign(s)
	if d.mode.recording {
		most = inUse
	}
	return []field{bytesField(0, nameOfInUse(s), inUse, sign, inUseStyle), bytesField(rank, figures.Held.Name, most, sign, plain)}
}

// poolFields are the numbers of programs with a pool. As columns get fewer, the time of the peak goes first, then the idle
// memory.
func (d *dashboard) poolFields(s *stats.Snapshot) []field {
	t := &s.Totals
	sign, wasted, scattered := uncertaintySign(s), plain, dim
	if t.Waste() >= 0.25 {
		wasted = warnStyle
	}
	if t.SlabBytes > 0 {
		scattered = plain // without slabs, a free block is not divided, so that it is no fault if many are free
	}
	fields := append(d.heldFields(s, 3),
		bytesField(1, figures.Cached.Name, t.Cached, "", cachedStyle), bytesField(7, figures.Reserved.Name, reservedOnDevice(s), "", plain),
		bytesField(5, figures.PeakInUse.ColumnTitle(), t.PeakInUse, sign, plain))
	fields = append(fields, d.hitFields(s)...)
	return append(fields,
		field{rank: 6, name: "waste", value: span{narrowRateText(t.Waste()), wasted}, w: shareWide},
		field{rank: 4, name: "frag", value: span{narrowRateText(t.ExternalFragmentation()), scattered}, w: shareWide},
		createsField(s), bytesField(10, figures.Idle.Name, t.Idle, "", cachedStyle), d.peakTimeField(s))
}

// reservedOnDevice returns the reserved bytes on the device, without those that --spill has moved to the host.
func reservedOnDevice(s *stats.Snapshot) uint64 {
	if s.Spill != nil {
		return min(s.Spill.Resident, s.Totals.ReservedBytes())
	}
	return s.Totals.ReservedBytes()
}

func createsField(s *stats.Snapshot) field {
	return field{rank: 9, name: "alloc/s", value: span{formatRate(s.Window.Creates, s.Window.NS), plain}, w: rateWide}
}

// peakTimeField says when the peak was.
func (d *dashboard) peakTimeField(s *stats.Snapshot) field {
	text := none
	if t := s.Totals.PeakInUseTime; t > s.Started {
		text = units.FormatClock(differenceOrZero(s.Started, t))
	}
	return field{rank: 11, name: "peak at", value: span{text, dim}, w: len("00:00:00")}
}

// figureSpans are the name and the value of a figure.
func figureSpans(s *stats.Snapshot, f *figures.Figure, st style) []span {
	return []span{{f.ColumnTitle() + " ", dim}, {shortFigureText(f, f.ValueOf(figures.SubjectOfSnapshot(s))), st}}
}

// shortFigureText writes a value with the few digits that fit.
func shortFigureText(f *figures.Figure, v figures.Value) string {
	switch f.Unit {
	case figures.Bytes:
		return bytesText(v.Exact)
	case figures.Rate:
		return formatPercent(v.Number) + "%"
	case figures.Nanos, figures.Seconds:
		return formatDuration(v.Exact)
	default:
		return formatCount(v.Exact)
	}
}

// lateNS is the time that colours and the first hit rate cover, in ns. What was mended earlier is no fault now.
const lateNS = 10e9

// recentHitsAndMisses counts the hits and misses of the last seconds.
func recentHitsAndMisses(s *stats.Snapshot) (hits, misses uint64) {
	for i := len(s.Minute) - 1; i >= 0 && differenceOrZero(s.Minute[i].Time, s.Time) < lateNS; i-- {
		hits, misses = saturatingSum(hits, s.Minute[i].Hits), saturatingSum(misses, s.Minute[i].Misses)
	}
	return hits, misses
}

// isLiveRun reports whether a snapshot covers all processes of a run that has not ended. Only then its last seconds are known.
func (d *dashboard) isLiveRun(s *stats.Snapshot) bool {
	return !d.mode.recording && !d.hasProgramEnded() && !d.processes.isOneOfSeveral(s) && len(s.Minute) > 0
}

// hitFields returns the hit rate of the last seconds, in its colour, and that of the run. Where the last seconds are not
// known, as after the end, both are of the run.
func (d *dashboard) hitFields(s *stats.Snapshot) []field {
	t := &s.Totals
	hits, misses := t.Hits, t.Misses
	if d.isLiveRun(s) {
		hits, misses = recentHitsAndMisses(s)
	}
	all := saturatingSum(hits, misses)
	return []field{
		{rank: 2, name: "hit", value: span{hitRateText(hits, misses), styleOfHitRate(float64(hits)/float64(max(all, 1)), all)}, w: percentWide},
		{rank: 8, name: "run", value: span{hitRateText(t.Hits, t.Misses), dim}, w: percentWide},
	}
}

// styleOfRunHitRate returns the style of a hit rate of the whole run. It has no colour while the run goes on: it may be better now.
func (d *dashboard) styleOfRunHitRate(s *stats.Snapshot, hits, misses uint64) style {
	if d.isLiveRun(s) {
		return dim
	}
	all := saturatingSum(hits, misses)
	return styleOfHitRate(float64(hits)/float64(max(all, 1)), all)
}

// styleOfEventAge returns red for an event of the last seconds, and dim for an older one.
func styleOfEventAge(s *stats.Snapshot, at uint64) style {
	if differenceOrZero(at, s.Time) < lateNS {
		return badStyle
	}
	return dim
}

// fewRequests are too few for their hit rate to be good or bad.
const fewRequests = 20

// uncertaintySign returns the sign before sizes: ≈ where events are lost, ≥ where sizes of buffers from before attach are known only
// from later uses.
func uncertaintySign(s *stats.Snapshot) string {
	switch {
	case s.Lost > 0:
		return "≈"
	case s.TagBeforeAttach() == nil:
		return ""
	}
	return "≥"
}

func hitRateText(hits, misses uint64) string {
	text := formatRatio(hits, saturatingSum(hits, misses))
	if text == none {
		return text
	}
	return text + "%"
}

func styleOfHitRate(rate float64, n uint64) style {
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

// gaugeLegend is the width from which the gauge has its legend in the line.
const gaugeLegend = 72

// drawGauge draws how much of the device is reserved, with its legend. Where the device's memory is not known there is nothing
// to fill.
func (d *dashboard) drawGauge(r region, s *stats.Snapshot) {
	t := &s.Totals
	whole := cmp.Or(s.Device.Global, d.newestSnapshot(s).Device.Global) // a moment before the first call has none
	if whole == 0 {
		r.writeText(0, 0, withoutLastClauses("the memory of the device is not known: there is nothing to compare with", r.w), dim)
		return
	}
	if n := s.MostDevicesOfProcess(); n > 1 {
		r.writeText(0, 0, withoutLastClauses(fmt.Sprintf("on %d devices together, one with %s: what each of them holds is not known", n, bytesText(whole)), r.w), dim)
		return
	}
	inUse := min(t.InUse, reservedOnDevice(s))
	parts := []part{{inUse, "█", inUseStyle}, {differenceOrZero(t.Idle, t.Cached), "▒", cachedStyle}, {t.Idle, "▂", cachedStyle}, {t.Cooling, "░", coolingStyle}}
	names := []string{figures.InUse.Name, figures.Cached.Name, figures.Idle.Name, figures.Cooling.Name}
	label := "of " + bytesText(whole)
	if d.mode.pool {
		free := fewColumnsBytes(differenceOrZero(saturatingSum(inUse, t.Cached, t.Cooling), whole))
		label = strings.Repeat(" ", max(0, bytesWide-textWidth(free))) + free + " free " + label
	} else {
		parts, names = parts[:1], names[:1]
	}
	end := r.w - textWidth(label)
	r.writeText(end, 0, label, dim)
	end--
	if r.w >= gaugeLegend {
		for i := len(parts) - 1; i >= 0; i-- {
			end -= textWidth(names[i]) + 3
			r.writeSpans(end, 0, span{parts[i].text, parts[i].style}, span{" " + names[i], dim})
		}
	}
	r.drawBar(0, 0, max(0, end-1), whole, parts)
}

// poolGainFields say what the pool gains, if that is known, and what it costs.
func (d *dashboard) poolGainFields(s *stats.Snapshot) []field {
	t := &s.Totals
	switch {
	case d.cursor.moment.Rough:
		return []field{wordsField(0, "", "at the peak of the interval before this time", dim)}
	case !d.mode.pool:
		fields := []field{numberField(1, figures.Creates, s), numberField(2, figures.Releases, s), wordsField(3, "", "no pool: attach only watches", dim)}
		if before := s.TagBeforeAttach(); before != nil {
			fields = append(fields, wordsField(4, "from before attach", pluralText(before.Live, "buffer"), plain))
		}
		return fields
	}
	fields := []field{numberField(0, figures.DriverCreates, s), {rank: 1, name: "avoided", value: span{formatCount(t.HitsWithoutDriverCall()), goodStyle}, w: len("999 999 999")}}
	if most, known := s.MaxCachedBytes(); known {
		text := noLimit
		if most < unlimitedBytes {
			text = fewColumnsBytes(most)
		}
		fields = append(fields, field{rank: 2, name: "cached at most", value: span{text, plain}, w: len(noLimit)})
	}
	calls, _ := s.WorthwhileSavings()
	switch m := s.Measured.LatestKnown(); {
	case m != nil:
		return append(fields, wordsField(3, "measured", m.ChangeText(), plain), wordsField(4, "", m.AlternativeText(), dim))
	case !calls && t.Hits > 0 && d.o.Measure != nil && !d.hasProgramEnded() && s.Measured.RunningResult() == nil:
		hint := wordsField(3, "E", "measures what that gains", dim)
		hint.key = true
		return append(fields, hint)
	case !calls:
		return fields
	}
	of := "(estimate)"
	if !t.Saved.Releases {
		of = "of creates (estimate)"
	}
	return append(fields, wordsField(3, "saved", "≈ "+formatDuration(t.Saved.NS), plain), wordsField(4, "", of, dim))
}

// numberField is a field with a figure that counts.
func numberField(rank int, f *figures.Figure, s *stats.Snapshot) field {
	return field{rank: rank, name: f.ColumnTitle(), value: span{shortFigureText(f, f.ValueOf(figures.SubjectOfSnapshot(s))), plain}, w: len("99 999 999")}
}

// wordsField is a field as wide as its text.
func wordsField(rank int, name, text string, st style) field {
	return field{rank: rank, name: name, value: span{text, st}, w: textWidth(text)}
}

// drawNumbersOnly draws the numbers line by line, in a terminal too small for panes.
func (d *dashboard) drawNumbersOnly(r region, s *stats.Snapshot) {
	d.drawHeader(r, s)
	x, y := 1, 1
	for _, f := range append(d.secondLineFields(s), d.poolGainFields(s)...) {
		n := f.fieldWidth()
		if x > 1 && x+n > r.w-1 {
			x, y = 1, y+1
		}
		if y >= r.h-1 {
			break
		}
		f.drawField(r, x, y)
		x += n + fieldGap
	}
	if d.note.text != "" {
		r.subRegion(0, r.h-2, r.w, 1).blankAll()
	}
	if y+2 < r.h || d.note.text != "" {
		d.drawMessage(r.subRegion(0, r.h-2, r.w, 1), s)
	}
	d.drawKeys(r.subRegion(0, r.h-1, r.w, 1))
}
