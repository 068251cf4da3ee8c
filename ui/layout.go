package ui

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

// layout is the place of everything.
type layout struct {
	size    size
	top     int // rows of header and gauge
	panes   []placed
	message bool // the row above the keys is for messages
	verdict bool // the last row of the top says what stands out
}

// bottom returns how many rows lie under the panes.
func (l *layout) bottom() int {
	if l.message {
		return 2
	}
	return 1
}

func sizeOf(w, h int) size {
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

// arrange places the panes, or only the zoomed one. Without output the tags get its rows.
func arrange(w, h int, zoom paneID, output bool) layout {
	l := layout{size: sizeOf(w, h)}
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
	area := rect{0, l.top, w, h - l.top - l.bottom()}
	switch {
	case zoom != noPane:
		l.panes = []placed{{zoom, l.size == full, area}}
	case l.size == full:
		l.panes = arrangeFull(area, output)
	default:
		l.panes = arrangeCompact(area, h, output)
	}
	return l
}

// arrangeFull distributes the rows. Most of those beyond 30 go to the tags.
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

// arrangeCompact leaves out the graphs first if rows are few, then free list and limits, then the output. The tags get the
// rest. Each title takes a row.
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
func (d *dashboard) arrange() layout { return arrange(d.w, d.h, d.zoom, d.mode.lastPane == paneOutput) }

// visible returns the panes on the screen in the order of the focus.
func (d *dashboard) visible() []paneID {
	l := d.arrange()
	out := make([]paneID, len(l.panes))
	for i := range l.panes {
		out[i] = l.panes[i].pane
	}
	return out
}
