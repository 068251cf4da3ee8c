package stats

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// account counts one process, or the whole run. The gauges are those of the heap: the account only keeps their peaks. The counters,
// the last second and the history count the same events.
type account struct {
	counters Totals // gauges, percentiles and estimates in it stay 0: the method totals fills them in
	window   window
	history  history

	*heap.Gauges
	*heap.Population

	*workings
	planning planning
	held     recent // bytes in use
}

// workings are the measurements behind percentiles and estimates. They take 4 KB: a process that has left gives them up.
type workings struct {
	calls, driver Histogram
	costs         costs
	steady        Steady
}

// create counts a create that succeeded.
func (a *account) create(o *heap.Object) {
	countCreate(a.window.current(), &a.history.pending, o)
	c := &a.counters
	c.Creates++
	measured(&a.calls, o.Duration)
	if o.Alternative {
		a.alternative(o)
		return
	}
	switch o.Outcome {
	case wire.OutcomeHit:
		c.Hits++
		if o.SubAllocation && o.Cost > 0 {
			c.SubBufferHits++
		}
		a.served(o.Route)
		c.HitNS += uint64(o.Duration)
		c.PoolNS += uint64(o.Duration)
		c.BytesRequested += o.Size
		a.costs.countHit(o.Granted, o.Duration)
		a.steady.Add(true)
	case wire.OutcomeMiss:
		c.Misses++
		a.served(o.Route)
		c.MissReasons[reason(uint8(o.Reason))]++
		c.PoolNS += uint64(o.Duration)
		c.BytesRequested += o.Size
		a.steady.Add(false)
		if !o.SubAllocation { // otherwise the driver created the slab
			a.costs.create(o.Thread, o.Granted, o.Cost)
			a.allocated(o.Granted, o.Cost)
		}
	default:
		if o.Owns {
			c.Unpooled++
			a.driverCreate(o.Cost)
		}
	}
}

// alternative counts a create on which the alternative of an experiment decided: no hit or miss of the present configuration.
func (a *account) alternative(o *heap.Object) {
	a.counters.Alternative++
	a.counters.BytesRequested += o.Size
	if o.Outcome == wire.OutcomeMiss && !o.SubAllocation {
		a.costs.create(o.Thread, o.Granted, o.Cost)
		a.allocated(o.Granted, o.Cost)
	}
}

// countCreate adds a create that succeeded to the last second and the history.
func countCreate(now *Rates, sample *Sample, o *heap.Object) {
	now.Creates++
	sample.Creates++
	switch {
	case o.Alternative:
		if o.Outcome == wire.OutcomeHit || o.SubAllocation {
			return
		}
	case o.Outcome == wire.OutcomeHit:
		now.Hits++
		sample.Hits++
		return
	case o.Outcome == wire.OutcomeMiss:
		now.Misses++
		sample.Misses++
		now.Reasons.add(int(reason(uint8(o.Reason))), 1)
		sample.Reasons.add(int(reason(uint8(o.Reason))), 1)
		if o.SubAllocation { // the driver created the slab
			return
		}
	case !o.Owns:
		return
	}
	now.DriverCreates++
	now.DriverNanos += uint64(o.Cost)
	sample.DriverNS += uint64(o.Cost)
}

// allocated counts a block or slab that the driver created in cost ns.
func (a *account) allocated(bytes uint64, cost uint32) {
	a.counters.BytesAllocated += bytes
	a.driverCreate(cost)
}

func (a *account) driverCreate(cost uint32) {
	a.counters.DriverCreates++
	a.counters.DriverNS += uint64(cost)
	measured(&a.driver, cost)
}

func (a *account) failed(status int32, duration uint32) {
	a.counters.Failures++
	a.counters.failedWith(status, 1)
	measured(&a.calls, duration)
}

// failedWith counts failures by status. When all places are taken, further statuses are not counted.
func (t *Totals) failedWith(status int32, n uint64) {
	for i := range t.FailedWith {
		if f := &t.FailedWith[i]; f.Count == 0 || f.Status == status {
			f.Status = status
			f.Count += n
			return
		}
	}
}

func (a *account) driverRelease(cost uint32) {
	a.counters.DriverReleases++
	a.counters.DriverNS += uint64(cost)
	a.counters.PoolNS += uint64(cost)
	a.spend(cost)
}

func (a *account) evicted(e wire.EvictView) {
	a.driverRelease(e.Cost())
	why := e.Reason()
	if int(why) >= len(a.counters.Evictions) { // of a later version
		why = wire.EvictNone
	}
	a.counters.Evictions[why]++
	if why == wire.EvictRelief {
		a.counters.Relieved += e.Bytes()
	}
}

// expose counts what a kernel may have read before any command wrote to it, or what was cleared instead.
func (t *Totals) expose(how wire.Exposed) {
	if how == wire.ExposedCleared {
		t.Cleared++
		return
	}
	t.Exposed++
	if how == wire.ExposedZero {
		t.ExposedNewZero++
	}
}

// measured counts a duration in ns; 0 means that it was not measured.
func measured(h *Histogram, ns uint32) {
	if ns != 0 {
		h.Add(uint64(ns))
	}
}

// raise notes new peaks.
func (a *account) raise(now uint64) {
	c, g := &a.counters, a.Gauges
	if raise(&c.PeakInUse, g.InUse) {
		c.PeakInUseTime = now
	}
	a.held.raise(heap.Amount(g.InUse))
	raise(&c.PeakRequested, g.Requested)
	if free := g.Free(); free > c.PeakCached {
		c.PeakCached = free
	}
	raise(&c.PeakCooling, g.Cooling)
	raise(&c.PeakSlabs, a.Slabs)
	raise(&c.PeakReserved, g.Reserved())
	a.raisePlanned()
}

// raise notes a gauge that is above its peak. It reports whether the gauge is.
func raise(peak *uint64, gauge int64) bool {
	if gauge <= int64(*peak) {
		return false
	}
	*peak = uint64(gauge)
	return true
}

// totals returns the totals for a snapshot. free says how free memory is divided.
func (a *account) totals(free spread) Totals {
	t := a.counters
	t.InUse, t.Requested = heap.Amount(a.InUse), heap.Amount(a.Requested)
	t.Held = a.held.most()
	t.Cached, t.Cooling = a.Free(), heap.Amount(a.Cooling)
	t.Slabs, t.SlabBytes, t.SlabFree = heap.Amount(a.Slabs), heap.Amount(a.SlabBytes), heap.Amount(a.Room)
	t.LiveBuffers, t.CachedBlocks = heap.Amount(a.Live), heap.Amount(a.CachedBlocks)+free.ranges
	t.LargestCached, t.Squares = free.largest, free.squares
	t.Idle = min(free.idle, t.Cached)
	t.SteadyHits, t.SteadyRequests = a.steady.Later()
	t.Saved = a.costs.saved()
	t.CreatesTimed, t.DriverTimed = a.calls.Total, a.driver.Total
	t.CreateP50NS, t.CreateP99NS = a.calls.Percentile(0.5), a.calls.Percentile(0.99)
	t.DriverCreateP50, t.DriverCreateP99 = a.driver.Percentile(0.5), a.driver.Percentile(0.99)
	return t
}

// reasons is how many reasons there are for misses.
const reasons = uint8(wire.MissPolicy) + 1

// reason returns an index for a reason of a miss. A reason that this version does not know counts as none.
func reason(r uint8) uint8 {
	if r < reasons {
		return r
	}
	return 0
}

// beginSlot begins a slot.
func (a *account) beginSlot(slot uint64) {
	a.window.advance(slot)
	a.held.beginSlot(slot, heap.Amount(a.InUse))
}

// spend adds ns in the driver to the last second and the history.
func (a *account) spend(cost uint32) {
	a.window.current().DriverNanos += uint64(cost)
	a.history.pending.DriverNS += uint64(cost)
}

// sample reads the gauges. free says how free memory is divided.
func (a *account) sample(free spread) Sample {
	t := Totals{Cached: a.Free(), LargestCached: free.largest}
	return Sample{
		InUse: heap.Amount(a.InUse), Cached: t.Cached, Cooling: heap.Amount(a.Cooling), Fragmentation: t.ExternalFragmentation(),
	}
}
