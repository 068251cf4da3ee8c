package cut

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// carry writes what a process has as records: slabs, then what is free in the pool, then what the application holds.
func (p *part) carry(process *life.Process) {
	blocks := process.Blocks()
	for _, b := range blocks {
		if b.State == life.Slab {
			p.carried = append(p.carried, slab(process.Number, b))
		}
	}
	for _, b := range blocks {
		if b.State == life.Cached || b.State == life.Cooling {
			p.carried = append(p.carried, pooled(process.Number, b)...)
		}
	}
	for _, o := range process.Objects() {
		p.carried = append(p.carried, object(process.Number, o))
	}
	if gauge, ok := p.gauges[process.Number]; ok {
		p.carried = append(p.carried, gauge)
	}
}

func slab(process uint32, b *life.Block) wire.Record {
	return wire.Record{Process: process, Thread: b.Thread, Event: wire.Event{
		Time: b.Freed, Kind: wire.KindSlab, Flags: wire.FlagCarried, Scope: b.Scope, Access: b.Access,
		Link: b.Number, Granted: b.Size,
	}}
}

// pooled writes a free block as the life and the end of the object that had it last.
func pooled(process uint32, b *life.Block) []wire.Record {
	flags := uint8(wire.FlagCarried)
	if b.Part {
		flags |= wire.FlagPart
	}
	create := wire.Record{Process: process, Thread: b.Thread, Event: wire.Event{
		Time: b.Freed, Kind: wire.KindCreate, Outcome: wire.OutcomeHit, Flags: flags, Scope: b.Scope, Access: b.Access,
		Tag: b.Tag, Object: b.Owner, Size: b.Size, Granted: b.Size, Link: b.Number,
	}}
	release := create
	release.Kind, release.Size, release.Granted, release.Outcome = wire.KindRelease, 0, 0, wire.OutcomeCached
	if b.State == life.Cooling {
		release.Outcome = wire.OutcomeCooling
	}
	return []wire.Record{create, release}
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
