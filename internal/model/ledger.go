package model

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// ledger keeps the totals of one process, or of all together. Gauges are signed: events may come slightly out of
// order, and a gauge that dips below 0 for a moment must come back to the right value.
type ledger struct {
	counters Totals // gauges, percentiles and estimates in it stay 0 until totals fills them in

	inUse, requested, cached, cooling int64
	live, blocks                      int64

	slabs, slabBytes int64
	room             int64 // free in slabs: their bytes less those of their parts

	carrying bool // peaks wait, see Model.carry

	calls, driver histogram
	costs         costs
	steady        Steady
}

// create counts a create that succeeded. owns says that the object has memory of its own.
func (l *ledger) create(e *wire.Event, owns bool) {
	c := &l.counters
	c.Creates++
	l.live++
	l.calls.add(e.Duration)
	switch e.Outcome {
	case wire.OutcomeHit:
		c.Hits++
		c.HitNS += uint64(e.Duration)
		c.PoolNS += uint64(e.Duration)
		c.BytesRequested += e.Size
		l.costs.hit(e.Served())
		l.steady.Add(true)
	case wire.OutcomeMiss:
		c.Misses++
		c.MissReasons[reason(e.Reason)]++
		c.PoolNS += uint64(e.Duration)
		c.BytesRequested += e.Size
		l.steady.Add(false)
		if e.Flags&wire.FlagPart == 0 { // else the SLAB before it was the driver's create
			l.allocated(e.Served(), e)
		}
	default:
		if wire.Memory(e.Op) == wire.MemoryBuffer {
			c.Unpooled++
		}
		if owns {
			l.driverCreate(e)
		}
	}
}

// allocated counts a block that the driver created.
func (l *ledger) allocated(bytes uint64, e *wire.Event) {
	l.counters.BytesAllocated += bytes
	l.costs.create(bytes, e.Cost)
	l.driverCreate(e)
}

func (l *ledger) driverCreate(e *wire.Event) {
	l.counters.DriverCreates++
	l.counters.DriverNS += uint64(e.Cost)
	l.driver.add(e.Cost)
}

func (l *ledger) failed(e *wire.Event) {
	l.counters.Failures++
	l.calls.add(e.Duration)
}

func (l *ledger) released(e *wire.Event) {
	l.counters.Releases++
	l.live--
	if e.Flags&wire.FlagWouldRace != 0 && e.Outcome == wire.OutcomeCooling {
		l.counters.HazardsAvoided++
	}
}

func (l *ledger) driverRelease(e *wire.Event) {
	l.counters.DriverReleases++
	l.counters.DriverNS += uint64(e.Cost)
	l.counters.PoolNS += uint64(e.Cost)
}

func (l *ledger) evicted(e *wire.Event) {
	l.driverRelease(e)
	l.counters.Evictions[reason(e.Reason)]++
}

// hold changes what the application holds.
func (l *ledger) hold(granted, requested int64, now uint64) {
	l.inUse += granted
	l.requested += requested
	l.raise(now)
}

// count changes what is free in whole blocks.
func (l *ledger) count(cools bool, bytes, blocks int64, now uint64) {
	if cools {
		l.cooling += bytes
	} else {
		l.cached += bytes
		l.blocks += blocks
	}
	l.raise(now)
}

// carve changes what is free in slabs.
func (l *ledger) carve(bytes int64, now uint64) {
	l.room += bytes
	l.raise(now)
}

// free returns what is free in the pool. Events of slabs and of parts may each be missing or late, which must not
// take anything off what the whole blocks have.
func (l *ledger) free() uint64 { return gauge(l.cached) + gauge(l.room) }

// raise notes new peaks.
func (l *ledger) raise(now uint64) {
	if l.carrying {
		return
	}
	c := &l.counters
	if gauge(l.inUse) > c.PeakInUse {
		c.PeakInUse, c.PeakInUseTime = gauge(l.inUse), now
	}
	c.PeakRequested = max(c.PeakRequested, gauge(l.requested))
	c.PeakCached = max(c.PeakCached, l.free())
	c.PeakCooling = max(c.PeakCooling, gauge(l.cooling))
	c.PeakSlabs = max(c.PeakSlabs, gauge(l.slabs))
	c.PeakReserved = max(c.PeakReserved, gauge(l.inUse+l.cached+l.cooling+l.room))
}

// totals returns the totals as they are shown, without what spread adds.
func (l *ledger) totals() Totals {
	t := l.counters
	t.InUse, t.Requested = gauge(l.inUse), gauge(l.requested)
	t.Cached, t.Cooling = l.free(), gauge(l.cooling)
	t.Slabs, t.SlabBytes, t.SlabFree = gauge(l.slabs), gauge(l.slabBytes), gauge(l.room)
	t.LiveBuffers, t.CachedBlocks = gauge(l.live), gauge(l.blocks)
	t.SteadyHits, t.SteadyRequests = l.steady.Later()
	t.SavedNS = l.costs.saved()
	t.CreateP50NS, t.CreateP99NS = l.calls.percentile(0.5), l.calls.percentile(0.99)
	t.DriverCreateP50, t.DriverCreateP99 = l.driver.percentile(0.5), l.driver.percentile(0.99)
	return t
}

// gauge shows a signed gauge.
func gauge(v int64) uint64 { return uint64(max(v, 0)) }

// reasons is how many reasons there are, for misses and for evictions alike.
const reasons = uint8(wire.MissPolicy) + 1

// This does not compile when the two differ.
var _ [0]struct{} = [uint8(wire.EvictPolicy) + 1 - reasons]struct{}{}

// reason returns an index for a reason: one that this version does not know counts as none.
func reason(r uint8) uint8 {
	if r < reasons {
		return r
	}
	return 0
}
