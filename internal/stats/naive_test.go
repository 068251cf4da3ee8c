package stats

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// naive computes totals from the events alone, in the plainest way: after each event it adds everything up again.
type naive struct {
	totals Totals
	held   map[uint64]wire.Event // by object, the create
	free   map[uint64]wire.Event // by block, with the size in Size and the state in Outcome
	slabs  map[uint64]uint64     // sizes
	parts  map[uint64]uint64     // sizes of those in use or cooling
	gauge  wire.Event
}

func (n *naive) apply(e *wire.Event) {
	t := &n.totals
	switch e.Kind {
	case wire.KindCreate:
		n.create(e)
	case wire.KindRelease:
		if e.Granted == 0 {
			n.release(e)
		}
	case wire.KindSlab:
		if e.Status == 0 {
			n.slabs[e.Link] = e.Granted
			t.DriverCreates++
			t.DriverNS += uint64(e.Cost)
			t.BytesAllocated += e.Granted
		}
	case wire.KindGauge:
		n.gauge = *e
	case wire.KindCooled:
		if e.Flags&wire.FlagSubAlloc != 0 {
			delete(n.free, e.Link)
			delete(n.parts, e.Link)
			break
		}
		block := n.free[e.Link]
		block.Outcome = wire.OutcomeCached
		n.free[e.Link] = block
	case wire.KindEvict:
		delete(n.free, e.Link)
		delete(n.slabs, e.Link)
		t.DriverReleases++
		t.DriverNS += uint64(e.Cost)
		t.PoolNS += uint64(e.Cost)
		t.Evictions[reason(e.Reason)]++
	case wire.KindUse:
		t.Uses++
	default:
	}
	n.add(e.Time)
}

func (n *naive) create(e *wire.Event) {
	t := &n.totals
	if e.Outcome == wire.OutcomeFailed {
		t.Failures++
		return
	}
	t.Creates++
	n.held[e.Object] = *e
	part := e.Flags&wire.FlagSubAlloc != 0
	if part {
		n.parts[e.Link] = e.Granted
	}
	sub := wire.Memory(e.Op) == wire.MemorySubBuffer
	switch {
	case e.Outcome == wire.OutcomeHit:
		t.Hits++
		t.HitNS += uint64(e.Duration)
		t.PoolNS += uint64(e.Duration)
		t.BytesRequested += e.Size
		delete(n.free, e.Link)
		return
	case e.Outcome == wire.OutcomeMiss:
		t.Misses++
		t.MissReasons[e.Reason]++
		t.PoolNS += uint64(e.Duration)
		t.BytesRequested += e.Size
		if part {
			return
		}
		t.BytesAllocated += e.Granted
	case !sub:
		t.Unpooled++
	}
	if !sub {
		t.DriverCreates++
		t.DriverNS += uint64(e.Cost)
	}
}

func (n *naive) release(e *wire.Event) {
	t := &n.totals
	created := n.held[e.Object]
	delete(n.held, e.Object)
	t.Releases++
	if e.Flags&wire.FlagWouldRace != 0 && e.Outcome == wire.OutcomeCooling {
		t.HazardsAvoided++
	}
	switch e.Outcome {
	case wire.OutcomeCached, wire.OutcomeCooling:
		if e.Flags&wire.FlagSubAlloc != 0 && e.Outcome == wire.OutcomeCached {
			delete(n.parts, created.Link)
			break
		}
		n.free[created.Link] = wire.Event{Size: created.Granted, Outcome: e.Outcome}
	case wire.OutcomeDriver:
		if wire.Memory(created.Op) != wire.MemorySubBuffer {
			t.DriverReleases++
			t.DriverNS += uint64(e.Cost)
			t.PoolNS += uint64(e.Cost)
		}
	default:
	}
}

// add recomputes the gauges.
func (n *naive) add(time uint64) {
	t := &n.totals
	t.InUse, t.Requested, t.Cached, t.Cooling, t.CachedBlocks, t.LargestCached, t.Squares = 0, 0, 0, 0, 0, 0, 0
	for _, e := range n.held {
		if wire.Memory(e.Op) != wire.MemorySubBuffer {
			t.InUse += e.Granted
			t.Requested += e.Size
		}
	}
	for _, e := range n.free {
		if e.Outcome == wire.OutcomeCooling {
			t.Cooling += e.Size
			continue
		}
		t.Cached += e.Size
		t.CachedBlocks++
		t.LargestCached = max(t.LargestCached, e.Size)
		t.Squares += float64(e.Size * e.Size)
	}
	n.addSlabs()
	t.LiveBuffers = uint64(len(n.held))
	if t.InUse > t.PeakInUse {
		t.PeakInUse, t.PeakInUseTime = t.InUse, time
	}
	t.PeakReserved = max(t.PeakReserved, t.Reserved())
	t.PeakRequested, t.PeakCached, t.PeakCooling = max(t.PeakRequested, t.Requested), max(t.PeakCached, t.Cached), max(t.PeakCooling, t.Cooling)
	t.PeakSlabs = max(t.PeakSlabs, t.Slabs)
}
