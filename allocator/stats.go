package allocator

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Stats has the counters and gauges of a policy. Names follow seed 003's PoolStats; docs/METRICS.md defines each.
type Stats struct {
	Hits, Misses   uint64
	MissReasons    [wire.MissPolicy + 1]uint64
	BytesRequested uint64 // sum of all requests
	BytesAllocated uint64 // sum of all blocks created
	BytesCached    uint64 // free now, in blocks and slabs
	BytesCooling   uint64 // released, still used by queued commands
	BytesInUse     uint64 // granted now
	BytesWanted    uint64 // requested bytes of the grants in use now
	PeakInUse      uint64
	PeakWanted     uint64
	PeakCached     uint64
	PeakCooling    uint64
	PeakReserved   uint64 // of in use + cached + cooling
	Blocks         uint64 // driver objects that the pool knows now, in any state; slabs included
	Slabs          uint64 // slabs among the blocks
	Parts          uint64 // sub-allocations in use and cooling
	Evictions      uint64
	Planned        uint64             // requests that a layout served
	Departures     [departures]uint64 // requests that the base policy served instead, by reason
	Largest        uint64             // bytes of the largest free block, or range in a slab
	Ranges         uint64             // free blocks, and ranges in slabs
	Squares        float64            // sum of the squares of their sizes
	InSlabs        Space              // the part in slabs of BytesCached, Largest, Ranges and Squares
}

// Space describes free ranges.
type Space struct {
	Bytes, Largest, Ranges uint64
	Squares                float64
}

// ReservedBytes returns the bytes held from the driver: in use, cached and cooling.
func (s *Stats) ReservedBytes() uint64 { return s.BytesInUse + s.BytesCached + s.BytesCooling }

// ExcessBytes returns the bytes held from the driver beyond what the program has asked for.
func (s *Stats) ExcessBytes() uint64 { return s.ReservedBytes() - s.BytesWanted }

// raisePeaks raises the peaks that a gauge exceeds.
func (s *Stats) raisePeaks() {
	s.PeakInUse = max(s.PeakInUse, s.BytesInUse)
	s.PeakWanted = max(s.PeakWanted, s.BytesWanted)
	s.PeakCached = max(s.PeakCached, s.BytesCached)
	s.PeakCooling = max(s.PeakCooling, s.BytesCooling)
	s.PeakReserved = max(s.PeakReserved, s.ReservedBytes())
}

// addArm adds the counters and gauges of another arm, but not its peaks.
func (s *Stats) addArm(t *Stats) {
	s.Hits, s.Misses = s.Hits+t.Hits, s.Misses+t.Misses
	for i, n := range t.MissReasons {
		s.MissReasons[i] += n
	}
	s.BytesRequested, s.BytesAllocated = s.BytesRequested+t.BytesRequested, s.BytesAllocated+t.BytesAllocated
	s.BytesCached, s.BytesCooling = s.BytesCached+t.BytesCached, s.BytesCooling+t.BytesCooling
	s.BytesInUse, s.BytesWanted = s.BytesInUse+t.BytesInUse, s.BytesWanted+t.BytesWanted
	s.Blocks, s.Slabs, s.Parts = s.Blocks+t.Blocks, s.Slabs+t.Slabs, s.Parts+t.Parts
	s.Evictions, s.Planned = s.Evictions+t.Evictions, s.Planned+t.Planned
	for i, n := range t.Departures {
		s.Departures[i] += n
	}
	s.Largest, s.Ranges, s.Squares = max(s.Largest, t.Largest), s.Ranges+t.Ranges, s.Squares+t.Squares
	s.InSlabs.Bytes += t.InSlabs.Bytes
	s.InSlabs.Largest = max(s.InSlabs.Largest, t.InSlabs.Largest)
	s.InSlabs.Ranges, s.InSlabs.Squares = s.InSlabs.Ranges+t.InSlabs.Ranges, s.InSlabs.Squares+t.InSlabs.Squares
}

// QuadraticFragmentation returns 1 - Σf²/F² over free sizes f and their sum F, 0 when nothing is free (Sawicki 2022).
func QuadraticFragmentation(squares float64, free uint64) float64 {
	f := float64(free)
	return clampedFragmentation(squares/f/f, free)
}

// RootFragmentation returns 1 - √(Σf²)/F, 0 when nothing is free: Pigweed's definition.
func RootFragmentation(squares float64, free uint64) float64 {
	return clampedFragmentation(math.Sqrt(squares)/float64(free), free)
}

// clampedFragmentation keeps 1 - whole within 0…1: the squares may be a moment older than the sum.
func clampedFragmentation(whole float64, free uint64) float64 {
	if free == 0 {
		return 0
	}
	return max(0, min(1-whole, 1))
}

// Stats returns counters and gauges. It costs O(1), and O(classes) to find the largest free block.
func (p *Pool) Stats() Stats {
	s := p.stats
	s.Ranges, s.Squares = uint64(p.tally.Ranges), p.tally.Squares()
	if i := p.free.firstAmongLargest(p.compareBySize); i != 0 {
		s.Largest = p.entryAt(i).size
	}
	if p.maySlabsExist() {
		s.InSlabs = p.freeSpaceInSlabs(p.layouts.currentArenas())
		s.Largest = max(s.Largest, s.InSlabs.Largest)
		s.Ranges += s.InSlabs.Ranges
		s.Squares += s.InSlabs.Squares
	}
	return s
}
