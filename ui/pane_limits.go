package ui

import (
	"math"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// limitsPane shows every limit with its range, and changes the chosen one. Which changes are pending, acknowledged or
// refused is in the snapshot.
type limitsPane struct {
	basePane
	chosen string
	asked  map[string]*limitRequest // by name: what this dashboard asked for and has not reported the answer to
	policy string                   // that the limits are of
	done   uint64                   // changes of the policy until then
}

// limitRequest is a value that this dashboard asked for.
type limitRequest struct {
	request
	from, to float64
}

// ackTime is how long an answer is marked, in ns of snapshot time.
const ackTime = 8e9

func (p *limitsPane) title(*stats.Snapshot) (title, hint []span) {
	title = []span{{"limits", titleStyle}}
	if s := p.d.live; s != nil {
		title = append(title, span{" " + strconv.Itoa(len(s.Limits)), dim})
	}
	if text := p.d.mode.limitsHint; text != "" {
		return title, []span{{text, dim}}
	}
	if s := p.d.live; s != nil && len(s.Limits) > 0 {
		hint = []span{{" [ ]", keyStyle}, {" adjust ", dim}, {"=", keyStyle}, {" type", dim}}
	}
	if p.d.o.SetPolicy != nil {
		hint = append(hint, span{" a", keyStyle}, span{" policy", dim})
	}
	return title, append(hint, span{" ", dim})
}

// chosenIndex returns the chosen limit, or the first one if none is chosen or it is gone. limits must not be empty.
func (p *limitsPane) chosenIndex(limits []stats.Limit) int {
	return max(0, slices.IndexFunc(limits, func(l stats.Limit) bool { return l.Name == p.chosen }))
}

func (p *limitsPane) move(m motion) {
	if s := p.d.live; s != nil && len(s.Limits) > 0 {
		at := p.chosenIndex(s.Limits) + m.rowsDown(max(1, p.d.tags.page-1))
		p.chosen = s.Limits[max(0, min(at, len(s.Limits)-1))].Name
	}
}

// stepChosenLimit requests a new value of the chosen limit.
func (p *limitsPane) stepChosenLimit(step limitStep) {
	d := p.d
	at := p.chosenIndex(d.live.Limits)
	l := &d.live.Limits[at]
	if l.Kind == stats.LimitSizes {
		d.sayMessage(dim, l.Name+" is "+l.Text+": a list cannot be changed here")
		return
	}
	from, _ := p.wantedValue(l)
	to := clampToLimitRange(l, nextLimitValue(l, from, step, d.live.Device.Global))
	if to == from || math.IsNaN(to) {
		d.sayMessage(dim, l.Name+" is at the end of its range")
		return
	}
	p.requestLimitValue(at, to)
}

// setLimitByClick moves the chosen limit to a place on its slider, or by a step at the slider's ends, or to the word at that place.
func (p *limitsPane) setLimitByClick(c *canvas, x, y int) {
	row, word := c.cells[y*c.w:(y+1)*c.w], c.wordAtPlace(x, y)
	choice := -1
	if s := p.d.live; s != nil && len(s.Limits) > 0 {
		choice = slices.Index(s.Limits[p.chosenIndex(s.Limits)].Choices, word)
	}
	if text := row[x].text; choice < 0 && text != "◂" && text != "▸" && text != "━" {
		return
	}
	if why := adjustObstacle(p.d); why != "" {
		p.d.sayMessage(warnStyle, why)
		return
	}
	if choice >= 0 {
		p.requestLimitValue(p.chosenIndex(p.d.live.Limits), float64(choice))
		return
	}
	begin, end := x, x
	for row[begin].text == "━" || row[begin].text == "●" || begin == x && row[begin].text == "▸" {
		begin--
	}
	for row[end].text == "━" || row[end].text == "●" || end == x && row[end].text == "◂" {
		end++
	}
	switch row[x].text {
	case "◂":
		p.stepChosenLimit(stepLess)
	case "▸":
		p.stepChosenLimit(stepMore)
	default:
		p.moveLimitNearPlace(float64(x-begin-1) / float64(max(1, end-begin-2)))
	}
}

// moveLimitNearPlace changes the chosen limit by steps until its mark is nearest to a place on the slider, 0 to 1.
func (p *limitsPane) moveLimitNearPlace(place float64) {
	at := p.chosenIndex(p.d.live.Limits)
	l, device := &p.d.live.Limits[at], p.d.live.Device.Global
	from, _ := p.wantedValue(l)
	to, step := from, stepMore
	if place < positionInLimitRange(l, from, device) {
		step = stepLess
	}
	for range 1000 {
		next := clampToLimitRange(l, nextLimitValue(l, to, step, device))
		if next == to || math.IsNaN(next) || math.Abs(positionInLimitRange(l, next, device)-place) > math.Abs(positionInLimitRange(l, to, device)-place) {
			break
		}
		to = next
	}
	if to != from {
		p.requestLimitValue(at, to)
	}
}

// obstacleText says why limits cannot change now, empty if they can.
func (p *limitsPane) obstacleText() string {
	d := p.d
	switch {
	case d.mode.fixedLimits != "":
		return d.mode.fixedLimits
	case d.hasProgramEnded():
		return "the program has ended: its limits can no longer change"
	case d.live == nil || len(d.live.Limits) == 0:
		return "the program has not reported its limits yet"
	}
	return ""
}

// requestLimitValue asks for a value.
func (p *limitsPane) requestLimitValue(at int, to float64) {
	l := &p.d.live.Limits[at]
	p.chosen = l.Name
	p.d.ledger.rememberFiguresBefore(l.Name, p.d.live)
	sequence, err := p.d.o.SetLimit(l.Name, l.TextForTarget(to))
	if err != nil {
		p.d.ledger.noteRequestFailed(l.Name)
		p.d.sayMessage(badStyle, "✗ "+err.Error())
		return
	}
	from := l.Value
	if last := p.asked[l.Name]; last != nil {
		from = last.from
	}
	p.asked[l.Name] = &limitRequest{request{sequence: sequence}, from, to}
}

// changeLabel names a change of a limit with the value before and after it.
func (p *limitsPane) changeLabel(l *stats.Limit, from float64) string {
	return l.Name + " " + p.valueText(l, from) + " → " + p.valueText(l, l.Value)
}

// update reports the answers to what was asked for.
func (p *limitsPane) update(s *stats.Snapshot) {
	if p.policy != s.Policy || p.done != s.Change.Done {
		p.policy, p.done = s.Policy, s.Change.Done
		clear(p.asked) // the limits are other ones
		p.d.ledger.forgetLimitRequests()
		return
	}
	for i := range s.Limits {
		l := &s.Limits[i]
		q := p.asked[l.Name]
		if q == nil {
			continue
		}
		switch text, st := q.howRequestEndedText(&l.Request, s.Time, p.d.hasProgramEnded()); {
		case text == "":
			continue
		case st == goodStyle:
			from := p.d.ledger.limitValueBefore(l.Name, q.from)
			back := from == l.Value // step by step
			if back {
				from = q.from
			}
			label := p.changeLabel(l, from)
			p.d.ledger.noteChange(s, change{label: label, limit: l.Name, value: from, undone: back}, "✓ "+label+" "+text)
		default:
			p.d.ledger.noteRequestFailed(l.Name)
			p.d.sayMessage(st, "✗ "+l.Name+": "+text)
		}
		if !q.late {
			delete(p.asked, l.Name)
		}
	}
}

// wantedValue returns the value that a limit has, or will have, and whether it is pending.
func (p *limitsPane) wantedValue(l *stats.Limit) (value float64, pending bool) {
	switch q := p.asked[l.Name]; {
	case q != nil && !q.isAnsweredBy(&l.Request):
		return q.to, true
	case l.IsPending():
		return l.Wanted, true
	}
	return l.Value, false
}

// pendingSign is what follows a value: "…" pending, "✓" acknowledged, "✗" refused.
func (p *limitsPane) pendingSign(l *stats.Limit) span {
	_, pending := p.wantedValue(l)
	switch {
	case pending:
		return span{"…", warnStyle}
	case l.Refused != "":
		return span{"✗", badStyle}
	case l.AnsweredAt > 0 && differenceOrZero(l.AnsweredAt, p.d.live.Time) <= ackTime:
		return span{"✓", goodStyle}
	}
	return span{" ", plain}
}

// draw shows the latest state even while the screen is frozen, because limits are changed here.
func (p *limitsPane) draw(r region, _ *stats.Snapshot) {
	s := p.d.live
	if s == nil || len(s.Limits) == 0 {
		r.writeLines(1, 0, p.d.mode.noLimits, dim)
		return
	}
	at := p.chosenIndex(s.Limits)
	top := max(0, min(at-r.h+1, len(s.Limits)-r.h))
	columns := columnsOfLimits(s.Limits, r.w)
	for y := range min(r.h, len(s.Limits)-top) {
		p.drawLimit(r.subRegion(0, y, r.w, 1), columns, &s.Limits[top+y], top+y == at)
	}
	if p.d.zoom == paneLimits {
		p.d.ledger.drawChanges(r.withoutRows(len(s.Limits) + 1))
	}
}

// limitColumns are the widths of the columns. A value may be wider than its column if the name leaves room.
type limitColumns struct{ name, value, slider int }

// sliderMin is the smallest useful width of a slider.
const sliderMin = 6

func columnsOfLimits(limits []stats.Limit, w int) limitColumns {
	c := limitColumns{name: 8, value: 9}
	for i := range limits {
		c.name = max(c.name, textWidth(limits[i].Name))
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
		r.putCluster(0, 0, "▸", focusStyle)
		nameStyle = strong
	}
	value, pending := p.wantedValue(l)
	if pending {
		valueStyle = warnStyle
	}
	device, text := p.d.live.Device.Global, p.valueText(l, value)
	right := c.name + c.value + 2
	r.writeTextInColumns(1, 0, min(c.name, right-textWidth(text)-2), l.Name, nameStyle)
	r.writeTextBefore(right, 0, text, valueStyle)
	r.writeSpans(right+1, 0, p.pendingSign(l))
	switch {
	case c.slider > 0 && l.TakesWords():
		drawChoices(r.subRegion(right+3, 0, c.slider, 1), l, value)
	case c.slider > 0 && l.Kind != stats.LimitSizes:
		drawSlider(r.subRegion(right+3, 0, c.slider, 1), positionInLimitRange(l, value, device), chosen)
	}
}

// valueText formats a value: a size beyond the device's is no more than all of it.
func (p *limitsPane) valueText(l *stats.Limit, value float64) string {
	if live := p.d.live; live != nil && l.Kind == stats.LimitBytes && value < unlimitedBytes && live.Device.Global > 0 { // nil: nothing was drawn yet
		value = min(value, float64(live.Device.Global))
	}
	return limitValueText(l, value)
}

// drawChoices draws the other words that a limit may have. Where there is no room for them, it writes how many there are.
func drawChoices(r region, l *stats.Limit, value float64) {
	var others []item
	for i, word := range l.Choices {
		if float64(i) != value {
			others = append(others, item{i, []span{{word, dim}}})
		}
	}
	shown := fitItems(others, r.w, 1)
	if len(shown) == 0 {
		r.writeTextInColumns(0, 0, r.w, "1 of "+strconv.Itoa(len(l.Choices)), dim)
		return
	}
	r.writeAllItems(0, 0, 1, shown)
}

func drawSlider(r region, at float64, chosen bool) {
	st, knob := frameStyle, dim
	if chosen {
		st, knob = focusStyle, strong
	}
	r.repeatCluster(1, 0, r.w-2, "━", st)
	r.putCluster(0, 0, "◂", st)
	r.putCluster(r.w-1, 0, "▸", st)
	r.putCluster(1+int(at*float64(r.w-3)+0.5), 0, "●", knob)
}
