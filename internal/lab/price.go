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

// priceCreate notes what a driver's create of a buffer took: not of parts, which are sub-buffers of a slab, nor of what
// has no memory of its own.
func (r *resolver) priceCreate(e *wire.Event) {
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

// device returns what the driver took in the recording. Slabs are priced as blocks; neither first touches nor parts are
// told by a recording.
func (r *resolver) device() cost.Device {
	return cost.Device{Create: r.creates.Line(), Release: r.releases.Line()}
}
