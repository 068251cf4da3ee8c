package stats

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ledger keeps the totals of one process, or of all together. The gauges are those of the heap.
type ledger struct {
	counters Totals // gauges, percentiles and estimates in it stay 0 until totals fills them in

	*heap.Gauges
	*heap.Population

	*workings
	planning planning
	held     recent // bytes in use
}

// workings are what percentiles and estimates are made from: 4 KB, which a process that has left gives up.
type workings struct {
	calls, driver Histogram
	costs         costs
	steady        Steady
}

// create counts a create that succeeded.
func (l *ledger) create(o *heap.Object) {
	c := &l.counters
	c.Creates++
	measured(&l.calls, o.Duration)
	switch o.Outcome {
	case wire.OutcomeHit:
		c.Hits++
		l.served(o.Route)
		c.HitNS += uint64(o.Duration)
		c.PoolNS += uint64(o.Duration)
		c.BytesRequested += o.Size
		l.costs.hit(o.Granted, o.Duration)
		l.steady.Add(true)
	case wire.OutcomeMiss:
		c.Misses++
		l.served(o.Route)
		c.MissReasons[reason(uint8(o.Reason))]++
		c.PoolNS += uint64(o.Duration)
		c.BytesRequested += o.Size
		l.steady.Add(false)
		if !o.SubAllocation { // otherwise the SLAB before it was the driver's create
			l.allocated(o.Thread, o.Granted, o.Cost)
		}
	default:
		if o.Owns {
			c.Unpooled++
			l.driverCreate(o.Cost)
		}
	}
}

// allocated counts a block that the driver created for a thread, in cost ns.
func (l *ledger) allocated(thread uint32, bytes uint64, cost uint32) {
	l.counters.BytesAllocated += bytes
	l.costs.create(thread, bytes, cost)
	l.driverCreate(cost)
}

func (l *ledger) driverCreate(cost uint32) {
	l.counters.DriverCreates++
	l.counters.DriverNS += uint64(cost)
	measured(&l.driver, cost)
}

func (l *ledger) failed(status int32, duration uint32) {
	l.counters.Failures++
	l.counters.failedWith(status, 1)
	measured(&l.calls, duration)
}

// failedWith counts failures by status, as far as there is a place.
func (t *Totals) failedWith(status int32, n uint64) {
	for i := range t.FailedWith {
		if f := &t.FailedWith[i]; f.Count == 0 || f.Status == status {
			f.Status = status
			f.Count += n
			return
		}
	}
}

func (l *ledger) driverRelease(cost uint32) {
	l.counters.DriverReleases++
	l.counters.DriverNS += uint64(cost)
	l.counters.PoolNS += uint64(cost)
}

func (l *ledger) evicted(e wire.EvictView) {
	l.costs.releases.add(e.Bytes(), e.Cost())
	l.driverRelease(e.Cost())
	l.counters.Evictions[reason(uint8(e.Reason()))]++
}

// measured counts a duration in ns; 0 means that it was not measured.
func measured(h *Histogram, ns uint32) {
	if ns != 0 {
		h.Add(uint64(ns))
	}
}

// raise notes new peaks.
func (l *ledger) raise(now uint64) {
	c, g := &l.counters, l.Gauges
	if raise(&c.PeakInUse, g.InUse) {
		c.PeakInUseTime = now
	}
	l.held.raise(heap.Amount(g.InUse))
	raise(&c.PeakRequested, g.Requested)
	if free := g.Free(); free > c.PeakCached {
		c.PeakCached = free
	}
	raise(&c.PeakCooling, g.Cooling)
	raise(&c.PeakSlabs, l.Slabs)
	raise(&c.PeakReserved, g.Reserved())
	l.raisePlanned()
}

// raise notes a gauge that is above its peak, and reports whether it is.
func raise(peak *uint64, gauge int64) bool {
	if gauge <= int64(*peak) {
		return false
	}
	*peak = uint64(gauge)
	return true
}

// totals returns the totals as they are shown, without what spread adds.
func (l *ledger) totals() Totals {
	t := l.counters
	t.InUse, t.Requested = heap.Amount(l.InUse), heap.Amount(l.Requested)
	t.Held = l.held.most()
	t.Cached, t.Cooling = l.Free(), heap.Amount(l.Cooling)
	t.Slabs, t.SlabBytes, t.SlabFree = heap.Amount(l.Slabs), heap.Amount(l.SlabBytes), heap.Amount(l.Room)
	t.LiveBuffers, t.CachedBlocks = heap.Amount(l.Live), heap.Amount(l.CachedBlocks)
	t.SteadyHits, t.SteadyRequests = l.steady.Later()
	t.SavedNS, t.SavedKnown = l.costs.saved()
	t.CreateP50NS, t.CreateP99NS = l.calls.Percentile(0.5), l.calls.Percentile(0.99)
	t.DriverCreateP50, t.DriverCreateP99 = l.driver.Percentile(0.5), l.driver.Percentile(0.99)
	return t
}

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

// Steady answers how many of the later half of all requests were hits without keeping the requests: it notes the
// hits so far at every step-th request, and when the notes are full it drops every other one and doubles the step.
// The half is exact up to steadyNotes requests and begins less than 1 % of all requests late after that. The zero Steady
// is ready for use, by one goroutine.
type Steady struct {
	notes    [steadyNotes]uint64 // hits among the first i × step requests
	step     uint64
	next     uint64 // request before which the next note is due
	requests uint64
	hits     uint64
}

const steadyNotes = 256

// Add takes the next request.
func (s *Steady) Add(hit bool) {
	if s.requests == s.next {
		s.note()
	}
	s.requests++
	if hit {
		s.hits++
	}
}

// note records the hits before a request whose index is a multiple of step.
func (s *Steady) note() {
	s.step = max(s.step, 1)
	i := s.requests / s.step
	if i == steadyNotes {
		for j := range steadyNotes / 2 {
			s.notes[j] = s.notes[2*j]
		}
		s.step *= 2
		i /= 2
	}
	s.notes[i] = s.hits
	s.next = (i + 1) * s.step
}

// Later returns hits and requests of the later half.
func (s *Steady) Later() (hits, requests uint64) {
	if s.requests == 0 {
		return 0, 0
	}
	i := (s.requests/2 + s.step - 1) / s.step
	return s.hits - s.notes[i], s.requests - i*s.step
}
