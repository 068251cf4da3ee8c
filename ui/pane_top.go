package ui

import (
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// item is a piece of a line that may be left out: the highest rank goes first.
type item struct {
	rank  int
	spans []span
}

// fit drops items until the rest is at most w columns wide with gap blanks between two.
func fit(items []item, w, gap int) []item {
	items = append([]item(nil), items...)
	for len(items) > 0 {
		n := gap * (len(items) - 1)
		worst := 0
		for i := range items {
			n += spansWidth(items[i].spans)
			if items[i].rank >= items[worst].rank {
				worst = i
			}
		}
		if n <= w {
			break
		}
		items = append(items[:worst], items[worst+1:]...)
	}
	return items
}

// lineOf writes items with gap blanks between two and returns the column after them.
func (r region) lineOf(x, y, gap int, items []item) int {
	for i := range items {
		if i > 0 {
			x += gap
		}
		x = r.spans(x, y, items[i].spans...)
	}
	return x
}

// line writes the items that there is room for, closer together before one is left out.
func (r region) line(x, y, gap int, items []item) {
	shown := fit(items, r.w-2*x, gap)
	if len(shown) < len(items) && gap > 2 {
		gap--
		shown = fit(items, r.w-2*x, gap)
	}
	r.lineOf(x, y, gap, shown)
}

// drawTop draws header, numbers, gauge and, in full mode, the legend of the gauge.
func (d *dashboard) drawTop(r region, s *model.Snapshot, m mode) {
	d.drawHeader(r, s)
	numbers := d.numberItems(s)
	gap := 2
	if m == full {
		gap = 3
	}
	r.line(1, 1, gap, numbers)
	drawGauge(r.sub(1, 2, r.w-2, 1), s, m)
	if m == full {
		r.line(1, 3, gap, d.legendItems(s))
	}
}

// drawHeader draws the first line: what runs at the left, how it is at the right.
func (d *dashboard) drawHeader(r region, s *model.Snapshot) {
	x := r.text(1, 0, "gpumemtop", keyStyle) + 2
	gap := 3
	if r.w < fullW {
		gap = 2
	}
	if d.o.Attached && r.w >= compactW {
		x = r.text(x, 0, "attached to ", dim)
	}
	right := fit(d.headerItems(s), r.w-x-min(24, r.w/4)-2, gap)
	n := gap * max(0, len(right)-1)
	for i := range right {
		n += spansWidth(right[i].spans)
	}
	r.textIn(x, 0, r.w-x-n-3, commandLine(s), strong)
	r.lineOf(r.w-1-n, 0, gap, right)
}

// commandLine names the program without its folder: the line is short.
func commandLine(s *model.Snapshot) string {
	name := s.Program
	if i := strings.LastIndexByte(name, '/'); i+1 < len(name) {
		name = name[i+1:]
	}
	if len(s.Arguments) == 0 {
		return name
	}
	args := s.Arguments
	if args[0] == s.Program {
		args = args[1:]
	}
	return strings.TrimSpace(name + " " + strings.Join(args, " "))
}

func (d *dashboard) headerItems(s *model.Snapshot) []item {
	var items []item
	if d.frozen != nil {
		items = append(items, item{0, []span{{d.frozenText(), bannerStyle}}})
	}
	if d.single(s) {
		items = append(items, item{0, []span{{d.one.text(), keyStyle}}})
	}
	if d.viewing() {
		items = append(items, d.momentItems(s)...)
		if !d.replay.moment.Rough {
			items = append(items, item{2, []span{d.stateSpan(s)}})
		}
	} else {
		items = append(items, item{0, []span{d.stateSpan(s)}}, item{2, []span{{clock(d.wall(s)), plain}}})
	}
	if pid := d.pidText(s); pid != "" {
		items = append(items, item{4, []span{{"pid ", dim}, {pid, plain}}})
	}
	if s.Device.Name != "" {
		name := s.Device.Name
		if width(name) > 24 {
			name = cut(name, 23) + "…"
		}
		spans := []span{{name, plain}}
		if s.Device.Global > 0 {
			spans = append(spans, span{" " + bytesText(s.Device.Global), dim})
		}
		items = append(items, item{6, spans})
	}
	if s.Policy != "" {
		items = append(items, item{5, []span{{"policy ", dim}, {s.Policy, plain}}})
	}
	if s.Recording.Path != "" {
		items = append(items, item{3, []span{{"REC ", badStyle}, {bytesText(s.Recording.Bytes), plain}}})
	}
	if len(s.Findings) > 0 {
		items = append(items, item{1, []span{{strings.ToUpper(mistakeCount(s)), badStyle}}})
	}
	if s.Lost > 0 {
		items = append(items, item{1, []span{{"LOST " + count(s.Lost) + " events", badStyle}}})
	}
	return items
}

// cut returns the clusters of s that fit n columns.
func cut(s string, n int) string {
	rest := s
	for len(rest) > 0 {
		_, w, after := nextCluster(rest)
		if n -= w; n < 0 {
			break
		}
		rest = after
	}
	return s[:len(s)-len(rest)]
}

func (d *dashboard) frozenText() string {
	behind := since(d.frozen.Time, d.live.Time)
	return " FROZEN " + strconv.FormatUint(behind/1e9, 10) + " s, " + count(since(d.frozen.Events, d.live.Events)) + " events behind "
}

// stateSpan says in a word how the program is.
func (d *dashboard) stateSpan(s *model.Snapshot) span {
	app := d.app
	if !d.hasApp || d.single(s) {
		app = stateOf(s)
	}
	if d.attached() && !d.single(s) {
		return d.watchSpan(s)
	}
	switch {
	case app.State == model.Running && !d.hasApp && len(s.Processes) == 0 && d.viewing() && s.Time >= d.replay.moment.Until:
		return span{"○ NO CALLS", dim}
	case app.State == model.Running && !d.hasApp && len(s.Processes) == 0:
		return span{"○ STARTING", dim}
	case app.State == model.Running:
		return span{"● RUNNING", goodStyle}
	case app.State == model.Signaled:
		return span{"✗ " + signalName(app.Status), badStyle}
	case app.Status < 0:
		return span{"● EXITED", plain}
	case app.Status == 0:
		return span{"✓ EXITED 0", goodStyle}
	}
	return span{"✗ EXITED " + strconv.Itoa(app.Status), badStyle}
}

// watchSpan says in a word whether there is something to watch.
func (d *dashboard) watchSpan(s *model.Snapshot) span {
	switch {
	case d.ended():
		return span{"○ ENDED", dim}
	case len(s.Processes) == 0:
		return span{"○ WAITING", dim}
	}
	return span{"● WATCHING", goodStyle}
}

// stateOf derives the state of the whole from its processes: running while one runs, else that of the first.
func stateOf(s *model.Snapshot) App {
	for i := range s.Processes {
		if p := &s.Processes[i]; p.State == model.Running {
			return App{PID: p.PID}
		}
	}
	if len(s.Processes) == 0 {
		return App{}
	}
	p := &s.Processes[0]
	return App{PID: p.PID, State: p.State, Status: p.Status}
}

// wall returns how long the program has run, in ns.
func (d *dashboard) wall(s *model.Snapshot) uint64 {
	end := s.Time
	if (d.ended() || d.single(s)) && len(s.Processes) > 0 {
		end = 0
		for i := range s.Processes {
			end = max(end, s.Processes[i].Ended)
		}
		if end == 0 {
			end = s.Time
		}
	}
	return since(s.Started, end)
}

func (d *dashboard) pidText(s *model.Snapshot) string {
	pid := d.app.PID
	if (pid == 0 || d.single(s)) && len(s.Processes) > 0 {
		pid = s.Processes[0].PID
	}
	if pid <= 0 {
		return ""
	}
	text := strconv.Itoa(pid)
	if n := len(s.Processes); n > 1 {
		text += " +" + count(uint64(n-1))
	}
	return text
}

// numberItems are the numbers of the second line.
func (d *dashboard) numberItems(s *model.Snapshot) []item {
	switch {
	case d.o.Attached && d.replay.moment.Rough:
		return slices.Delete(roughItems(s), 2, 3) // the hit rate
	case d.replay.moment.Rough:
		return roughItems(s)
	case d.o.Attached:
		return watchedItems(s)
	}
	return numberItems(s)
}

// peakSpans are how much was in use at most, and when.
func peakSpans(s *model.Snapshot) []span {
	t := &s.Totals
	peak := []span{{"peak ", dim}, {leastText(s) + bytesText(t.PeakInUse), plain}}
	if t.PeakInUseTime > s.Started {
		peak = append(peak, span{" @" + clock(since(s.Started, t.PeakInUseTime)), dim})
	}
	return peak
}

// roughItems are the numbers that the summaries in a recording tell.
func roughItems(s *model.Snapshot) []item {
	t := &s.Totals
	return []item{
		{0, []span{{"in use up to ", dim}, {bytesText(t.InUse), inUseStyle}}},
		{1, []span{{"peak ", dim}, {bytesText(t.PeakInUse), plain}}},
		{0, []span{{"hit ", dim}, {hitText(t.Hits, t.Misses), rateStyle(t.HitRate(), t.Hits+t.Misses)}}},
		{2, []span{{count(t.Creates), plain}, {" creates", dim}}},
	}
}

func numberItems(s *model.Snapshot) []item {
	t := &s.Totals
	reserved := add(t.InUse, t.Cached, t.Cooling)
	cached := []span{{"cached ", dim}, {bytesText(t.Cached), cachedStyle}}
	if most, known := s.CachedMost(); known && most < unlimitedBytes {
		cached = append(cached, span{"/" + bytesText(most), dim})
	}
	waste := span{percent(t.Waste()) + "%", plain}
	if t.Waste() >= 0.25 {
		waste.style = warnStyle
	}
	return []item{
		{0, []span{{"in use ", dim}, {bytesText(t.InUse), inUseStyle}, {tendency(s.History), dim}}},
		{1, cached},
		{5, []span{{"reserved ", dim}, {bytesText(reserved), plain}}},
		{3, peakSpans(s)},
		{0, []span{{"hit ", dim}, {hitText(t.Hits, t.Misses), rateStyle(t.HitRate(), t.Hits+t.Misses)}}},
		{4, []span{{"waste ", dim}, waste}},
		{6, []span{{"frag ", dim}, {percent(t.ExternalFragmentation()) + "%", plain}}},
		{2, []span{{perSecond(s.Window.Creates, s.Window.NS), plain}, {" alloc/s", dim}}},
	}
}

func hitText(hits, misses uint64) string {
	text := ratio(hits, add(hits, misses))
	if text == none {
		return text
	}
	return text + "%"
}

func rateStyle(rate float64, n uint64) style {
	switch {
	case n == 0:
		return dim
	case rate >= 0.9:
		return goodStyle
	case rate >= 0.5:
		return warnStyle
	}
	return badStyle
}

// tendency returns an arrow when memory in use has changed by more than two percent over the last ten samples.
func tendency(h []model.Sample) string {
	if len(h) < 10 {
		return ""
	}
	was, is := float64(h[len(h)-10].InUse), float64(h[len(h)-1].InUse)
	switch {
	case is > was*1.02:
		return " ▲"
	case is < was*0.98:
		return " ▼"
	}
	return "  "
}

// drawGauge draws how much of the device is taken.
func drawGauge(r region, s *model.Snapshot, m mode) {
	t := &s.Totals
	whole, label := s.Device.Global, bytesText(s.Device.Global)
	if whole == 0 {
		whole = niceCeiling(max(t.PeakReserved, add(t.InUse, t.Cached, t.Cooling)))
		label = "of " + bytesText(whole)
	}
	x := 0
	if m == full && s.Device.Global > 0 {
		x = r.text(0, 0, "device ", dim)
	}
	n := r.w - x - width(label) - 1
	r.bar(x, 0, n, whole, []part{{t.InUse, "█", inUseStyle}, {t.Cached, "▒", cachedStyle}, {t.Cooling, "░", coolingStyle}})
	r.right(r.w, 0, label, dim)
}

// savingItems are what the pool has saved, where that is known.
func (d *dashboard) savingItems(s *model.Snapshot) []item {
	return slices.DeleteFunc(d.legendItems(s), func(i item) bool { return i.rank < 3 })
}

// legendItems explain the gauge; savings are only known where totals are not rough.
func (d *dashboard) legendItems(s *model.Snapshot) []item {
	switch {
	case d.o.Attached && !d.replay.moment.Rough:
		return watchedLegend(s)
	case !d.replay.moment.Rough:
		return legendItems(s)
	}
	return []item{
		{0, []span{{"█", inUseStyle}, {" in use", dim}}},
		{0, []span{{"▒", cachedStyle}, {" cached", dim}}},
		{1, []span{{"░", coolingStyle}, {" cooling", dim}}},
		{2, []span{{"when most was in use, in the stretch before this time", dim}}},
	}
}

// legendItems explain the gauge and say what the pool has saved.
func legendItems(s *model.Snapshot) []item {
	t := &s.Totals
	items := []item{
		{0, []span{{"█", inUseStyle}, {" in use ", dim}, {bytesText(t.InUse), plain}}},
		{0, []span{{"▒", cachedStyle}, {" cached ", dim}, {bytesText(t.Cached), plain}}},
		{1, []span{{"░", coolingStyle}, {" cooling ", dim}, {bytesText(t.Cooling), plain}}},
	}
	if s.Device.Global > 0 {
		free := since(add(t.InUse, t.Cached, t.Cooling), s.Device.Global)
		items = append(items, item{2, []span{{"·", freeStyle}, {" free ", dim}, {bytesText(free), plain}}})
	}
	return append(items,
		item{3, []span{{"driver creates ", dim}, {count(t.DriverCreates), plain}, {" avoided ", dim}, {count(t.Hits), goodStyle}}},
		item{4, []span{{"saved ≈ ", dim}, {duration(t.SavedNS), plain}}},
		item{5, []span{{"(estimate)", dim}}})
}

// drawNumbersOnly is for terminals too small for panes: the numbers, line by line.
func (d *dashboard) drawNumbersOnly(r region, s *model.Snapshot) {
	d.drawHeader(r, s)
	x, y := 1, 1
	for _, it := range append(d.numberItems(s), d.savingItems(s)...) {
		n := spansWidth(it.spans)
		if x > 1 && x+n > r.w-1 {
			x, y = 1, y+1
		}
		if y >= r.h-1 {
			break
		}
		x = r.spans(x, y, it.spans...) + 2
	}
	if y+2 < r.h {
		d.drawMessage(r.sub(0, r.h-2, r.w, 1), s)
	}
	d.drawKeys(r.sub(0, r.h-1, r.w, 1))
}
