package stats

import (
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ledger keeps the totals of one process, or of all together. The gauges are those of the heap.
type ledger struct {
	counters Totals // gauges, percentiles and estimates in it stay 0 until totals fills them in

	*heap.Gauges
	*heap.Population

	calls, driver histogram
	costs         costs
	steady        Steady
}

// create counts a create that succeeded.
func (l *ledger) create(o *heap.Object) {
	c := &l.counters
	c.Creates++
	l.calls.add(o.Duration)
	switch o.Outcome {
	case wire.OutcomeHit:
		c.Hits++
		c.HitNS += uint64(o.Duration)
		c.PoolNS += uint64(o.Duration)
		c.BytesRequested += o.Size
		l.costs.hit(o.Granted, o.Duration)
		l.steady.Add(true)
	case wire.OutcomeMiss:
		c.Misses++
		c.MissReasons[reason(uint8(o.Reason))]++
		c.PoolNS += uint64(o.Duration)
		c.BytesRequested += o.Size
		l.steady.Add(false)
		if !o.SubAllocation { // otherwise the SLAB before it was the driver's create
			l.allocated(o.Granted, o.Cost)
		}
	default:
		if o.Owns {
			c.Unpooled++
			l.driverCreate(o.Cost)
		}
	}
}

// allocated counts a block that the driver created, in cost ns.
func (l *ledger) allocated(bytes uint64, cost uint32) {
	l.counters.BytesAllocated += bytes
	l.costs.creates.add(bytes, cost)
	l.driverCreate(cost)
}

func (l *ledger) driverCreate(cost uint32) {
	l.counters.DriverCreates++
	l.counters.DriverNS += uint64(cost)
	l.driver.add(cost)
}

func (l *ledger) failed(duration uint32) {
	l.counters.Failures++
	l.calls.add(duration)
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

// raise notes new peaks.
func (l *ledger) raise(now uint64) {
	c, g := &l.counters, l.Gauges
	if raise(&c.PeakInUse, g.InUse) {
		c.PeakInUseTime = now
	}
	raise(&c.PeakRequested, g.Requested)
	if free := g.Free(); free > c.PeakCached {
		c.PeakCached = free
	}
	raise(&c.PeakCooling, g.Cooling)
	raise(&c.PeakSlabs, l.Slabs)
	raise(&c.PeakReserved, g.Reserved())
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
	t.Cached, t.Cooling = l.Free(), heap.Amount(l.Cooling)
	t.Slabs, t.SlabBytes, t.SlabFree = heap.Amount(l.Slabs), heap.Amount(l.SlabBytes), heap.Amount(l.Room)
	t.LiveBuffers, t.CachedBlocks = heap.Amount(l.Live), heap.Amount(l.CachedBlocks)
	t.SteadyHits, t.SteadyRequests = l.steady.Later()
	t.SavedNS, t.SavedBasis = l.costs.saved()
	t.CreateP50NS, t.CreateP99NS = l.calls.percentile(0.5), l.calls.percentile(0.99)
	t.DriverCreateP50, t.DriverCreateP99 = l.driver.percentile(0.5), l.driver.percentile(0.99)
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

// histogram counts durations in buckets whose width grows with the value, 16 to each power of two, so that a
// percentile is off by at most 1/32 (3.1 %) of its value at a fixed size and O(1) per value.
type histogram struct {
	counts [histogramBuckets]uint64
	total  uint64
}

const (
	histogramBits    = 4 // log2 of the buckets per power of two
	histogramBuckets = (32-histogramBits-1)<<histogramBits + 2<<histogramBits
)

// add counts a duration in ns; 0 means that it was not measured and is left out.
func (h *histogram) add(ns uint32) {
	if ns == 0 {
		return
	}
	h.counts[bucket(ns)]++
	h.total++
}

// percentile returns the middle of the bucket that holds the value at rank ceil(p × total), 0 without values.
func (h *histogram) percentile(p float64) uint64 {
	rank := uint64(p * float64(h.total))
	if float64(rank) < p*float64(h.total) {
		rank++
	}
	var seen uint64
	for i, count := range h.counts {
		if seen += count; seen >= rank && seen > 0 {
			return bucketMiddle(i)
		}
	}
	return 0
}

func bucket(ns uint32) int {
	shift := max(0, bits.Len32(ns)-histogramBits-1)
	return shift<<histogramBits + int(ns>>shift)
}

func bucketMiddle(i int) uint64 {
	shift := max(0, i>>histogramBits-1)
	low := uint64(i-shift<<histogramBits) << shift
	return low + uint64(1)<<shift/2
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
