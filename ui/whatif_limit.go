package ui

import "math/bits"

// curveMark is a limit that is marked on the curve.
type curveMark struct {
	limit uint64
	sign  string
	name  string
	style style
}

// limitMarks returns the limit in force, if there is one, and the limit that the user tries.
func (p *curvePane) limitMarks() (limitMarks []curveMark) {
	if present, limited := p.d.live.MaxCachedBytes(); limited {
		limitMarks = append(limitMarks, curveMark{present, "│", p.d.mode.limitName, strong})
	}
	if limit := p.triedLimit(); limit > 0 {
		limitMarks = append(limitMarks, curveMark{limit, "┊", "with", keyStyle})
	}
	return limitMarks
}

// poollessNote says that the curve is of a pool which the programs do not have; empty if they have it.
func (p *curvePane) poollessNote() []item {
	if !p.d.hasNoPool() {
		return nil
	}
	return []item{{2, []span{{"now ", dim}, {"no pool", plain}, {" 0 %", plain}}}}
}

// triesLimits reports whether the keys for limits move a mark on the curve, because there is no limit that they could change.
func (p *curvePane) triesLimits() bool {
	return p.d.mode.fixedLimits != "" || p.d.hasProgramEnded() || p.d.hasNoPool()
}

// triedLimit returns the limit that the user tries, 0 if there is none. Without a pool there always is one.
func (p *curvePane) triedLimit() uint64 {
	switch {
	case !p.triesLimits():
		return 0
	case p.tried == 0 && p.d.hasNoPool():
		return p.sufficientLimit()
	}
	return p.tried
}

// sufficientLimit returns the least power of two with nearly the best hit rate.
func (p *curvePane) sufficientLimit() uint64 {
	return triedMin << bits.Len64((max(1, min(p.curve.Enough.Limit, triedMax))-1)/triedMin)
}

// Bounds of the limits to try, in bytes. All are powers of two.
const (
	triedMin = 4 << 10
	triedMax = 1 << 40
)

// stepTriedLimit halves or doubles the limit to try.
func (p *curvePane) stepTriedLimit(s limitStep) {
	if p.missingText() != "" {
		return
	}
	limit := p.triedLimit()
	if limit == 0 {
		limit = p.sufficientLimit()
	}
	if s.isUpward() {
		limit *= 2
	} else {
		limit /= 2
	}
	p.tried = max(triedMin, min(limit, triedMax))
}
