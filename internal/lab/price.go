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

// tally counts calls of one kind, for a cost.Line: those of sizes below its break, and the others.
type tally struct {
	from         uint64 // bytes from which the line itself holds
	small, large calls
}

// calls are so many that have so many bytes together.
type calls struct{ n, bytes uint64 }

func (t *tally) add(size uint64) { t.addIn(size, size) }

// addIn adds a call for some of the bytes of a block, whose size decides how they are served.
func (t *tally) addIn(block, bytes uint64) {
	c := &t.large
	if block < t.from {
		c = &t.small
	}
	c.n++
	c.bytes += bytes
}

// price returns ns. The line has its break where the tally has it.
func (t *tally) price(l *cost.Line) float64 {
	return l.A*float64(t.large.n) + l.B*float64(t.large.bytes) + l.Below.A*float64(t.small.n) + l.Below.B*float64(t.small.bytes)
}
