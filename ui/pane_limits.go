package ui

import (
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// limitsPane shows every limit with its range, and changes the chosen one. The changes that are pending, acknowledged
// or refused are in the snapshot.
type limitsPane struct {
	basePane
	chosen string
	before map[string]float64 // the values of the limits that are pending, from before the first request
}

// answerTime is how long a change may stay unanswered, and ackTime how long an answer is marked, in ns of snapshot time.
const (
	answerTime = 5e9
	ackTime    = 8e9
)

func (p *limitsPane) title(*stats.Snapshot) (title, hint []span) {
	title = []span{{"limits", titleStyle}}
	if s := p.d.live; s != nil {
		title = append(title, span{" " + strconv.Itoa(len(s.Limits)), dim})
	}
	if text := p.d.mode.limitsHint; text != "" {
		return title, []span{{text, dim}}
	}
	hint = []span{{" [ ]", keyStyle}, {" adjust ", dim}, {"=", keyStyle}, {" type ", dim}}
	if p.d.o.SetPolicy != nil {
		hint = append(hint, span{"a", keyStyle}, span{" policy ", dim})
	}
	return title, hint
}

// current returns the chosen limit, or the first one if none is chosen or it is gone. limits must not be empty.
func (p *limitsPane) current(limits []stats.Limit) int {
	return max(0, slices.IndexFunc(limits, func(l stats.Limit) bool { return l.Name == p.chosen }))
}

func (p *limitsPane) move(a action) {
	if s := p.d.live; s != nil && len(s.Limits) > 0 {
		at := p.current(s.Limits) + step(a, max(1, p.d.tags.page-1))
		p.chosen = s.Limits[max(0, min(at, len(s.Limits)-1))].Name
	}
}

// adjust asks for a new value of the chosen limit.
func (p *limitsPane) adjust(a action) {
	d := p.d
	if why := p.obstacle(); why != "" {
		d.say(warnStyle, why)
		return
	}
	at := p.current(d.live.Limits)
	l := &d.live.Limits[at]
	if l.Kind == stats.LimitSizes {
		d.say(dim, l.Name+" is "+l.Text+": a list cannot be changed here")
	} else if to, ok := nextLimit(l, a, d.live.Device.Global); ok {
		p.request(at, to)
	} else {
		d.say(dim, l.Name+" is at the end of its range")
	}
}

// obstacle says why limits cannot change now, empty if they can.
func (p *limitsPane) obstacle() string {
	d := p.d
	switch {
	case d.mode.fixedLimits != "":
		return d.mode.fixedLimits
	case d.ended():
		return "the program has ended: its limits can no longer change"
	case d.live == nil || len(d.live.Limits) == 0:
		return "the program has not reported its limits yet"
	}
	return ""
}

// request asks for a value, and marks it as pending in the dashboard's own copy of the snapshot.
func (p *limitsPane) request(at int, to float64) {
	s := *p.d.live
	s.Limits = slices.Clone(s.Limits)
	l := &s.Limits[at]
	p.chosen = l.Name
	if !l.Pending {
		p.before[l.Name] = l.Value
	}
	l.Wanted, l.Pending, l.Refused, l.Asked, l.AskedAt, l.AnsweredAt = to, true, "", l.Asked+1, s.Time, 0
	p.d.live = &s
	p.d.o.SetLimit(l.Name, l.TextOf(to))
}

// update returns the next snapshot with the pending changes that it does not know of yet, and reports the answers to the
// others.
func (p *limitsPane) update(last, next *stats.Snapshot) *stats.Snapshot {
	if last == nil || last.Policy != next.Policy {
		clear(p.before)
		p.d.ledger.forgetLimits()
		return next
	}
	merged := *next
	for i := range last.Limits {
		old := &last.Limits[i]
		at := slices.IndexFunc(merged.Limits, func(l stats.Limit) bool { return l.Name == old.Name })
		if !old.Pending || at < 0 {
			continue
		}
		l := &merged.Limits[at]
		late := since(old.AskedAt, next.Time) > answerTime
		switch {
		case l.Asked < old.Asked && !late:
			merged.Limits = slices.Clone(merged.Limits)
			l = &merged.Limits[at]
			l.Wanted, l.Pending, l.Refused, l.Asked, l.AskedAt, l.AnsweredAt = old.Wanted, true, "", old.Asked, old.AskedAt, 0
		case l.Asked < old.Asked, l.Pending && late && since(old.AskedAt, last.Time) <= answerTime:
			p.d.ledger.failed(l.Name)
			p.d.say(warnStyle, "✗ "+l.Name+": the program does not answer")
		case l.Pending:
		case l.Refused != "":
			p.d.ledger.failed(l.Name)
			p.d.say(badStyle, "✗ "+l.Name+": "+l.Refused)
		default:
			from, known := p.before[l.Name]
			if !known {
				from = old.Value
			}
			label := l.Name + " " + limitText(l, from) + " → " + limitText(l, l.Value)
			p.d.say(goodStyle, "✓ "+label+" acknowledged")
			p.d.ledger.add(&merged, change{label: label, limit: l.Name, value: from})
		}
	}
	return &merged
}

// wanted returns the value that a limit has, or will have.
func wanted(l *stats.Limit) float64 {
	if l.Pending {
		return l.Wanted
	}
	return l.Value
}

// limitMark is what follows a value: "…" pending, "✓" acknowledged, "✗" refused.
func limitMark(l *stats.Limit, now uint64) span {
	switch {
	case l.Pending:
		return span{"…", warnStyle}
	case l.Refused != "":
		return span{"✗", badStyle}
	case l.AnsweredAt > 0 && since(l.AnsweredAt, now) <= ackTime:
		return span{"✓", goodStyle}
	}
	return span{" ", plain}
}

// draw shows the latest state even while the screen is frozen, because limits are changed here.
func (p *limitsPane) draw(r region, _ *stats.Snapshot) {
	s := p.d.live
	if s == nil || len(s.Limits) == 0 {
		r.lines(1, 0, p.d.mode.noLimits, dim)
		return
	}
	at := p.current(s.Limits)
	top := max(0, min(at-r.h+1, len(s.Limits)-r.h))
	columns := columnsOf(s.Limits, r.w)
	for y := range min(r.h, len(s.Limits)-top) {
		p.drawLimit(r.sub(0, y, r.w, 1), columns, &s.Limits[top+y], top+y == at)
	}
	if p.d.zoom == paneLimits {
		p.d.ledger.draw(r.rows(len(s.Limits) + 1))
	}
}

// limitColumns are the widths of the columns. A value may be wider than its column if the name leaves room.
type limitColumns struct{ name, value, slider int }

// sliderMin is the smallest useful width of a slider.
const sliderMin = 6

func columnsOf(limits []stats.Limit, w int) limitColumns {
	c := limitColumns{name: 8, value: 9}
	for i := range limits {
		c.name = max(c.name, width(limits[i].Name))
	}
	c.name = min(c.name, max(8, w-c.value-4))
	if c.slider = w - c.name - c.value - 7; c.slider < sliderMin {
		c.slider = 0
	}
	return c
}

func (p *limitsPane) drawLimit(r region, c limitColumns, l *stats.Limit, chosen bool) {
	nameStyle, valueStyle := plain, strong
	if p.d.mode.fixedLimits != "" || l.Kind == stats.LimitSizes {
		nameStyle, valueStyle = dim, dim
	}
	if chosen {
		r.put(0, 0, "▸", focusStyle)
		nameStyle = strong
	}
	if l.Pending {
		valueStyle = warnStyle
	}
	text := limitText(l, withinDevice(l, wanted(l), p.d.live.Device.Global))
	right := c.name + c.value + 2
	r.textIn(1, 0, min(c.name, right-width(text)-2), l.Name, nameStyle)
	r.right(right, 0, text, valueStyle)
	r.spans(right+1, 0, limitMark(l, p.d.live.Time))
	switch {
	case c.slider > 0 && l.Words():
		drawChoices(r.sub(right+3, 0, c.slider, 1), l)
	case c.slider > 0 && l.Kind != stats.LimitSizes:
		drawSlider(r.sub(right+3, 0, c.slider, 1), position(l, wanted(l), p.d.live.Device.Global), chosen)
	}
}

// drawChoices draws the other words that a limit takes, as far as there is room; how many there are, if there is none.
func drawChoices(r region, l *stats.Limit) {
	var others []item
	for i, word := range l.Choices {
		if float64(i) != wanted(l) {
			others = append(others, item{i, []span{{word, dim}}})
		}
	}
	shown := fit(others, r.w, 1)
	if len(shown) == 0 {
		r.textIn(0, 0, r.w, "1 of "+strconv.Itoa(len(l.Choices)), dim)
		return
	}
	r.lineOf(0, 0, 1, shown)
}

func drawSlider(r region, at float64, chosen bool) {
	st, knob := frameStyle, dim
	if chosen {
		st, knob = focusStyle, strong
	}
	r.repeat(1, 0, r.w-2, "━", st)
	r.put(0, 0, "◂", st)
	r.put(r.w-1, 0, "▸", st)
	r.put(1+int(at*float64(r.w-3)+0.5), 0, "●", knob)
}
