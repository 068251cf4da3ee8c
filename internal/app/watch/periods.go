package watch

import (
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// periods tells pools how long an iteration of their program takes. It is a tap before others.
type periods struct {
	measure.Periods
	next    session.Tap                     // nil: none
	session atomic.Pointer[session.Session] // nil: not yet started
}

func newPeriods(next session.Tap) *periods {
	p := &periods{next: next}
	p.Send = func(process uint32, text string) { p.session.Load().SendMessage(process, text) }
	return p
}

// TakeRecord implements session.Tap.
func (p *periods) TakeRecord(r *wire.Record) {
	if p.next != nil {
		p.next.TakeRecord(r)
	}
	if p.session.Load() != nil {
		p.Periods.TakeRecord(r)
	}
}

// Flush implements session.Tap.
func (p *periods) Flush() {
	if p.next != nil {
		p.next.Flush()
	}
}

// Close implements session.Tap.
func (p *periods) Close() {
	if p.next != nil {
		p.next.Close()
	}
}
