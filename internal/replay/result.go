package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Result is what a policy did with a recording: sums over its processes, each of which has a policy of its own.
// Sizes are bytes. The words are those of docs/METRICS.md.
type Result struct {
	Policy    string
	Limits    []allocator.Limit
	Capacity  uint64 // for each process; 0: any
	Processes int

	Requests         uint64 // poolable, in the recording
	Whole            uint64 // of these, that no part of a slab could serve
	Unpooled         uint64 // creates of the recording that were not, and are left out
	Before           uint64 // buffers from before the recording of which no more is known; they are left out, too
	Failures         uint64 // requests that found no memory
	Direct           uint64 // requests that were met as they came when there was no memory for a larger block
	Hits, Misses     uint64
	MissReasons      [wire.MissPolicy + 1]uint64
	SteadyHits       uint64 // of the later half of the requests that were hits or misses
	SteadyRequests   uint64
	DriverCreates    uint64 // blocks and slabs; what is left out is not in it
	Evictions        uint64
	Rescued          uint64 // requests that failed in the recording and would have found memory; nothing else is known of them
	Switches         uint64 // times that a recorded process changed its policy, and that are left out
	Changes, LeftOut uint64 // changes of limits and trims in the recording, and those of them that were not made here

	// What the simulated device takes, in ns of all threads together: for creates of blocks and slabs, for the first
	// use of what was asked for of each, for their releases, and for making and releasing parts of slabs.
	Device                                         cost.Device
	DriverNS, CreateNS, TouchNS, ReleaseNS, PartNS float64
	SavedNS                                        float64 // by hits: creates of their blocks

	BytesRequested, BytesAllocated uint64
	PeakInUse, PeakReserved        uint64 // of all processes together
	WantedAtPeak                   uint64 // requested when most was in use

	// At the end.
	InUse, Wanted, Cached, Cooling uint64

	// Before the contexts ended, which takes everything back to the driver, or at the end where none did.
	Free    uint64  // bytes cached
	Largest uint64  // block, or range in a slab
	Squares float64 // of all of them, summed
	Slabs   uint64

	Arena Arena // what plans did

	Recorded struct{ Hits, Misses uint64 } // by the policy that was recorded
	Lost     uint64                        // events that the recording misses
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
