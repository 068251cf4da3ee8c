package ui

import "math/bits"

// curveMark is a limit that is marked on the curve.
type curveMark struct {
	limit uint64
	sign  string
	name  string
	style style
}

// marks returns the limit in force, if there is one, and the limit that the user tries.
func (p *curvePane) marks() (marks []curveMark) {
	if present, limited := p.d.live.CachedMost(); limited {
		marks = append(marks, curveMark{present, "│", p.d.mode.limitName, strong})
	}
	if limit := p.limit(); limit > 0 {
		marks = append(marks, curveMark{limit, "┊", "with", keyStyle})
	}
	return marks
}

// poolNote says that the curve is of a pool which the programs do not have; empty if they have it.
func (p *curvePane) poolNote() []item {
	if !p.d.poolless() {
		return nil
	}
	return []item{{2, []span{{"now ", dim}, {"no pool", plain}, {" 0 %", plain}}}}
}

// tries reports whether the keys for limits move a mark on the curve, because there is no limit that they could change.
func (p *curvePane) tries() bool { return p.d.mode.fixedLimits != "" || p.d.ended() || p.d.poolless() }

// limit returns the limit that the user tries, 0 if there is none. Without a pool there always is one.
func (p *curvePane) limit() uint64 {
	switch {
	case !p.tries():
		return 0
	case p.tried == 0 && p.d.poolless():
		return p.limitEnough()
	}
	return p.tried
}

// limitEnough returns the least power of two with nearly the best hit rate.
func (p *curvePane) limitEnough() uint64 {
	return triedMin << bits.Len64((max(1, min(p.curve.Enough.Limit, triedMax))-1)/triedMin)
}

// Bounds of the limits to try, in bytes. All are powers of two.
const (
	triedMin = 4 << 10
	triedMax = 1 << 40
)

// adjust halves or doubles the limit to try.
func (p *curvePane) adjust(s limitStep) {
	if p.missing() != "" {
		return
	}
	limit := p.limit()
	if limit == 0 {
		limit = p.limitEnough()
	}
	if s.up() {
		limit *= 2
	} else {
		limit /= 2
	}
	p.tried = max(triedMin, min(limit, triedMax))
}
