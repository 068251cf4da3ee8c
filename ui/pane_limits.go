package ui

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// limitMark is what stands behind a value: "…" on its way, "✓" acknowledged, "✗" refused.
func (d *dashboard) limitMark(l *model.Limit, pending bool) span {
	if pending {
		return span{"…", warnStyle}
	}
	if l.Refused != "" {
		return span{"✗", badStyle}
	}
	if _, ok := d.limits.done[l.Name]; ok {
		return span{"✓", goodStyle}
	}
	return span{" ", plain}
}

// noPool says why there is nothing to change in a program that was not started here.
const noPool = "limits cannot be changed from outside (gpumemtop ./app gives a pool)"

// drawLimits draws every limit with its range. It shows the latest state even when the screen is frozen, because it
// is where limits are changed.
func (d *dashboard) drawLimits(r region) {
	s := d.live
	if d.attached() {
		for y, line := range wrap(noPool, r.w-2) {
			r.text(1, y, line, dim)
		}
		return
	}
	if s == nil || len(s.Limits) == 0 {
		r.text(1, 0, "this policy has no limits", dim)
		return
	}
	chosen := d.limits.chosenOf(s.Limits)
	at := 0
	for i := range s.Limits {
		if &s.Limits[i] == chosen {
			at = i
		}
	}
	top := max(0, min(at-r.h+1, len(s.Limits)-r.h))
	columns := columnsOf(s.Limits, r.w)
	for y := range min(r.h, len(s.Limits)-top) {
		d.drawLimit(r.sub(0, y, r.w, 1), columns, &s.Limits[top+y], top+y == at, s.Device.Global)
	}
}

// limitColumns are the widths of the columns of limits. A value may be wider than its column where the name leaves room:
// words are.
type limitColumns struct{ name, value, slider int }

// sliderMin is the least width of a slider that says anything.
const sliderMin = 6

func columnsOf(limits []model.Limit, w int) limitColumns {
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

func (d *dashboard) drawLimit(r region, c limitColumns, l *model.Limit, chosen bool, device uint64) {
	wanted, pending := d.limits.wanted(l)
	nameStyle, valueStyle := plain, strong
	if d.o.ReadOnly || d.o.SetLimit == nil || l.Kind == model.LimitSizes {
		nameStyle, valueStyle = dim, dim
	}
	if chosen {
		r.put(0, 0, "▸", focusStyle)
		nameStyle = strong
	}
	if pending {
		valueStyle = warnStyle
	}
	text := limitText(l, wanted)
	right := c.name + c.value + 2
	r.textIn(1, 0, min(c.name, right-width(text)-2), l.Name, nameStyle)
	r.right(right, 0, text, valueStyle)
	r.spans(right+1, 0, d.limitMark(l, pending))
	if c.slider > 0 && l.Kind != model.LimitSizes {
		drawSlider(r.sub(right+3, 0, c.slider, 1), position(l, wanted, device), chosen)
	}
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
