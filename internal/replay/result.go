package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Result is the result of a simulation: sums over its processes, which have a policy each. Sizes are bytes.
// docs/METRICS.md defines the words.
type Result struct {
	Policy    string            `json:"policy"`
	Limits    []allocator.Limit `json:"-"`
	Capacity  uint64            `json:"capacity"` // for each process; 0: any number
	Processes int               `json:"process_count"`

	Requests    uint64                      `json:"requests"`         // poolable requests in the recording
	Whole       uint64                      `json:"need_blocks"`      // requests that no sub-allocation could serve
	Unpooled    uint64                      `json:"unpooled"`         // creates that are not poolable; left out
	Before      uint64                      `json:"before,omitempty"` // buffers from before the recording, without further facts; left out
	Failures    uint64                      `json:"failures"`         // requests that found no memory
	Direct      uint64                      `json:"direct"`           // requests served without rounding when there was no memory for a larger block
	Hits        uint64                      `json:"hits"`
	Misses      uint64                      `json:"misses"`
	MissReasons [wire.MissPolicy + 1]uint64 `json:"-"`

	SteadyHits, SteadyRequests uint64 `json:"-"`                       // hits in the later half of the requests, and those requests
	DriverCreates              uint64 `json:"driver_creates_poolable"` // blocks and slabs; creates that are left out do not count
	Evictions                  uint64 `json:"evictions"`
	Rescued                    uint64 `json:"rescued"`                  // requests that failed in the recording and would have found memory; the recording shows nothing else of them
	Switches                   uint64 `json:"policy_changes,omitempty"` // changes of the policy in the recording that were left out
	Changes                    uint64 `json:"limit_changes"`            // changes of limits and trims in the recording
	LeftOut                    uint64 `json:"limit_changes_left_out"`   // the changes that could not be applied

	// The simulated driver's costs. The times below are ns of all threads together: creates of blocks and slabs, first
	// touches of requested bytes, releases of blocks and slabs, creates and releases of sub-allocations.
	Device                                         cost.Device `json:"device_cost"`
	DriverNS, CreateNS, TouchNS, ReleaseNS, PartNS float64     `json:"-"`
	SavedNS                                        float64     `json:"-"` // creates and releases of blocks that hits avoided, less sub-allocations

	BytesRequested uint64 `json:"bytes_requested"`
	BytesAllocated uint64 `json:"bytes_allocated"`
	PeakInUse      uint64 `json:"peak_in_use_poolable"` // of all processes together
	PeakReserved   uint64 `json:"peak_reserved_poolable"`
	WantedAtPeak   uint64 `json:"-"` // requested bytes when most was in use

	// Bytes at the end.
	InUse   uint64 `json:"in_use_poolable"`
	Wanted  uint64 `json:"-"`
	Cached  uint64 `json:"bytes_cached"`
	Cooling uint64 `json:"bytes_cooling"`

	// When the most bytes were cached, at the moments before contexts ended and at the end.
	Free    uint64  `json:"bytes_cached_before_end"`
	Largest uint64  `json:"-"` // the largest free block, or free range of a slab
	Squares float64 `json:"-"` // sum of the squares of free blocks and ranges
	Slabs   uint64  `json:"slabs_before_end"`

	Arena Arena `json:"-"` // what layouts achieved

	Recorded Recorded `json:"-"`
	Lost     uint64   `json:"lost_events"` // events that the recording lacks
}

// Recorded has figures of the recorded policy.
type Recorded struct {
	Hits, Misses uint64
	DriverNS     uint64 // as MeasuredDriverNS has it, if the caller sets it; 0: unknown
}

// CarvesSlabs reports whether the policy cuts slabs into sub-allocations.
func (r *Result) CarvesSlabs() bool { return allocator.UsesSlabs(r.Policy) }

// HitRate returns hits / (hits + misses), 0 without a request.
func (r *Result) HitRate() float64 { return shareOf(r.Hits, r.Hits+r.Misses) }

// SteadyHitRate returns the hit rate of the later half of the requests, 0 without a request.
func (r *Result) SteadyHitRate() float64 { return shareOf(r.SteadyHits, r.SteadyRequests) }

// RecordedHitRate returns the hit rate of the recorded policy.
func (r *Result) RecordedHitRate() float64 {
	return shareOf(r.Recorded.Hits, r.Recorded.Hits+r.Recorded.Misses)
}

// WasteAtPeak returns (granted - requested) / granted when most was in use.
func (r *Result) WasteAtPeak() float64 { return shareOf(r.PeakInUse-r.WantedAtPeak, r.PeakInUse) }

// WasteAtEnd returns (granted - requested) / granted at the end.
func (r *Result) WasteAtEnd() float64 { return shareOf(r.InUse-r.Wanted, r.InUse) }

// ExternalFragmentation returns 1 - largest free block or range / all free bytes before the contexts ended, 0 if
// nothing was free.
func (r *Result) ExternalFragmentation() float64 {
	if r.Free == 0 {
		return 0
	}
	return max(0, min(1-float64(r.Largest)/float64(r.Free), 1))
}

// QuadraticFragmentation returns 1 - Σf²/F² over the same free blocks and ranges.
func (r *Result) QuadraticFragmentation() float64 {
	return allocator.QuadraticFragmentation(r.Squares, r.Free)
}

// RootFragmentation returns 1 - √Σf²/F over the same free blocks and ranges.
func (r *Result) RootFragmentation() float64 { return allocator.RootFragmentation(r.Squares, r.Free) }

func shareOf(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
