package randomrun

import (
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const slabSize = 1 << 20

type slab struct {
	number, free uint64
	class        uint16
}

type part struct {
	object, number, size uint64
	slab                 *slab
	cooling              bool
}

func (w *world) createSubAlloc(p *process) {
	if w.drawBelow(20) == 0 {
		w.addCall(p, wire.Event{Kind: wire.KindSlab, Link: p.nextNumber(), Granted: 1 << 30, Status: -4})
	}
	made := part{object: p.nextNumber(), number: p.nextNumber(), size: w.drawSize(1 << 18)}
	outcome, reason, class := wire.OutcomeHit, wire.Miss(0), w.drawContext()
	for _, s := range p.slabs {
		if s.free >= made.size && s.class == class {
			made.slab = s
		}
	}
	if made.slab == nil {
		made.slab, outcome, reason = &slab{p.nextNumber(), slabSize, class}, wire.OutcomeMiss, wire.MissCold
		p.slabs = append(p.slabs, made.slab)
		w.addCall(p, wire.Event{Kind: wire.KindSlab, Link: made.slab.number, Granted: slabSize, Scope: class, Access: 1})
	}
	made.slab.free -= made.size
	p.parts = append(p.parts, made)
	w.addCall(p, wire.Event{
		Kind: wire.KindCreate, Object: made.object, Link: made.number, Outcome: outcome, Reason: uint8(reason), Flags: wire.FlagSubAlloc,
		Scope: class, Access: 1, Granted: made.size, Size: made.size - made.size/10, Tag: w.drawTag(),
	})
	w.maybeAddGauge(p)
}

// releaseOrCoolSubAlloc draws a part: it is released, or its cooling ends.
func (w *world) releaseOrCoolSubAlloc(p *process) {
	if len(p.parts) == 0 {
		return
	}
	i := w.drawBelow(len(p.parts))
	ends := &p.parts[i]
	if ends.cooling {
		w.addEvent(p, wire.Event{Kind: wire.KindCooled, Link: ends.number, Granted: ends.size, Flags: wire.FlagSubAlloc})
	} else {
		outcome := []wire.Outcome{wire.OutcomeCached, wire.OutcomeCooling}[w.drawBelow(2)]
		w.addCall(p, wire.Event{Kind: wire.KindRelease, Object: ends.object, Link: ends.number, Outcome: outcome, Flags: wire.FlagSubAlloc})
		if ends.cooling = outcome == wire.OutcomeCooling; ends.cooling {
			return
		}
	}
	ends.slab.free += ends.size
	p.parts = slices.Delete(p.parts, i, i+1)
	w.maybeAddGauge(p)
}

// maybeAddGauge sometimes adds that each slab has its free bytes in one range.
func (w *world) maybeAddGauge(p *process) {
	if w.drawBelow(2) == 0 {
		return
	}
	e := wire.Event{Kind: wire.KindGauge}
	var squares float64
	for _, s := range p.slabs {
		if s.free > 0 {
			e.Granted, e.Size, e.Object = e.Granted+s.free, max(e.Size, s.free), e.Object+1
			squares += float64(s.free * s.free)
		}
	}
	e.Link = math.Float64bits(squares)
	w.addEvent(p, e)
}

// evictSlab evicts a slab without parts, or the only one if all of its parts are cooling.
func (w *world) evictSlab(p *process) {
	for i, s := range p.slabs {
		cool := w.SlabsCool && len(p.slabs) == 1 && !slices.ContainsFunc(p.parts, func(p part) bool { return !p.cooling })
		if s.free == slabSize || cool {
			if cool {
				p.parts = nil
			}
			w.addEvict(p, s.number, slabSize)
			p.slabs = slices.Delete(p.slabs, i, i+1)
			return
		}
	}
}
