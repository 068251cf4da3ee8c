package ui

import "math/bits"

// curveMark is a limit that is marked on the curve.
type curveMark struct {
	limit uint64
	sign  string
	name  string
	style style
}

// curveMarks returns the limit in force, where there is one, and the one that is supposed.
func (d *dashboard) curveMarks() (marks []curveMark) {
	if present, limited := d.live.CachedMost(); limited {
		name := "now"
		if d.viewing() {
			name = "set"
		}
		marks = append(marks, curveMark{present, "│", name, strong})
	}
	if limit := d.supposed(); limit > 0 {
		marks = append(marks, curveMark{limit, "┊", "with", keyStyle})
	}
	return marks
}

// poolless reports whether the programs have no pool: what the curve tells is what one would do.
func (d *dashboard) poolless() bool { return d.live != nil && d.live.Policy == "none" }

// poolWords say what there is where there is no pool.
func (d *dashboard) poolWords() []item {
	if !d.poolless() {
		return nil
	}
	return []item{{2, []span{{"now ", dim}, {"no pool", plain}, {" 0 %", plain}}}}
}

// supposes reports whether the keys of limits move a mark on the curve, because there is no limit that they could change.
func (d *dashboard) supposes() bool {
	return d.viewing() || d.o.Attached || d.o.ReadOnly || d.ended() || d.poolless()
}

// supposed returns the limit at that mark, 0 where there is none: where nothing has a limit, there is one from the start.
func (d *dashboard) supposed() uint64 {
	switch {
	case !d.supposes():
		return 0
	case d.limits.supposed == 0 && d.poolless():
		return d.curve.enough()
	}
	return d.limits.supposed
}

// enough returns the power of two from which on nearly all is hit that can be.
func (c *Curve) enough() uint64 {
	return supposedMin << bits.Len64((max(1, min(c.Enough.Limit, supposedMost))-1)/supposedMin)
}

// What can be supposed, in bytes: powers of two.
const (
	supposedMin  = 4 << 10
	supposedMost = 1 << 40
)

// suppose moves the mark: to half of what is supposed, or twice.
func (d *dashboard) suppose(a action) {
	if d.noCurve() != "" {
		return
	}
	limit := d.supposed()
	if limit == 0 {
		limit = d.curve.enough()
	}
	if a == actLess || a == actHalve {
		limit /= 2
	} else {
		limit *= 2
	}
	d.limits.supposed = max(supposedMin, min(limit, supposedMost))
}
