package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// prices are learned from the calls of the driver that were timed.
type prices struct {
	creates  cost.Fit // of blocks and slabs
	copies   cost.Fit // of blocks into which the program's bytes were copied
	releases cost.Fit
	parts    cost.Fit // creates alone
}

// measured lays a line through the calls that were timed; one of 0 ns was not.
func measured(fit *cost.Fit, size uint64, ns uint32) {
	if ns > 0 {
		fit.Add(float64(size), float64(ns))
	}
}

// create notes what a driver's create of a buffer took: not of what has no memory of its own. A part that is a hit took
// the create of a sub-buffer; one that is a miss may have taken that of a slab, too.
func (p *prices) create(e wire.CreateView) {
	if e.Outcome() == wire.OutcomeHit && e.SubAllocation() && e.Cost() > 0 {
		p.parts.Add(0, float64(e.Cost()))
	}
	created := e.Outcome() == wire.OutcomeMiss || e.Outcome() == wire.OutcomeDriver
	owns := e.Memory() == wire.MemoryBuffer && e.Access()&wire.UseHostPtr == 0
	if !created || !owns || e.SubAllocation() || e.CarriedOver() {
		return
	}
	fit := &p.creates
	if e.Access()&wire.CopyHostPtr != 0 {
		fit = &p.copies
	}
	measured(fit, e.Granted(), e.Cost())
}

// release notes what a release took that gave a buffer back to the driver.
func (p *prices) release(e wire.ReleaseView) {
	last := e.References() == 0 && !e.CarriedOver()
	if last && e.Outcome() == wire.OutcomeDriver && e.Memory() == wire.MemoryBuffer && !e.SubAllocation() {
		measured(&p.releases, e.Requested(), e.Cost())
	}
}

// blocks returns what is known of creates: copying often takes many times what the block does, so that creates that
// copy count only where there are no others.
func (p *prices) blocks() *cost.Fit {
	if p.creates.Calls == 0 {
		return &p.copies
	}
	return &p.creates
}

// device returns what the driver took in the recording. Slabs are priced as blocks; first touches do not show in a
// recording. Of parts only the create is: their release is timed with what the pool does. It takes about as long
// (gpumemtop probe).
func (p *prices) device() cost.Device {
	d := cost.Device{Create: p.blocks().Line(), Release: p.releases.Line(), Part: cost.Line{A: 2 * p.parts.Line().A}}
	d.AssumePart()
	return d
}
