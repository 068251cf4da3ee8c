package ui

import (
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// nothing is shown before the first snapshot.
var nothing = &model.Snapshot{}

// draw makes a frame.
func (d *dashboard) draw() string {
	if d.w < 1 || d.h < 1 {
		return ""
	}
	if d.canvas == nil {
		d.canvas = newCanvas(d.w, d.h)
	}
	d.canvas.clear()
	all := d.canvas.all()
	s := d.shown()
	if s == nil {
		s = nothing
	}
	l := d.arrange()
	switch l.mode {
	case tooSmall:
		d.drawTooSmall(all)
	case numbersOnly:
		d.drawNumbersOnly(all, s)
	default:
		d.drawTop(all.sub(0, 0, d.w, l.top), s, l.mode)
		for i := range l.panes {
			d.drawPane(all, &l.panes[i], s)
		}
		if l.message {
			d.drawMessage(all.sub(0, d.h-2, d.w, 1), s)
		}
		d.drawKeys(all.sub(0, d.h-1, d.w, 1))
	}
	if l.mode != tooSmall {
		d.drawOverlay(all)
	}
	return d.canvas.encode(d.theme)
}

func (d *dashboard) drawTooSmall(r region) {
	text := "needs 40×6, have " + strconv.Itoa(d.w) + "×" + strconv.Itoa(d.h)
	if d.overlay == quitOverlay {
		text = d.quitText()
	}
	r.text(max(0, (r.w-width(text))/2), r.h/2, text, plain)
}

// drawPane draws the frame of a pane and what is in it.
func (d *dashboard) drawPane(all region, p *placed, s *model.Snapshot) {
	r := all.sub(p.x, p.y, p.w, p.h)
	border, mark := frameStyle, " "
	if p.pane == d.focus {
		border, mark = focusStyle, "▸"
	}
	inside := r.sub(1, 1, r.w-2, r.h-2)
	if !p.boxed {
		if p.x > 0 {
			r = r.sub(1, 0, r.w-1, r.h) // a blank between neighbours
		}
		inside = r.rows(1)
	}
	d.drawInside(p.pane, inside, s) // first, because titles tell what part is shown
	title, hint := d.paneTitle(p.pane, s)
	title = append([]span{{mark, focusStyle}, {paneDigits[p.pane] + " ", keyStyle}}, title...)
	title = append(title, span{" ", plain})
	if p.boxed {
		r.box(title, hint, border)
	} else {
		r.sub(0, 0, r.w, 1).rule(title, hint, border)
	}
}

func (d *dashboard) drawInside(p pane, r region, s *model.Snapshot) {
	if r.w < 1 || r.h < 1 {
		return
	}
	switch p {
	case paneMemory:
		d.drawMemory(r, s)
	case paneRates:
		d.drawRates(r, s)
	case paneTags:
		d.drawTags(r, s)
	case paneFree:
		d.drawFree(r, s)
	case paneMisses:
		d.drawMisses(r, s)
	case paneLimits:
		d.drawLimits(r)
	case paneOutput:
		d.drawOutput(r)
	case paneProcesses:
		d.drawProcesses(r)
	case panePolicies:
		d.drawPolicies(r)
	case paneGhosts:
		d.drawGhosts(r)
	case paneCurve:
		d.drawCurve(r)
	}
}

var paneDigits = [...]string{"", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "", "", "", ""}

// paneTitle returns what stands in the frame of a pane: the title, and a hint that gives way first.
func (d *dashboard) paneTitle(p pane, s *model.Snapshot) (title, hint []span) {
	switch p {
	case paneMemory:
		return []span{{"memory", titleStyle}}, d.memoryHint(s)
	case paneRates:
		return []span{{"rates", titleStyle}}, nil
	case paneTags:
		return d.tagsTitle()
	case paneFree:
		title = []span{{"free list ", titleStyle}}
		if t := d.tags.current(s); t != nil {
			title = append(title, span{t.Name, dim})
		}
		return title, nil
	case paneMisses:
		return []span{{"misses", titleStyle}}, nil
	case paneLimits:
		title = []span{{"limits", titleStyle}}
		if d.live != nil {
			title = append(title, span{" " + strconv.Itoa(len(d.live.Limits)), dim})
		}
		return title, d.limitsHint()
	case paneProcesses:
		return d.processesTitle()
	case panePolicies:
		return d.policiesTitle()
	case paneGhosts:
		return d.ghostsTitle()
	case paneCurve:
		return d.curveTitle()
	}
	return d.outputTitle()
}

func (d *dashboard) tagsTitle() (title, hint []span) {
	t := &d.tags
	title = []span{{"tags ", titleStyle}, {strconv.Itoa(len(t.rows)), dim}}
	first, last := t.top+1, min(t.top+t.page, len(t.rows))
	if len(t.rows) > t.page && t.page > 0 {
		title = append(title, span{"  " + strconv.Itoa(first) + "–" + strconv.Itoa(last), dim})
	}
	if m := &d.replay.moment; m.Rough {
		title = append(title, span{"  of " + exactTime(since(m.From, m.Known)), warnStyle})
	}
	c := t.sortColumn()
	name := tagColumns[c].title
	if c == nameColumn {
		name = "TAG"
	}
	opens := " free list "
	if t.poolless {
		opens = " call stack "
	}
	hint = []span{{" sort ", dim}, {name + sortMark(c, t.reverse), keyStyle}, {"  enter", keyStyle}, {opens, dim}}
	return title, hint
}

func (d *dashboard) limitsHint() []span {
	if d.viewing() {
		return []span{{" as they were ", dim}}
	}
	if d.o.ReadOnly || d.o.SetLimit == nil {
		return []span{{" read only ", dim}}
	}
	hint := []span{{" [ ]", keyStyle}, {" adjust ", dim}}
	if d.o.SetPolicy != nil {
		hint = append(hint, span{"a", keyStyle}, span{" policy ", dim})
	}
	return hint
}

func (d *dashboard) outputTitle() (title, hint []span) {
	title = []span{{"output ", titleStyle}, {plural(d.output.count, "line"), dim}}
	if d.output.errors > 0 {
		title = append(title, span{", " + count(d.output.errors) + " on stderr", warnStyle})
	}
	if d.output.back > 0 {
		title = append(title, span{", " + strconv.Itoa(d.output.back) + " below", dim})
	}
	back := " full screen "
	if d.zoom == paneOutput {
		back = " back "
	}
	return title, []span{{" o", keyStyle}, {back, dim}}
}

func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}
