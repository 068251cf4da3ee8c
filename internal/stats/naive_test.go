package stats

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// naive computes totals from the events alone, in the plainest way: after each event it adds everything up again.
type naive struct {
	totals Totals
	held   map[owned]wire.Event // by object, the create
	pinned map[owned]bool       // objects that are released, but hold their memory
	free   map[owned]wire.Event // by block, with the size in Size and the state in Outcome
	slabs  map[owned]uint64     // sizes
	parts  map[owned]uint64     // sizes of those in use or cooling
	gauges map[uint32]wire.Event
	used   map[owned]uint64 // by object, when a command used it last that the program has not waited for
	early  map[owned]uint64 // of these, the bytes of those that are released
	began  uint64
	rooms  map[uint32][]naiveRoom // after each event
}

type naiveRoom struct{ time, bytes uint64 }

// owned is a number of a process.
type owned struct {
	process uint32
	number  uint64
}

func newNaive() *naive {
	return &naive{
		held: map[owned]wire.Event{}, pinned: map[owned]bool{}, free: map[owned]wire.Event{}, slabs: map[owned]uint64{}, parts: map[owned]uint64{},
		used: map[owned]uint64{}, early: map[owned]uint64{}, gauges: map[uint32]wire.Event{}, rooms: map[uint32][]naiveRoom{},
	}
}

func (n *naive) apply(r *wire.Record) {
	t, e, link := &n.totals, &r.Event, owned{r.Process, r.Link}
	if n.began == 0 {
		n.began = e.Time
	}
	switch e.Kind {
	case wire.KindCreate:
		n.create(r)
	case wire.KindRelease:
		if e.Granted == 0 {
			n.release(r)
		}
	case wire.KindSlab:
		if e.Status == 0 {
			n.slabs[link] = e.Granted
			t.DriverCreates++
			t.DriverNS += uint64(e.Cost)
			t.BytesAllocated += e.Granted
		}
	case wire.KindGauge:
		n.gauges[r.Process] = *e
	case wire.KindCooled:
		if e.Flags&wire.FlagSubAlloc != 0 {
			delete(n.free, link)
			delete(n.parts, link)
			break
		}
		block := n.free[link]
		block.Outcome, block.Time = wire.OutcomeCached, e.Time
		n.free[link] = block
	case wire.KindEvict:
		delete(n.free, link)
		delete(n.slabs, link)
		t.DriverReleases++
		t.DriverNS += uint64(e.Cost)
		t.PoolNS += uint64(e.Cost)
		t.Evictions[indexOfReason(e.Reason)]++
	case wire.KindUse:
		t.Uses++
		n.use(owned{r.Process, r.Object}, e.Time)
	case wire.KindSync:
		t.Syncs++
		n.wait(r.Process, e.Time)
	case wire.KindLost:
		n.wait(r.Process, math.MaxUint64)
	default:
	}
	n.add(e.Time)
}

func (n *naive) create(r *wire.Record) {
	t, e, link := &n.totals, &r.Event, owned{r.Process, r.Link}
	if e.Outcome == wire.OutcomeFailed {
		t.Failures++
		status := int32(r.AsCreate().Status())
		for i := range t.FailedWith {
			if f := t.FailedWith[i]; f.Count == 0 || f.Status == status {
				t.FailedWith[i] = StatusCount{status, f.Count + 1}
				break
			}
		}
		return
	}
	t.Creates++
	n.held[owned{r.Process, e.Object}] = *e
	part := e.Flags&wire.FlagSubAlloc != 0
	if part {
		n.parts[link] = e.Granted
	}
	sub := wire.Memory(e.Op) == wire.MemorySubBuffer
	switch {
	case e.Outcome == wire.OutcomeHit:
		t.Hits++
		if part && e.Cost > 0 {
			t.SubBufferHits++
		}
		t.HitNS += uint64(e.Duration)
		t.PoolNS += uint64(e.Duration)
		t.BytesRequested += e.Size
		delete(n.free, link)
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

func (n *naive) release(r *wire.Record) {
	t, e, object := &n.totals, &r.Event, owned{r.Process, r.Object}
	if !n.pinned[object] {
		t.Releases++
		if e.Flags&wire.FlagWouldRace != 0 && e.Outcome == wire.OutcomeCooling {
			t.HazardsAvoided++
		}
	}
	if e.Outcome == wire.OutcomePinned {
		n.pinned[object] = true
		return
	}
	created := n.held[object]
	link := owned{r.Process, created.Link}
	delete(n.held, object)
	delete(n.pinned, object)
	if e.Outcome == wire.OutcomeDriver || e.Outcome == wire.OutcomeRefused {
		n.back(object, &created)
	}
	switch e.Outcome {
	case wire.OutcomeCached, wire.OutcomeCooling:
		if e.Flags&wire.FlagSubAlloc != 0 && e.Outcome == wire.OutcomeCached {
			delete(n.parts, link)
			break
		}
		n.free[link] = wire.Event{Size: created.Granted, Outcome: e.Outcome, Time: e.Time}
	case wire.OutcomeDriver:
		if wire.Memory(created.Op) != wire.MemorySubBuffer {
			t.DriverReleases++
			t.DriverNS += uint64(e.Cost)
			t.PoolNS += uint64(e.Cost)
		}
	default:
	}
}

// use takes a use of an object, and thus of the buffer that a sub-buffer is a part of.
func (n *naive) use(object owned, time uint64) {
	created, held := n.held[object]
	if !held {
		return
	}
	n.used[object] = time
	if wire.Memory(created.Op) == wire.MemorySubBuffer {
		n.use(owned{object.process, created.Link}, time)
	}
}

// wait takes a wait for all commands of a process until a time.
func (n *naive) wait(process uint32, until uint64) {
	for object, used := range n.used {
		if object.process == process && used <= until {
			delete(n.used, object)
			delete(n.early, object)
		}
	}
}

// back takes memory that goes back to the driver.
func (n *naive) back(object owned, created *wire.Event) {
	if _, running := n.used[object]; !running || wire.Memory(created.Op) != wire.MemoryBuffer {
		return
	}
	n.early[object] = created.Granted
	f := &n.totals.InFlight
	f.Releases++
	f.Bytes += created.Granted
}

// add recomputes the gauges.
func (n *naive) add(time uint64) {
	t := &n.totals
	t.InUse, t.Requested, t.Cached, t.Idle, t.Cooling, t.CachedBlocks, t.LargestCached, t.Squares = 0, 0, 0, 0, 0, 0, 0, 0
	since := n.idleSince(time)
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
		if e.Time < since {
			t.Idle += e.Size
		}
		t.CachedBlocks++
		t.LargestCached = max(t.LargestCached, e.Size)
		t.Squares += float64(e.Size * e.Size)
	}
	t.InFlight.Now = 0
	for _, bytes := range n.early {
		t.InFlight.Now += bytes
	}
	t.InFlight.Peak = max(t.InFlight.Peak, t.InFlight.Now)
	n.addSlabs(time, since)
	t.LiveBuffers = uint64(len(n.held) - len(n.pinned))
	if t.InUse > t.PeakInUse {
		t.PeakInUse, t.PeakInUseTime = t.InUse, time
	}
	t.PeakReserved = max(t.PeakReserved, t.ReservedBytes())
	t.PeakRequested, t.PeakCached, t.PeakCooling = max(t.PeakRequested, t.Requested), max(t.PeakCached, t.Cached), max(t.PeakCooling, t.Cooling)
	t.PeakSlabs = max(t.PeakSlabs, t.Slabs)
}

// addSlabs adds what is free in the slabs of each process. The last GAUGE may be some events old.
func (n *naive) addSlabs(time, since uint64) {
	n.totals.Slabs, n.totals.SlabBytes, n.totals.SlabFree = uint64(len(n.slabs)), 0, 0
	free := map[uint32]uint64{}
	for slab, size := range n.slabs {
		n.totals.SlabBytes += size
		free[slab.process] += size
	}
	for part, size := range n.parts {
		free[part.process] -= size
	}
	for process := range uint32(4) {
		n.totals.Idle += n.idleRoom(process, naiveRoom{time, free[process]}, since)
	}
	for process, bytes := range free {
		if bytes > 0 {
			n.addFree(bytes, n.gauges[process])
		}
	}
}

func (n *naive) addFree(bytes uint64, gauge wire.Event) {
	t := &n.totals
	t.SlabFree += bytes
	t.Cached += bytes
	largest, ranges, squares := gauge.Size, gauge.Object, math.Float64frombits(gauge.Link)
	if ranges == 0 {
		largest, ranges, squares = bytes, 1, float64(bytes*bytes)
	}
	largest = min(largest, bytes)
	t.CachedBlocks += ranges
	t.LargestCached = max(t.LargestCached, largest)
	t.Squares += min(squares, float64(largest*bytes))
}

// idleSince is 10 s ago, or a quarter of the run; 0: that is less than 10 ms.
func (n *naive) idleSince(time uint64) uint64 {
	long := min((time-n.began)/4, 10_000_000_000)
	if long < 10_000_000 {
		return 0
	}
	return time - long
}

// idleRoom is the least that was free in the slabs of a process since a time.
func (n *naive) idleRoom(process uint32, now naiveRoom, since uint64) uint64 {
	n.rooms[process] = append(n.rooms[process], now)
	least := uint64(math.MaxUint64)
	list := n.rooms[process]
	for i := len(list) - 1; i >= 0; i-- {
		least = min(least, list[i].bytes)
		if list[i].time < since {
			return least
		}
	}
	return 0
}
