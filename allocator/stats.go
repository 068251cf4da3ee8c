package allocator

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Stats counts what a policy has done. Names follow seed 003's PoolStats; docs/METRICS.md defines each.
type Stats struct {
	Hits, Misses   uint64
	MissReasons    [wire.MissPolicy + 1]uint64
	BytesRequested uint64 // sum of all requests
	BytesAllocated uint64 // sum of all blocks created
	BytesCached    uint64 // free now, in blocks and slabs
	BytesCooling   uint64 // free, still used by queued commands
	BytesInUse     uint64 // granted now
	BytesWanted    uint64 // requested of what is granted now
	PeakInUse      uint64
	PeakWanted     uint64
	PeakCached     uint64
	PeakCooling    uint64
	PeakReserved   uint64 // of in use + cached + cooling
	Blocks         uint64 // of the driver, known now, in whatever state; slabs are blocks
	Slabs          uint64 // of these
	Parts          uint64 // of slabs, in use and cooling
	Evictions      uint64
	Planned        uint64             // requests that a layout served
	Departures     [departures]uint64 // that the base policy served instead
	Largest        uint64             // bytes of the largest free block, or range in a slab
	Ranges         uint64             // free blocks, and ranges in slabs
	Squares        float64            // of their sizes, summed
	InSlabs        Space              // what of the last three, and of BytesCached, lies in slabs
}

// Space describes free ranges.
type Space struct {
	Bytes, Largest, Ranges uint64
	Squares                float64
}

// Reserved returns the bytes held from the driver: in use, cached and cooling.
func (s *Stats) Reserved() uint64 { return s.BytesInUse + s.BytesCached + s.BytesCooling }

// Excess returns the bytes held from the driver beyond what the program has asked for.
func (s *Stats) Excess() uint64 { return s.Reserved() - s.BytesWanted }

// peaks raises what has grown.
func (s *Stats) peaks() {
	s.PeakInUse = max(s.PeakInUse, s.BytesInUse)
	s.PeakWanted = max(s.PeakWanted, s.BytesWanted)
	s.PeakCached = max(s.PeakCached, s.BytesCached)
	s.PeakCooling = max(s.PeakCooling, s.BytesCooling)
	s.PeakReserved = max(s.PeakReserved, s.Reserved())
}

// Quadratic returns 1 - Σf²/F² over free sizes f and their sum F, 0 when nothing is free (Sawicki 2022).
func Quadratic(squares float64, free uint64) float64 {
	f := float64(free)
	return fragmentation(squares/f/f, free)
}

// Root returns 1 - √(Σf²)/F, 0 when nothing is free: how Pigweed puts it.
func Root(squares float64, free uint64) float64 {
	return fragmentation(math.Sqrt(squares)/float64(free), free)
}

// fragmentation keeps 1 - whole within 0…1: the squares may be a moment older than the sum.
func fragmentation(whole float64, free uint64) float64 {
	if free == 0 {
		return 0
	}
	return max(0, min(1-whole, 1))
}

// Stats returns counters and gauges. It costs O(1), and O(classes) to find the largest free block.
func (p *Pool) Stats() Stats {
	s := p.stats
	s.Ranges, s.Squares = uint64(p.tally.Ranges), p.tally.Squares()
	if i := p.free.largest(p.bySize); i != 0 {
		s.Largest = p.entries[i].size
	}
	if p.slabs != nil {
		s.InSlabs = p.inSlabs()
		s.Largest = max(s.Largest, s.InSlabs.Largest)
		s.Ranges += s.InSlabs.Ranges
		s.Squares += s.InSlabs.Squares
	}
	return s
}
