package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// driverCosts are learned from timed driver calls.
type driverCosts struct {
	creates  cost.Usual // creates of blocks and slabs
	copies   cost.Usual // creates that copied the program's bytes
	releases cost.Usual
	parts    cost.Usual // creates of sub-allocations
}

// addTimedCall adds a timed call to a fit. A call of 0 ns was not timed.
func addTimedCall(fit *cost.Usual, size uint64, ns uint32) {
	if ns > 0 {
		fit.AddCall(size, float64(ns))
	}
}

// addCreate adds the create of a buffer that has memory of its own. A sub-allocation that was a hit took the create of
// a sub-buffer; a miss may include the create of a slab.
func (p *driverCosts) addCreate(e wire.CreateView) {
	if e.Outcome() == wire.OutcomeHit && e.SubAllocation() && e.Cost() > 0 {
		p.parts.AddCall(0, float64(e.Cost()))
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
	addTimedCall(fit, e.Granted(), e.Cost())
}

// addRelease adds a release that returned a buffer to the driver.
func (p *driverCosts) addRelease(e wire.ReleaseView) {
	last := e.References() == 0 && !e.CarriedOver()
	if last && e.Outcome() == wire.OutcomeDriver && e.Memory() == wire.MemoryBuffer && !e.SubAllocation() {
		addTimedCall(&p.releases, e.Requested(), e.Cost())
	}
}

// fitOfCreates returns the fit of creates. Copying often takes many times as long as creating, so creates that copy count
// only if there are no others.
func (p *driverCosts) fitOfCreates() *cost.Usual {
	if p.creates.Calls == 0 {
		return &p.copies
	}
	return &p.creates
}

// releasesLeast is how many timed releases show what a release takes. Under a pool there are few, with cold caches and of memory that
// the C library gives back: these took 500 times as long as releases in a loop. Fewer count as creates at most.
const releasesLeast = 8

// deviceCosts returns the driver costs in the recording. Slabs cost what blocks cost; first touches cannot be seen in a
// recording. The release of a sub-allocation is timed together with the pool's own work, so it is assumed to take as
// long as the create, as gpumemtop probe measures.
func (p *driverCosts) deviceCosts() cost.Device {
	if p.fitOfCreates().Calls == 1 {
		return cost.Device{} // one call, mostly the first, does not show what others take
	}
	d := cost.Device{Create: p.fitOfCreates().MedianLine(), Release: p.releases.MedianLine(), Part: cost.Line{A: 2 * p.parts.MedianLine().A}}
	const size = 1 << 20
	if create := d.Create.CallNS(size); p.releases.Calls < releasesLeast && create > 0 && d.Release.CallNS(size) > create {
		d.Release = d.Create
	}
	d.AssumePartCost()
	return d
}
