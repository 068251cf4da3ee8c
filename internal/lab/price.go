package lab

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// measured lays a line through the calls of the driver that were timed; one of 0 ns was not.
func measured(fit *cost.Fit, size uint64, ns uint32) {
	if ns > 0 {
		fit.Add(float64(size), float64(ns))
	}
}

// priceCreate notes what a driver's create of a buffer took: not of what has no memory of its own. A part that is a hit
// took the create of a sub-buffer; one that is a miss may have taken that of a slab, too.
func (r *resolver) priceCreate(e *wire.Event) {
	if e.Outcome == wire.OutcomeHit && e.Flags&wire.FlagPart != 0 && e.Cost > 0 {
		r.parts.Add(0, float64(e.Cost))
	}
	created := e.Outcome == wire.OutcomeMiss || e.Outcome == wire.OutcomeDriver
	if created && wire.Memory(e.Op) == wire.MemoryBuffer && e.Flags&(wire.FlagPart|wire.FlagCarried) == 0 {
		measured(&r.creates, e.Granted, e.Cost)
	}
}

// priceRelease notes what a release took that gave a buffer back to the driver.
func (r *resolver) priceRelease(e *wire.Event) {
	if e.Outcome == wire.OutcomeDriver && e.Granted == 0 && wire.Memory(e.Op) == wire.MemoryBuffer && e.Flags&(wire.FlagPart|wire.FlagCarried) == 0 {
		measured(&r.releases, e.Size, e.Cost)
	}
}

// device returns what the driver took in the recording. Slabs are priced as blocks; first touches are not told by a
// recording. Of parts only the create is: their release is timed with what the pool does. It takes about as long
// (gpumemtop probe).
func (r *resolver) device() cost.Device {
	d := cost.Device{Create: r.creates.Line(), Release: r.releases.Line(), Part: cost.Line{A: 2 * r.parts.Line().A}}
	d.AssumePart()
	return d
}
