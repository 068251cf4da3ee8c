package stats

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Totals are counters since the start, and gauges (In…, Cached…) now.
type Totals struct {
	Hits, Misses    uint64
	SteadyHits      uint64 // of the later half of all poolable requests: the steady state without the cold start
	SteadyRequests  uint64
	MissReasons     [wire.MissPolicy + 1]uint64
	Evictions       [wire.EvictTimed + 1]uint64
	Relieved        uint64                   // bytes of the evictions because other programs lacked memory
	Creates         uint64                   // by the application: buffers, images, SVM, USM, sub-buffers
	Releases        uint64                   // last releases by the application
	Failures        uint64                   // creates that failed
	FailedWith      [StatusesMax]StatusCount // of these, by status, in the order of their first
	Alternative     uint64                   // creates on which the alternative of an experiment decided: neither hits nor misses
	Unpooled        uint64                   // creates of memory that are never eligible (SVM, USE_HOST_PTR...)
	SubBufferHits   uint64                   // hits for which the driver created a sub-buffer of a slab
	DriverCreates   uint64                   // that reached the driver and allocated: misses, unpooled memory
	DriverReleases  uint64
	DriverNS        uint64 // spent in those, by all threads together
	HitNS           uint64 // spent in creates served from the pool, the whole call
	PoolNS          uint64 // spent in creates that a policy was asked, the whole call, and in the driver's releases
	Saved           SavedCalls
	SavedTouches    Touches // of all processes together
	Plans           Plans
	BytesRequested  uint64 // sum of poolable requests
	BytesAllocated  uint64 // sum of blocks the driver created
	Requested       uint64 // asked for, of what is in use
	InUse           uint64 // granted to the application
	Held            uint64 // the most of that in the last second
	Cached          uint64 // free in the pool, and of that in slabs: SlabFree
	Idle            uint64 // of Cached: blocks that have been there for cachedIdleNS, and the least free in slabs in that time
	Cooling         uint64 // free, still used by queued commands
	PeakInUse       uint64
	PeakInUseTime   uint64
	PeakReserved    uint64
	PeakRequested   uint64
	PeakCached      uint64
	PeakIdle        uint64 // looked at ten times a second, for a report at each step of its timeline as well
	PeakCooling     uint64
	PeakSlabs       uint64  // at once
	LiveBuffers     uint64  // objects the application holds
	CachedBlocks    uint64  // free blocks, and free ranges in slabs
	LargestCached   uint64  // of those
	Squares         float64 // sum of their sizes' squares
	Slabs           uint64
	SlabBytes       uint64
	SlabFree        uint64
	HazardsAvoided  uint64 // releases that were held back because an ungated pool could have reused them too early
	Exposed         uint64 // released buffers and images whose block was recycled, and that a kernel may have read before any command wrote to them
	ExposedNewZero  uint64 // of these, where the driver's new memory was zero
	Cleared         uint64 // buffers and images that --scrub auto cleared before such a kernel
	InFlight        InFlight
	BetweenDevices  uint64 // bytes that commands needed on one device when only others of the context had them
	Uses            uint64
	Syncs           uint64
	CreatesTimed    uint64 // calls that P50 and P99 are of
	DriverTimed     uint64 // likewise of the driver
	CreateP50NS     uint64 // whole create call, all outcomes
	CreateP99NS     uint64
	DriverCreateP50 uint64
	DriverCreateP99 uint64
}

// StatusesMax bounds the statuses of failed creates that are counted apart.
const StatusesMax = 8

// StatusCount is how often creates failed with a status.
type StatusCount struct {
	Status int32
	Count  uint64 // 0: the place is free
}

// StatusNumberText returns the number of the status, or NULL.
func (c *StatusCount) StatusNumberText() string { return wire.StatusNumber(c.Status) }

// ReservedBytes returns in use + cached + cooling.
func (t *Totals) ReservedBytes() uint64 { return t.InUse + t.Cached + t.Cooling }

// HitsWithoutDriverCall returns how many hits took no call of the driver.
func (t *Totals) HitsWithoutDriverCall() uint64 { return t.Hits - t.SubBufferHits }

// HitRate returns hits / (hits + misses), 0 before the first request.
func (t *Totals) HitRate() float64 { return ratioOf(t.Hits, t.Hits+t.Misses) }

// SteadyHitRate returns the hit rate of the later half of the requests.
func (t *Totals) SteadyHitRate() float64 { return ratioOf(t.SteadyHits, t.SteadyRequests) }

// Waste returns (granted - requested) / granted of what is in use.
func (t *Totals) Waste() float64 {
	if t.InUse < t.Requested {
		return 0
	}
	return ratioOf(t.InUse-t.Requested, t.InUse)
}

// ExternalFragmentation returns 1 - largest free block / all free bytes, 0 when nothing is free.
func (t *Totals) ExternalFragmentation() float64 {
	if t.Cached == 0 || t.LargestCached > t.Cached {
		return 0
	}
	return ratioOf(t.Cached-t.LargestCached, t.Cached)
}

// QuadraticFragmentation returns 1 - Σf²/F², f the size of each free block and range and F their sum; 0 when nothing
// is free.
func (t *Totals) QuadraticFragmentation() float64 {
	return allocator.QuadraticFragmentation(t.Squares, t.Cached)
}

// RootFragmentation returns 1 - √Σf²/F, 0 when nothing is free.
func (t *Totals) RootFragmentation() float64 { return allocator.RootFragmentation(t.Squares, t.Cached) }

func ratioOf(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
