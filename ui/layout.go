package ui

import (
	"slices"
	"time"
)

// rect is a place on the screen.
type rect struct{ x, y, w, h int }

// placed is a pane in its place. A boxed pane has a frame around it, another one a line with its title on top.
type placed struct {
	pane  paneID
	boxed bool
	rect
}

// size is how much of the dashboard fits.
type size uint8

const (
	tooSmall size = iota
	numbersOnly
	compact
	full
)

// The smallest terminals for each size, in cells.
const (
	numbersW, numbersH = 40, 6
	compactW, compactH = 60, 12
	fullW, fullH       = 100, 30
)

// layout says where on the screen everything lies.
type layout struct {
	size    size
	top     int // rows of header and gauge
	panes   []placed
	message bool // the row above the keys is for messages
	verdict bool // the last row of the top names the findings
}

// rowsBelowPanes returns how many rows lie under the panes.
func (l *layout) rowsBelowPanes() int {
	if l.message {
		return 2
	}
	return 1
}

func sizeOfTerminal(w, h int) size {
	switch {
	case w >= fullW && h >= fullH:
		return full
	case w >= compactW && h >= compactH:
		return compact
	case w >= numbersW && h >= numbersH:
		return numbersOnly
	}
	return tooSmall
}

// preset is a choice of panes beside the tags: charts above them, lists below, and the output.
type preset struct {
	name           string
	charts, lists  []paneID
	output, filled bool // filled: the lists get half of the rows of the tags
}

// presets are the layouts that one key shows in turn.
var presets = []preset{
	{"all panes", []paneID{paneMemory, paneRates}, []paneID{paneFree, paneMisses, paneLimits}, true, false},
	{"memory", []paneID{paneMemory}, []paneID{paneFree}, true, false},
	{"tuning", []paneID{paneRates}, []paneID{paneFree, paneMisses, paneLimits}, false, false},
	{"findings", []paneID{paneMemory}, []paneID{panePoints}, true, true},
}

// withoutHidden returns a preset without the panes that the user has hidden.
func (p preset) withoutHidden(hidden [paneCount]bool) preset {
	gone := func(id paneID) bool { return hidden[id] }
	p.charts, p.lists = slices.DeleteFunc(slices.Clone(p.charts), gone), slices.DeleteFunc(slices.Clone(p.lists), gone)
	p.output = p.output && !hidden[paneOutput]
	return p
}

// paneShares are the widths of panes beside others, in percent.
var paneShares = [paneCount]int{paneMemory: 60, paneRates: 40, paneFree: 35, paneMisses: 28, paneLimits: 37, panePoints: 100, paneTransfers: 65, paneTags: 100, paneOutput: 100}

// arrangeIn places the panes, or only the zoomed one. Without output the tags get its rows.
func arrangeIn(w, h int, zoom paneID, p preset) layout {
	l := layout{size: sizeOfTerminal(w, h)}
	switch l.size {
	case full:
		l.top, l.message, l.verdict = 5, true, true
	case compact:
		l.top, l.message = 3, h >= 14
		if l.verdict = h >= 18; l.verdict {
			l.top++
		}
	default:
		return l
	}
	area := rect{0, l.top, w, h - l.top - l.rowsBelowPanes()}
	switch {
	case zoom != noPane:
		l.panes = []placed{{zoom, l.size == full, area}}
	case l.size == full:
		l.panes = arrangeFull(area, p)
	default:
		l.panes = arrangeCompact(area, h, p)
	}
	return l
}

// placePanesInRow places panes in a row, by their shares of its width.
func placePanesInRow(ids []paneID, boxed bool, r rect, share func(paneID) int) (row []placed) {
	all := 0
	for _, id := range ids {
		all += share(id)
	}
	x := r.x
	for i, id := range ids {
		w := r.w * share(id) / max(all, 1)
		if i == len(ids)-1 {
			w = r.x + r.w - x
		}
		row = append(row, placed{id, boxed, rect{x, r.y, w, r.h}})
		x += w
	}
	return row
}

// arrangeFull distributes the rows. Most of those beyond 30 go to the tags.
func arrangeFull(a rect, p preset) []placed {
	extra := a.h - 30
	graphs := min(10+extra/3, 18)
	lists := min(8+extra/3, 14)
	output := max(3, min(3+extra/6, 12))
	return p.placePanes(a, graphs, lists, output, true, func(id paneID) int { return paneShares[id] })
}

// placePanes stacks charts, tags, lists and output. A part without panes leaves its rows to the tags.
func (p preset) placePanes(a rect, graphs, lists, output int, boxed bool, share func(paneID) int) (panes []placed) {
	if len(p.charts) == 0 {
		graphs = 0
	}
	if len(p.lists) == 0 {
		lists = 0
	}
	if !p.output {
		output = 0
	}
	if p.filled && lists > 0 {
		lists += max(0, (a.h-graphs-lists-output)/2-2)
	}
	tags := a.h - graphs - lists - output
	y := a.y
	add := func(ids []paneID, h int) {
		if h > 0 {
			panes = append(panes, placePanesInRow(ids, boxed, rect{a.x, y, a.w, h}, share)...)
			y += h
		}
	}
	add(p.charts, graphs)
	add([]paneID{paneTags}, tags)
	add(p.lists, lists)
	add([]paneID{paneOutput}, output)
	return panes
}

// arrangeCompact leaves out the graphs first if rows are few, then free list and limits, then the output. The tags get the
// rest. Each title takes a row.
func arrangeCompact(a rect, h int, p preset) []placed {
	graphs, lists, output := 4+max(0, h-24)/4, 3+max(0, h-24)/6, 2+max(0, h-30)/8
	if !p.output {
		output = 0
	}
	if len(p.lists) > 1 {
		p.lists = slices.DeleteFunc(p.lists, func(id paneID) bool { return id == paneMisses })
	}
	const fewest = 6 // rows of the tag table with its title and head
	if a.h < graphs+lists+output+fewest+2 {
		graphs = 0
	}
	if a.h < lists+output+fewest {
		lists = 0
	}
	if a.h < output+fewest {
		output = 0
	}
	return p.placePanes(a, graphs, lists, output, false, func(id paneID) int {
		return [paneCount]int{paneMemory: 55, paneRates: 45, paneFree: 50, paneMisses: 50, paneLimits: 50, panePoints: 100, paneTransfers: 50, paneTags: 100, paneOutput: 100}[id]
	})
}

// arrangePanes places the panes of this dashboard.
func (d *dashboard) arrangePanes() layout {
	hidden := d.hidden
	hidden[paneOutput] = hidden[paneOutput] || d.mode.lastPane != paneOutput
	p := presets[d.preset]
	if !d.mode.pool && len(p.lists) > 1 { // it has no misses and no limits
		p.lists = []paneID{paneFree, paneTransfers}
	}
	h := d.h
	if d.o.Guide && sizeOfTerminal(d.w, d.h-1) >= compact {
		h-- // its line lies under the panes
	}
	return arrangeIn(d.w, h, d.zoom, p.withoutHidden(hidden))
}

// showNextPreset shows the next choice of panes.
func (d *dashboard) showNextPreset() {
	d.preset, d.hidden, d.zoom = (d.preset+1)%len(presets), [paneCount]bool{}, noPane
	d.ensureFocusVisible()
	d.sayMessage(dim, "layout: "+presets[d.preset].name)
}

// ensureFocusVisible moves the focus to the tags if its pane is not on the screen.
func (d *dashboard) ensureFocusVisible() {
	if !slices.Contains(d.visiblePanes(), d.focus) {
		d.focus = paneTags
	}
}

// askPanesToShow hides and shows panes by their numbers, until enter.
func (d *dashboard) askPanesToShow() {
	d.zoom = noPane
	d.prompt = &prompt{
		label: "hide or show panes: ", allowed: "124567", keys: []word{{"1 2 4 5 6 7", "hide or show"}, {"enter", "done"}},
		done: func(string) {},
		changed: func(text string) {
			if n := len(text); n > 0 {
				d.togglePane(paneID(text[n-1] - '0'))
				d.ensureFocusVisible()
			}
			d.prompt.text = ""
		},
	}
}

// togglePane hides or shows a pane. A preset first becomes the layout of all panes, where the panes that it lacks are hidden.
func (d *dashboard) togglePane(id paneID) {
	if p := presets[d.preset]; d.preset > 0 {
		for other := paneMemory; other <= paneOutput; other++ {
			d.hidden[other] = other != paneTags && !slices.Contains(p.charts, other) && !slices.Contains(p.lists, other) && (other != paneOutput || !p.output)
		}
		d.preset = 0
	}
	d.hidden[id] = !d.hidden[id]
}

// refreshes are how often the screen is drawn, at most.
var refreshes = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second}

// changeRefresh draws less often, or more often.
func (d *dashboard) changeRefresh(step int) {
	at := slices.IndexFunc(refreshes, func(t time.Duration) bool { return t >= d.o.Refresh })
	if at < 0 {
		at = len(refreshes) - 1
	}
	d.o.Refresh = refreshes[max(0, min(at+step, len(refreshes)-1))]
	d.refreshed = d.o.Refresh
	d.sayMessage(dim, "the screen is drawn every "+d.o.Refresh.String())
}

// visiblePanes returns the panes on the screen in the order of the focus.
func (d *dashboard) visiblePanes() []paneID {
	l := d.arrangePanes()
	out := make([]paneID, len(l.panes))
	for i := range l.panes {
		out[i] = l.panes[i].pane
	}
	return out
}
