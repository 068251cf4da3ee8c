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

// countCreated counts a create that succeeded.
func (a *account) countCreated(o *heap.Object) {
	addCreateToRates(a.window.currentSlot(), &a.history.pending, o)
	c := &a.counters
	c.Creates++
	addMeasuredDuration(&a.calls, o.Duration)
	if o.Alternative {
		a.countAlternative(o)
		return
	}
	switch o.Outcome {
	case wire.OutcomeHit:
		c.Hits++
		if o.SubAllocation && o.Cost > 0 {
			c.SubBufferHits++
		}
		a.countByRoute(o.Route)
		c.HitNS += uint64(o.Duration)
		c.PoolNS += uint64(o.Duration)
		c.BytesRequested += o.Size
		a.costs.countHit(o.Granted, o.Duration)
		a.steady.AddRequest(true)
	case wire.OutcomeMiss:
		c.Misses++
		a.countByRoute(o.Route)
		c.MissReasons[indexOfReason(uint8(o.Reason))]++
		c.PoolNS += uint64(o.Duration)
		c.BytesRequested += o.Size
		a.steady.AddRequest(false)
		if !o.SubAllocation { // otherwise the driver created the slab
			a.costs.addCreate(o.Thread, o.Granted, o.Cost)
			a.countDriverAllocation(o.Granted, o.Cost)
		}
	default:
		if o.Owns {
			c.Unpooled++
			a.countDriverCreate(o.Cost)
		}
	}
}

// countAlternative counts a create on which the alternative of an experiment decided: no hit or miss of the present configuration.
func (a *account) countAlternative(o *heap.Object) {
	a.counters.Alternative++
	a.counters.BytesRequested += o.Size
	if o.Outcome == wire.OutcomeMiss && !o.SubAllocation {
		a.costs.addCreate(o.Thread, o.Granted, o.Cost)
		a.countDriverAllocation(o.Granted, o.Cost)
	}
}

// addCreateToRates adds a create that succeeded to the last second and the history.
func addCreateToRates(now *Rates, sample *Sample, o *heap.Object) {
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
		now.Reasons.addMisses(int(indexOfReason(uint8(o.Reason))), 1)
		sample.Reasons.addMisses(int(indexOfReason(uint8(o.Reason))), 1)
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

// countDriverAllocation counts a block or slab that the driver created in cost ns.
func (a *account) countDriverAllocation(bytes uint64, cost uint32) {
	a.counters.BytesAllocated += bytes
	a.countDriverCreate(cost)
}

func (a *account) countDriverCreate(cost uint32) {
	a.counters.DriverCreates++
	a.counters.DriverNS += uint64(cost)
	addMeasuredDuration(&a.driver, cost)
}

func (a *account) countFailedCreate(status int32, duration uint32) {
	a.counters.Failures++
	a.counters.countStatus(status, 1)
	addMeasuredDuration(&a.calls, duration)
}

// countStatus counts failures by status. When all places are taken, further statuses are not counted.
func (t *Totals) countStatus(status int32, n uint64) {
	for i := range t.FailedWith {
		if f := &t.FailedWith[i]; f.Count == 0 || f.Status == status {
			f.Status = status
			f.Count += n
			return
		}
	}
}

func (a *account) countDriverRelease(cost uint32) {
	a.counters.DriverReleases++
	a.counters.DriverNS += uint64(cost)
	a.counters.PoolNS += uint64(cost)
	a.addDriverTime(cost)
}

func (a *account) countEvictedBlock(e wire.EvictView) {
	a.countDriverRelease(e.Cost())
	why := e.Reason()
	if int(why) >= len(a.counters.Evictions) { // of a later version
		why = wire.EvictNone
	}
	a.counters.Evictions[why]++
	if why == wire.EvictRelief {
		a.counters.Relieved += e.Bytes()
	}
}

// countExposed counts what a kernel may have read before any command wrote to it, or what was cleared instead.
func (t *Totals) countExposed(how wire.Exposed) {
	if how == wire.ExposedCleared {
		t.Cleared++
		return
	}
	t.Exposed++
	if how == wire.ExposedZero {
		t.ExposedNewZero++
	}
}

// addMeasuredDuration counts a duration in ns; 0 means that it was not measured.
func addMeasuredDuration(h *Histogram, ns uint32) {
	if ns != 0 {
		h.Add(uint64(ns))
	}
}

// raisePeaks notes new peaks.
func (a *account) raisePeaks(now uint64) {
	c, g := &a.counters, a.Gauges
	if raisePeak(&c.PeakInUse, g.InUse) {
		c.PeakInUseTime = now
	}
	a.held.raiseCurrent(heap.NonNegative(g.InUse))
	raisePeak(&c.PeakRequested, g.Requested)
	if free := g.FreeBytes(); free > c.PeakCached {
		c.PeakCached = free
	}
	raisePeak(&c.PeakCooling, g.Cooling)
	raisePeak(&c.PeakSlabs, a.Slabs)
	raisePeak(&c.PeakReserved, g.ReservedBytes())
	a.raisePlanPeaks()
}

// raisePeak notes a gauge that is above its peak. It reports whether the gauge is.
func raisePeak(peak *uint64, gauge int64) bool {
	if gauge <= int64(*peak) {
		return false
	}
	*peak = uint64(gauge)
	return true
}

// makeTotals returns the totals for a snapshot. free says how free memory is divided.
func (a *account) makeTotals(free spread) Totals {
	t := a.counters
	t.InUse, t.Requested = heap.NonNegative(a.InUse), heap.NonNegative(a.Requested)
	t.Held = a.held.highestOfSlots()
	t.Cached, t.Cooling = a.FreeBytes(), heap.NonNegative(a.Cooling)
	t.Slabs, t.SlabBytes, t.SlabFree = heap.NonNegative(a.Slabs), heap.NonNegative(a.SlabBytes), heap.NonNegative(a.Room)
	t.LiveBuffers, t.CachedBlocks = heap.NonNegative(a.Live), heap.NonNegative(a.CachedBlocks)+free.ranges
	t.LargestCached, t.Squares = free.largest, free.squares
	t.Idle = min(free.idle, t.Cached)
	t.SteadyHits, t.SteadyRequests = a.steady.HitsOfLaterHalf()
	t.Saved = a.costs.estimateSaved()
	t.CreatesTimed, t.DriverTimed = a.calls.Total, a.driver.Total
	t.CreateP50NS, t.CreateP99NS = a.calls.Percentile(0.5), a.calls.Percentile(0.99)
	t.DriverCreateP50, t.DriverCreateP99 = a.driver.Percentile(0.5), a.driver.Percentile(0.99)
	return t
}

// reasons is how many reasons there are for misses.
const reasons = uint8(wire.MissPolicy) + 1

// indexOfReason returns an index for a reason of a miss. A reason that this version does not know counts as none.
func indexOfReason(r uint8) uint8 {
	if r < reasons {
		return r
	}
	return 0
}

// beginSlot begins a slot.
func (a *account) beginSlot(slot uint64) {
	a.window.advanceToSlot(slot)
	a.held.beginSlot(slot, heap.NonNegative(a.InUse))
}

// addDriverTime adds ns in the driver to the last second and the history.
func (a *account) addDriverTime(cost uint32) {
	a.window.currentSlot().DriverNanos += uint64(cost)
	a.history.pending.DriverNS += uint64(cost)
}

// sampleOfGauges reads the gauges. free says how free memory is divided.
func (a *account) sampleOfGauges(free spread) Sample {
	t := Totals{Cached: a.FreeBytes(), LargestCached: free.largest}
	return Sample{
		InUse: heap.NonNegative(a.InUse), Cached: t.Cached, Cooling: heap.NonNegative(a.Cooling), Fragmentation: t.ExternalFragmentation(),
	}
}
