package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Result is what a policy did with a recording: sums over its processes, each of which has a policy of its own.
// Sizes are bytes. The words are those of docs/METRICS.md.
type Result struct {
	Policy    string            `json:"policy"`
	Limits    []allocator.Limit `json:"-"`
	Capacity  uint64            `json:"capacity"` // for each process; 0: any
	Processes int               `json:"process_count"`

	Requests    uint64                      `json:"requests"`         // poolable, in the recording: hits, misses, direct and failures
	Whole       uint64                      `json:"need_blocks"`      // of these, that no part of a slab could serve
	Unpooled    uint64                      `json:"unpooled"`         // creates of the recording that were not, and are left out
	Before      uint64                      `json:"before,omitempty"` // buffers from before the recording of which no more is known; they are left out, too
	Failures    uint64                      `json:"failures"`         // requests that found no memory
	Direct      uint64                      `json:"direct"`           // requests that were met as they came when there was no memory for a larger block
	Hits        uint64                      `json:"hits"`
	Misses      uint64                      `json:"misses"`
	MissReasons [wire.MissPolicy + 1]uint64 `json:"-"`

	SteadyHits, SteadyRequests uint64 `json:"-"`                       // of the later half of the requests that were hits or misses
	DriverCreates              uint64 `json:"driver_creates_poolable"` // blocks and slabs; what is left out is not in it
	Evictions                  uint64 `json:"evictions"`
	Rescued                    uint64 `json:"rescued"`                  // requests that failed in the recording and would have found memory; nothing else is known of them
	Switches                   uint64 `json:"policy_changes,omitempty"` // times that a recorded process changed its policy, and that are left out
	Changes                    uint64 `json:"limit_changes"`            // changes of limits and trims in the recording
	LeftOut                    uint64 `json:"limit_changes_left_out"`   // those of them that were not made here

	// What the simulated device takes, in ns of all threads together: for creates of blocks and slabs, for the first
	// use of what was asked for of each, for their releases, and for making and releasing parts of slabs.
	Device                                         cost.Device `json:"device_cost"`
	DriverNS, CreateNS, TouchNS, ReleaseNS, PartNS float64     `json:"-"`
	SavedNS                                        float64     `json:"-"` // by hits: creates of their blocks

	BytesRequested uint64 `json:"bytes_requested"`
	BytesAllocated uint64 `json:"bytes_allocated"`
	PeakInUse      uint64 `json:"peak_in_use_poolable"` // of all processes together
	PeakReserved   uint64 `json:"peak_reserved_poolable"`
	WantedAtPeak   uint64 `json:"-"` // requested when most was in use

	// At the end.
	InUse   uint64 `json:"in_use_poolable"`
	Wanted  uint64 `json:"-"`
	Cached  uint64 `json:"bytes_cached"`
	Cooling uint64 `json:"bytes_cooling"`

	// Before the contexts ended, which takes everything back to the driver, or at the end where none did.
	Free    uint64  `json:"bytes_cached_before_end"`
	Largest uint64  `json:"-"` // block, or range in a slab
	Squares float64 `json:"-"` // of all of them, summed
	Slabs   uint64  `json:"slabs_before_end"`

	Arena Arena `json:"-"` // what plans did

	Recorded struct{ Hits, Misses uint64 } `json:"-"`           // by the policy that was recorded
	Lost     uint64                        `json:"lost_events"` // events that the recording misses
}

// Carves reports whether the policy cuts slabs into sub-allocations.
func (r *Result) Carves() bool { return allocator.Carves(r.Policy) }

// HitRate returns hits / (hits + misses), 0 without a request.
func (r *Result) HitRate() float64 { return rate(r.Hits, r.Hits+r.Misses) }

// SteadyHitRate returns the hit rate of the later half of the requests, 0 without a request.
func (r *Result) SteadyHitRate() float64 { return rate(r.SteadyHits, r.SteadyRequests) }

// RecordedHitRate returns the same of the policy that was recorded.
func (r *Result) RecordedHitRate() float64 {
	return rate(r.Recorded.Hits, r.Recorded.Hits+r.Recorded.Misses)
}

// WasteAtPeak returns (granted - requested) / granted when most was in use.
func (r *Result) WasteAtPeak() float64 { return rate(r.PeakInUse-r.WantedAtPeak, r.PeakInUse) }

// Waste returns the same at the end.
func (r *Result) Waste() float64 { return rate(r.InUse-r.Wanted, r.InUse) }

// ExternalFragmentation returns 1 - largest free block or range / all free bytes before the contexts ended, 0 when
// nothing was free.
func (r *Result) ExternalFragmentation() float64 {
	if r.Free == 0 {
		return 0
	}
	return max(0, min(1-float64(r.Largest)/float64(r.Free), 1))
}

// QuadraticFragmentation returns 1 - Σf²/F² of the same.
func (r *Result) QuadraticFragmentation() float64 { return allocator.Quadratic(r.Squares, r.Free) }

// RootFragmentation returns 1 - √Σf²/F of the same.
func (r *Result) RootFragmentation() float64 { return allocator.Root(r.Squares, r.Free) }

func rate(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
