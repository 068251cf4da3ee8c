package ui

import (
	"cmp"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// nothing is the snapshot on the screen before the first one has come.
var nothing = &stats.Snapshot{}

// drawFrame makes a frame.
func (d *dashboard) drawFrame() {
	if d.w < 1 || d.h < 1 {
		return
	}
	if d.canvas == nil {
		d.canvas = newCanvas(d.w, d.h)
	}
	d.canvas.clear()
	d.canvas.charts = d.theme.charts
	all := d.canvas.wholeRegion()
	s := cmp.Or(d.shownSnapshot(), nothing)
	l := d.arrangePanes()
	switch l.size {
	case tooSmall:
		d.drawTooSmall(all)
	case numbersOnly:
		d.drawNumbersOnly(all, s)
	default:
		d.drawTopLines(all.subRegion(0, 0, d.w, l.top), s, l.size)
		if l.verdict {
			d.points.drawVerdictLine(all.subRegion(0, l.top-1, d.w, 1), s)
		}
		for i := range l.panes {
			d.drawPane(all, &l.panes[i], s)
		}
		if d.o.Guide {
			d.drawGuide(all.subRegion(0, d.h-1-l.rowsBelowPanes(), d.w, 1), s)
		}
		if l.message {
			d.drawMessage(all.subRegion(0, d.h-2, d.w, 1), s)
		}
		d.drawKeys(all.subRegion(0, d.h-1, d.w, 1))
	}
	if l.size != tooSmall {
		d.drawOverlay(all)
	}
}

func (d *dashboard) drawTooSmall(r region) {
	text := "needs 40×6, have " + strconv.Itoa(d.w) + "×" + strconv.Itoa(d.h)
	if d.overlay == quitOverlay {
		text = d.quitText()
	}
	r.writeText(max(0, (r.w-textWidth(text))/2), r.h/2, text, plain)
}

// drawPane draws a pane and its frame.
func (d *dashboard) drawPane(all region, p *placed, s *stats.Snapshot) {
	r := all.subRegion(p.x, p.y, p.w, p.h)
	border, mark := frameStyle, " "
	if p.pane == d.focus {
		border, mark = focusStyle, "▸"
	}
	left, w := p.insideOfPane()
	inside := r.subRegion(left, 1, w, r.h-1)
	if p.boxed {
		inside = r.subRegion(left, 1, w, r.h-2)
	} else if p.x > 0 {
		r = r.subRegion(1, 0, r.w-1, r.h) // one blank column between neighbours
	}
	if inside.w > 0 && inside.h > 0 { // first, because titles say which rows are shown
		d.panes[p.pane].draw(inside, s)
	}
	title, hint := d.panes[p.pane].title(s)
	digit := paneDigits[p.pane]
	if digit != "" || p.pane == d.focus {
		digit += " "
	}
	title = append([]span{{mark, focusStyle}, {digit, keyStyle}}, title...)
	title = append(title, span{" ", plain})
	if p.boxed {
		r.drawBox(title, hint, border)
	} else {
		r.subRegion(0, 0, r.w, 1).drawRule(title, hint, border)
	}
}

// pluralText writes a number of things.
func pluralText(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return formatCount(n) + " " + noun + "s"
}
