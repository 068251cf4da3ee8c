package ui

// rect is a place on the screen.
type rect struct{ x, y, w, h int }

// placed is a pane in its place. Boxed panes have a frame around them, the others a line with their title on top.
type placed struct {
	pane  pane
	boxed bool
	rect
}

// mode is what there is room for.
type mode uint8

const (
	tooSmall mode = iota
	numbersOnly
	compact
	full
)

// The sizes from which on each mode fits, in cells.
const (
	numbersW, numbersH = 40, 6
	compactW, compactH = 60, 12
	fullW, fullH       = 100, 30
)

// layout says where everything is.
type layout struct {
	mode    mode
	top     int // rows of header and gauge
	panes   []placed
	message bool // the row above the keys is for messages
}

// bottom returns how many rows lie under the panes.
func (l *layout) bottom() int {
	if l.message {
		return 2
	}
	return 1
}

func modeFor(w, h int) mode {
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

// arrange places the panes; zoom is the one that is alone, or noPane. Without output the tags get its rows.
func arrange(w, h int, zoom pane, output bool) layout {
	l := layout{mode: modeFor(w, h)}
	switch l.mode {
	case full:
		l.top, l.message = 4, true
	case compact:
		l.top, l.message = 3, h >= 14
	default:
		return l
	}
	area := rect{0, l.top, w, h - l.top - l.bottom()}
	switch {
	case zoom != noPane:
		l.panes = []placed{{zoom, l.mode == full, area}}
	case l.mode == full:
		l.panes = arrangeFull(area, output)
	default:
		l.panes = arrangeCompact(area, h, output)
	}
	return l
}

// arrangeFull shares the rows out: what is more than 30 goes to the tags for the most part.
func arrangeFull(a rect, withOutput bool) []placed {
	extra := a.h - 30
	graphs := min(10+extra/3, 18)
	lists := min(8+extra/3, 14)
	output := max(3, min(3+extra/6, 12))
	if !withOutput {
		output = 0
	}
	tags := a.h - graphs - lists - output

	left := a.w * 60 / 100
	free := a.w * 35 / 100
	misses := a.w * 28 / 100
	y := a.y
	panes := []placed{
		{paneMemory, true, rect{0, y, left, graphs}},
		{paneRates, true, rect{left, y, a.w - left, graphs}},
	}
	y += graphs
	panes = append(panes, placed{paneTags, true, rect{0, y, a.w, tags}})
	y += tags
	panes = append(panes,
		placed{paneFree, true, rect{0, y, free, lists}},
		placed{paneMisses, true, rect{free, y, misses, lists}},
		placed{paneLimits, true, rect{free + misses, y, a.w - free - misses, lists}})
	y += lists
	if output > 0 {
		panes = append(panes, placed{paneOutput, true, rect{0, y, a.w, output}})
	}
	return panes
}

// arrangeCompact drops the graphs first when rows are few, then free list and limits, then the output, and leaves the
// tags what remains. Titles take a row each.
func arrangeCompact(a rect, h int, withOutput bool) []placed {
	graphs, lists, output := 4+max(0, h-24)/4, 3+max(0, h-24)/6, 2+max(0, h-30)/8
	if !withOutput {
		output = 0
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
	tags := a.h - graphs - lists - output
	half := a.w * 55 / 100
	y := a.y
	var panes []placed
	if graphs > 0 {
		panes = append(panes, placed{paneMemory, false, rect{0, y, half, graphs}},
			placed{paneRates, false, rect{half, y, a.w - half, graphs}})
		y += graphs
	}
	panes = append(panes, placed{paneTags, false, rect{0, y, a.w, tags}})
	y += tags
	half = a.w / 2
	if lists > 0 {
		panes = append(panes, placed{paneFree, false, rect{0, y, half, lists}},
			placed{paneLimits, false, rect{half, y, a.w - half, lists}})
		y += lists
	}
	if output > 0 {
		panes = append(panes, placed{paneOutput, false, rect{0, y, a.w, output}})
	}
	return panes
}

// arrange places the panes of this dashboard.
func (d *dashboard) arrange() layout { return arrange(d.w, d.h, d.zoom, d.prints()) }

// prints reports whether there is a pane for what the program prints: that is in no recording, and of a program that
// was not started here it is on a terminal of its own.
func (d *dashboard) prints() bool { return !d.viewing() && !d.o.Attached }

// lastPane is the last of the panes that can be zoomed in turn.
func (d *dashboard) lastPane() pane {
	if d.prints() {
		return paneOutput
	}
	return paneLimits
}

// panes returns the panes on the screen in the order of the focus.
func (d *dashboard) panes() []pane {
	l := d.arrange()
	out := make([]pane, len(l.panes))
	for i := range l.panes {
		out[i] = l.panes[i].pane
	}
	return out
}
