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

// drawLimits draws every limit with its range. It shows the latest state even when the screen is frozen, because it
// is where limits are changed.
func (d *dashboard) drawLimits(r region) {
	s := d.live
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
	for y := range min(r.h, len(s.Limits)-top) {
		d.drawLimit(r.sub(0, y, r.w, 1), &s.Limits[top+y], top+y == at, s.Device.Global)
	}
}

func (d *dashboard) drawLimit(r region, l *model.Limit, chosen bool, device uint64) {
	const value = 9
	name := min(18, max(8, r.w-value-4))
	slider := r.w - name - value - 7
	wanted, pending := d.limits.wanted(l)
	nameStyle, valueStyle := plain, strong
	if d.o.ReadOnly || d.o.SetLimit == nil {
		nameStyle, valueStyle = dim, dim
	}
	if chosen {
		r.put(0, 0, "▸", focusStyle)
		nameStyle = strong
	}
	if pending {
		valueStyle = warnStyle
	}
	r.textIn(1, 0, name, l.Name, nameStyle)
	r.sub(name+1, 0, value+1, 1).right(value+1, 0, limitText(wanted, l.Bytes), valueStyle)
	r.spans(name+value+3, 0, d.limitMark(l, pending))
	if slider >= 8 {
		drawSlider(r.sub(name+value+5, 0, slider, 1), position(l, wanted, device), chosen)
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
