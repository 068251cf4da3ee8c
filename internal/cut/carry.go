package cut

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// carry writes what a process has as records: slabs, then what is free in the pool, the longest first, then what the
// application holds. What only says more about these comes last.
func (p *part) carry(process *life.Process) {
	number, blocks := process.Number, process.Blocks()
	slices.SortFunc(blocks, func(a, b *life.Block) int { return cmp.Compare(a.Serial, b.Serial) })
	for _, b := range blocks {
		if b.State == life.Slab {
			p.carried = append(p.carried, slab(number, b))
		}
	}
	for _, b := range blocks {
		if b.State == life.Cached || b.State == life.Cooling {
			create, release := pooled(number, b)
			p.carried = append(p.carried, create, release)
		}
	}
	for _, o := range process.Objects() {
		create := object(number, o)
		p.carried = append(p.carried, create)
		if o.Released {
			p.carried = append(p.carried, end(create, wire.OutcomePinned))
		}
	}
	for _, b := range blocks {
		if b.State == life.InUse && b.Cooled {
			p.carried = append(p.carried, cooled(number, b, p.options.Since))
		}
	}
}

func slab(process uint32, b *life.Block) wire.Record {
	return wire.Record{Process: process, Thread: b.Thread, Event: wire.Event{
		Time: b.Freed, Kind: wire.KindSlab, Flags: wire.FlagCarried, Scope: b.Scope, Access: b.Access,
		Link: b.Number, Granted: b.Size,
	}}
}

// pooled writes a free block as the life and the end of the object that had it last.
func pooled(process uint32, b *life.Block) (create, release wire.Record) {
	create = wire.Record{Process: process, Thread: b.Thread, Event: wire.Event{
		Time: b.Freed, Kind: wire.KindCreate, Outcome: wire.OutcomeHit, Flags: wire.FlagCarried | partFlag(b),
		Scope: b.Scope, Access: b.Access, Tag: b.Tag, Object: b.Owner, Size: b.Size, Granted: b.Size, Link: b.Number,
	}}
	if b.State == life.Cooling {
		return create, end(create, wire.OutcomeCooling)
	}
	return create, end(create, wire.OutcomeCached)
}

// end writes the end of an object that was written.
func end(create wire.Record, outcome wire.Outcome) wire.Record {
	r := wire.Record{Process: create.Process, Thread: create.Thread}
	r.Kind, r.Time, r.Flags = wire.KindRelease, create.Time, create.Flags&(wire.FlagCarried|wire.FlagPart)
	r.Object, r.Outcome = create.Object, outcome
	if create.Outcome == wire.OutcomeHit || create.Outcome == wire.OutcomeMiss {
		r.Link = create.Link
	}
	return r
}

func object(process uint32, o *life.Object) wire.Record {
	link := o.Block
	if link == 0 {
		link = o.Parent
	}
	return wire.Record{Process: process, Thread: o.Thread, Event: wire.Event{
		Time: o.Started, Duration: o.Duration, Cost: o.Cost, Kind: wire.KindCreate, Op: uint8(o.Kind),
		Outcome: o.Outcome, Reason: o.Reason, Flags: o.Flags | wire.FlagCarried, Scope: o.Scope, Access: o.Access,
		Tag: o.Tag, Object: o.Number, Size: o.Size, Granted: o.Granted, Link: link,
	}}
}

func cooled(process uint32, b *life.Block, time uint64) wire.Record {
	return wire.Record{Process: process, Thread: b.Thread, Event: wire.Event{
		Time: time, Kind: wire.KindCooled, Flags: partFlag(b), Link: b.Number, Granted: b.Size,
	}}
}

func partFlag(b *life.Block) uint8 {
	if b.Part {
		return wire.FlagPart
	}
	return 0
}
