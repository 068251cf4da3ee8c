package ui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// wheelStep is how many rows the wheel moves.
const wheelStep = 3

// clickAt handles a press of the left button. On a key, or on its label, it does what the key does.
func (d *dashboard) clickAt(x, y int) tea.Cmd {
	if d.canvas == nil || x < 0 || y < 0 || x >= d.w || y >= d.h || d.typing {
		return nil
	}
	if d.prompt != nil && d.overlay == paletteOverlay {
		return d.palette.clickRow(d.canvas.wholeRegion(), x, y)
	}
	p := d.paneAt(x, y)
	label := d.overlay != noOverlay || p == nil || y == p.y || p.pane == panePoints
	key := d.canvas.keyWrittenAt(x, y, label)
	if d.overlay == quitOverlay {
		key = d.canvas.bracketedKey(x, y)
	}
	c, l := commandOfKey(d.presentCommands(), key), d.arrangePanes()
	switch {
	case c != nil:
		return c.runCommand(d, key)
	case d.overlay != noOverlay:
		return nil
	case d.prompt != nil:
		if y == d.h-1 && len(key) == 1 {
			d.prompt.appendTyped(key)
		}
		return nil
	case p == nil:
		if l.verdict && y == l.top-1 {
			d.showPaneAlone(panePoints)
		}
		return nil
	}
	d.focus = p.pane
	if y > p.y {
		d.clickInPane(p, x-p.x, y-p.y-1) // the first row has the title
	}
	return nil
}

// turnWheel scrolls what lies under the wheel, and zooms charts.
func (d *dashboard) turnWheel(x, y int, m motion) {
	switch {
	case d.typing || d.overlay == quitOverlay:
	case d.overlay == helpOverlay:
		d.help.moveInHelp(m)
	case d.prompt != nil && d.prompt.moved != nil:
		d.prompt.moved(m)
	case d.prompt != nil:
	default:
		p := d.paneAt(x, y)
		if p == nil {
			return
		}
		d.focus = p.pane
		if p.pane == paneMemory || p.pane == paneRates {
			d.showShorterOrLongerTime(m == moveUp)
			return
		}
		for range wheelStep {
			d.panes[p.pane].move(m)
		}
	}
}

// showShorterOrLongerTime lets charts show the next shorter or longer time.
func (d *dashboard) showShorterOrLongerTime(in bool) {
	at := slices.Index(spans, d.span) // 0 is all, then from the shortest
	switch {
	case in && at == 0:
		at = len(spans) - 1
	case in:
		at = max(1, at-1)
	case at > 0:
		at = (at + 1) % len(spans)
	}
	d.showSpan(spans[max(0, at)])
}

// showDraggedTime shows the time of a column of the memory chart, or the span between two.
func (d *dashboard) showDraggedTime(from, to, y int) {
	one, other := d.paneAt(from, y), d.paneAt(to, y)
	if one == nil || other == nil || one.pane != paneMemory || other.pane != paneMemory || d.overlay != noOverlay || d.prompt != nil {
		return
	}
	begin, ok := d.timeOfColumn(one, min(from, to)-one.x)
	end, also := d.timeOfColumn(one, max(from, to)-one.x)
	at, is := d.timeOfEventAt(one, from, y)
	switch {
	case ok && from == to && is:
		d.showEvent(d.shownSnapshot(), at)
	case ok && from == to:
		d.showTime(begin)
	case ok && also && end > begin:
		d.showTime(begin + (end-begin)/2)
		d.showSpan(end - begin)
	}
}

// timeOfEventAt returns the time of the event whose sign is at a place in the memory pane.
func (d *dashboard) timeOfEventAt(p *placed, x, y int) (at uint64, is bool) {
	s := d.shownSnapshot()
	if s == nil || d.canvas == nil || !strings.Contains("Δ•■★", d.canvas.cells[y*d.w+x].text) {
		return 0, false
	}
	left, w := p.insideOfPane()
	t := d.timeline(s)
	for _, time := range d.eventTimes(d.wholeSnapshot()) {
		if column, shown := t.eventColumn(time, w-memoryLabels); shown && column == x-p.x-left-memoryLabels {
			at, is = time, true // the last one lies over the others
		}
	}
	return at, is
}

// paneAt returns the pane at a place of the screen.
func (d *dashboard) paneAt(x, y int) *placed {
	l := d.arrangePanes()
	for i := range l.panes {
		if p := &l.panes[i]; x >= p.x && x < p.x+p.w && y >= p.y && y < p.y+p.h {
			return p
		}
	}
	return nil
}

// bracketedKey returns the text that stands in brackets at a place or before it, as "d" in [d]etach.
func (c *canvas) bracketedKey(x, y int) (text string) {
	row := c.cells[y*c.w : (y+1)*c.w]
	for x > 0 && row[x].text != "[" {
		x--
	}
	for x++; x < c.w && row[x].text != "]"; x++ {
		text += row[x].text
	}
	return text
}

// keyNames are Bubble Tea's names of the keys that the screen writes as signs.
var keyNames = strings.NewReplacer("←", "left", "→", "right", "↑", "up", "↓", "down", "pgdn", "pgdown")

// keyWrittenAt returns the key that is written at a place, empty if there is none. With label, the words after a key count as the key.
func (c *canvas) keyWrittenAt(x, y int, label bool) string {
	row := c.cells[y*c.w : (y+1)*c.w]
	isKey := func(x int) bool { return row[x].style == keyStyle && row[x].text != " " }
	inside := x
	for label && x > 0 && !isKey(x) && (row[x].text != " " || row[x-1].text != " ") {
		x--
	}
	if !isKey(x) {
		return ""
	}
	begin, end := x, x+1
	for ; begin > 0 && isKey(begin-1); begin-- {
	}
	for ; end < c.w && isKey(end); end++ {
	}
	text := ""
	for _, cell := range row[begin:end] {
		text += cell.text
	}
	if digit := slices.Index(paneDigits[:], text); digit > 0 {
		return string(rune('0' + digit))
	}
	if len(text) == 3 && text[1] == '-' { // 1-6: the digit itself
		return row[min(inside, end-1)].text
	}
	return keyNames.Replace(text)
}

// clickInPane handles a press inside a pane.
func (d *dashboard) clickInPane(p *placed, x, y int) {
	left, w := p.insideOfPane()
	switch p.pane {
	case paneTags:
		d.tags.clickTags(x-left, y, w)
	case paneMemory: // when the button goes up: it may have selected a span
	case paneLimits:
		d.chooseRow(p, y)
		d.limits.setLimitByClick(d.canvas, p.x+x, p.y+y+1)
	case paneCurve:
		d.curve.chooseLimitAt(p.x + x)
	default:
		d.chooseRow(p, y)
	}
}

// insideOfPane returns where the inside of a pane begins, and how wide it is.
func (p *placed) insideOfPane() (left, w int) {
	switch {
	case p.boxed:
		return 1, p.w - 2
	case p.x > 0:
		return 1, p.w - 1
	case p.pane == paneTags: // its numbers reach its end, where others have a blank
		return 0, p.w - 1
	}
	return 0, p.w
}

// timeOfColumn returns the time of a column of the memory pane, if that is one of the chart.
func (d *dashboard) timeOfColumn(p *placed, x int) (at uint64, ok bool) {
	left, w := p.insideOfPane()
	x -= left + memoryLabels
	s, chart := d.shownSnapshot(), w-memoryLabels
	if s == nil || x < 0 || x >= chart {
		return 0, false
	}
	t := d.timeline(s)
	return t.from + uint64(float64(t.until-t.from)*(float64(x)+0.5)/float64(chart)), true
}

// chooseRow moves the cursor of a list to a row of the pane. If the cursor is there already, it does what enter does.
func (d *dashboard) chooseRow(p *placed, y int) {
	left, _ := p.insideOfPane()
	for at := range p.h - 1 {
		row := p.y + 1 + at
		if d.canvas.cells[row*d.w+p.x+left].text != "▸" {
			continue
		}
		pane := d.panes[p.pane]
		if l, is := pane.(interface{ asList() *list }); is && (l.asList().at+y-at < l.asList().top || y-at >= l.asList().page) {
			return
		}
		if y == at && p.pane != paneLimits {
			pane.handleEnter()
		}
		for ; at < y; at++ {
			pane.move(moveDown)
		}
		for ; at > y; at-- {
			pane.move(moveUp)
		}
		return
	}
}

// showTime shows any time of a recording, or the latest moment of a live run that is kept before a time.
func (d *dashboard) showTime(at uint64) {
	d.event = 0
	if d.mode.recording {
		d.cursor.goToTime(at)
		return
	}
	if i := d.past.indexOfMomentUntil(at); len(d.past.moments) > 0 {
		d.freezeAt(d.past.moments[max(0, i)])
	}
}

// clickTags chooses the row at a place, or sorts by the column whose title is there; once more: the other way round.
func (t *tagsPane) clickTags(x, y, w int) {
	if y > 0 {
		if row := t.top + y - 1; row < len(t.rows) && y <= t.page {
			t.at = row
			t.move(stay) // it follows the row from now on
		}
		return
	}
	t.sortByColumnAt(x, w)
}
