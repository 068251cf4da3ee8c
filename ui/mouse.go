package ui

import tea "charm.land/bubbletea/v2"

// wheelStep is how many rows the wheel moves.
const wheelStep = 3

// useMouse handles a press of a button, or the wheel.
func (d *dashboard) useMouse(m tea.Mouse) {
	if d.prompt != nil || d.typing {
		return
	}
	wheel := map[tea.MouseButton]motion{tea.MouseWheelUp: moveUp, tea.MouseWheelDown: moveDown}[m.Button]
	switch {
	case d.overlay == helpOverlay && wheel != stay:
		d.help.move(wheel)
		return
	case d.overlay != noOverlay:
		return
	}
	l := d.arrange()
	for i := range l.panes {
		p := &l.panes[i]
		x, y := m.X-p.x, m.Y-p.y-1 // the first row has the title
		if x < 0 || x >= p.w || m.Y < p.y || m.Y >= p.y+p.h {
			continue
		}
		d.focus = p.pane
		switch {
		case wheel != stay:
			for range wheelStep {
				d.panes[p.pane].move(wheel)
			}
		case m.Button == tea.MouseLeft && y >= 0:
			d.click(p, x, y)
		}
	}
}

// click does what a place in a pane stands for.
func (d *dashboard) click(p *placed, x, y int) {
	w := p.w
	if p.boxed {
		x, w = x-1, w-2
	} else if p.x > 0 {
		x, w = x-1, w-1
	}
	switch p.pane {
	case paneTags:
		d.tags.click(x, y, w)
	case paneMemory:
		if s := d.shown(); s != nil && x >= memoryLabels && x < w {
			t := d.timeline(s)
			chart := w - memoryLabels
			d.showTime(t.from + uint64(float64(t.until-t.from)*(float64(x-memoryLabels)+0.5)/float64(chart)))
		}
	default:
	}
}

// showTime shows a time: of a recording any, of a live run the latest moment that is kept before it.
func (d *dashboard) showTime(at uint64) {
	d.event = 0
	if d.mode.recording {
		d.cursor.goTo(at)
		return
	}
	if i := d.past.at(at); len(d.past.moments) > 0 {
		d.show(d.past.moments[max(0, i)])
	}
}

// click chooses the row at a place, or sorts by the column whose title is there; once more: the other way round.
func (t *tagsPane) click(x, y, w int) {
	if y > 0 {
		if row := t.top + y - 1; row < len(t.rows) && y <= t.page {
			t.at = row
			t.move(stay) // it follows the row from now on
		}
		return
	}
	t.sortAt(x, w)
}
