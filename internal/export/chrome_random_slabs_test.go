package export

import (
	"slices"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

type heldSlab struct{ number, size, free uint64 }

type heldPart struct {
	object, number, size uint64
	slab                 *heldSlab
	cooling              bool
}

func (w *world) createPart(process int) {
	w.objects++
	part := heldPart{object: w.objects, number: w.objects, size: rapid.Uint64Range(1, 1<<18).Draw(w.t, "part")}
	outcome := wire.OutcomeHit
	for _, slab := range w.slabs[process] {
		if slab.free >= part.size {
			part.slab = slab
		}
	}
	if part.slab == nil {
		w.objects++
		part.slab, outcome = &heldSlab{w.objects, mib, mib}, wire.OutcomeMiss
		w.slabs[process] = append(w.slabs[process], part.slab)
		w.add(process, wire.KindSlab, func(r *wire.Record) { r.Link, r.Granted = part.slab.number, mib })
	}
	part.slab.free -= part.size
	w.parts[process] = append(w.parts[process], part)
	w.add(process, wire.KindCreate, func(r *wire.Record) {
		r.Object, r.Link, r.Outcome, r.Flags = part.object, part.number, outcome, wire.FlagSubAlloc
		r.Granted, r.Size, r.Tag = part.size, part.size, uint32(rapid.IntRange(0, 3).Draw(w.t, "tag"))
	})
}

// endPart releases a part, or cools one that was released.
func (w *world) endPart(process int) {
	parts := w.parts[process]
	if len(parts) == 0 {
		return
	}
	i := rapid.IntRange(0, len(parts)-1).Draw(w.t, "part")
	part := &parts[i]
	if part.cooling {
		w.add(process, wire.KindCooled, func(r *wire.Record) { r.Link, r.Granted, r.Flags = part.number, part.size, wire.FlagSubAlloc })
	} else {
		outcome := rapid.SampledFrom([]wire.Outcome{wire.OutcomeCached, wire.OutcomeCooling}).Draw(w.t, "outcome")
		w.add(process, wire.KindRelease, func(r *wire.Record) {
			r.Object, r.Link, r.Outcome, r.Flags = part.object, part.number, outcome, wire.FlagSubAlloc
		})
		if part.cooling = outcome == wire.OutcomeCooling; part.cooling {
			return
		}
	}
	part.slab.free += part.size
	w.parts[process] = slices.Delete(parts, i, i+1)
}

// onlyCooling reports whether a process has one slab with parts that cool and no others; they go with it.
func (w *world) onlyCooling(process int) bool {
	for _, part := range w.parts[process] {
		if !part.cooling {
			return false
		}
	}
	if len(w.slabs[process]) != 1 {
		return false
	}
	w.parts[process] = nil
	return true
}

func (w *world) evictSlab(process int) {
	for i, slab := range w.slabs[process] {
		if slab.free == slab.size || w.onlyCooling(process) {
			w.add(process, wire.KindEvict, func(r *wire.Record) { r.Link, r.Granted = slab.number, slab.size })
			w.slabs[process] = slices.Delete(w.slabs[process], i, i+1)
			return
		}
	}
}
