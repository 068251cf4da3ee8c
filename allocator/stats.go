package allocator

import (
	"math"
	"math/bits"

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
	Largest        uint64  // bytes of the largest free block, or range in a slab
	Ranges         uint64  // free blocks, and ranges in slabs
	Squares        float64 // of their sizes, summed
	InSlabs        Space   // what of the last three, and of BytesCached, lies in slabs
}

// Space describes free ranges.
type Space struct {
	Bytes, Largest, Ranges uint64
	Squares                float64
}

// HitRate returns hits / (hits + misses), 0 before the first request (seed 003, PoolStats).
func (s *Stats) HitRate() float64 {
	if total := s.Hits + s.Misses; total > 0 {
		return float64(s.Hits) / float64(total)
	}
	return 0
}

// Reserved returns the bytes held from the driver: in use, cached and cooling.
func (s *Stats) Reserved() uint64 { return s.BytesInUse + s.BytesCached + s.BytesCooling }

// Waste returns (granted - requested) / granted of what is in use, 0 when nothing is.
func (s *Stats) Waste() float64 {
	if s.BytesInUse == 0 {
		return 0
	}
	return float64(s.BytesInUse-s.BytesWanted) / float64(s.BytesInUse)
}

// External returns 1 - largest free / all free, 0 when nothing is free: how RMM and Umpire put it.
func (s *Stats) External() float64 {
	if s.BytesCached == 0 {
		return 0
	}
	return 1 - float64(s.Largest)/float64(s.BytesCached)
}

// Quadratic returns 1 - Σf²/F² over free sizes f and their sum F, 0 when nothing is free (Sawicki 2022).
func (s *Stats) Quadratic() float64 {
	if s.BytesCached == 0 {
		return 0
	}
	return max(0, 1-s.Squares/(float64(s.BytesCached)*float64(s.BytesCached)))
}

// Root returns 1 - √(Σf²)/F, 0 when nothing is free: how Pigweed puts it.
func (s *Stats) Root() float64 {
	if s.BytesCached == 0 {
		return 0
	}
	return max(0, 1-math.Sqrt(s.Squares)/float64(s.BytesCached))
}

// peaks raises what has grown.
func (s *Stats) peaks() {
	s.PeakInUse = max(s.PeakInUse, s.BytesInUse)
	s.PeakWanted = max(s.PeakWanted, s.BytesWanted)
	s.PeakCached = max(s.PeakCached, s.BytesCached)
	s.PeakCooling = max(s.PeakCooling, s.BytesCooling)
	s.PeakReserved = max(s.PeakReserved, s.Reserved())
}

// wide is a sum of squares, exact however often one is added and taken off.
type wide struct{ high, low uint64 }

func (w *wide) add(size uint64) {
	high, low := bits.Mul64(size, size)
	var carry uint64
	w.low, carry = bits.Add64(w.low, low, 0)
	w.high, _ = bits.Add64(w.high, high, carry)
}

func (w *wide) sub(size uint64) {
	high, low := bits.Mul64(size, size)
	var borrow uint64
	w.low, borrow = bits.Sub64(w.low, low, 0)
	w.high, _ = bits.Sub64(w.high, high, borrow)
}

func (w *wide) float() float64 { return math.Ldexp(float64(w.high), 64) + float64(w.low) }

// Dimension says what each of the Rows stands for.
type Dimension uint8

// The dimensions.
const (
	ByTag Dimension = iota
	ByBucket
	ByClass
)

// Row is what a policy has counted for one tag, one bucket of sizes, or one class.
type Row struct {
	Key     uint64 // the tag, the largest size of the bucket in bytes, or the class; 0 for tags and classes beyond rowsMax
	Hits    uint64
	Misses  uint64
	InUse   uint64 // bytes granted now
	Wanted  uint64 // bytes requested of these
	Cached  uint64 // bytes free now, except in slabs, which have no tag and no bucket
	Cooling uint64
	Blocks  uint64 // cached now
}

// rowsMax bounds how many tags, and classes, have rows of their own.
const rowsMax = 1 << 16

// rows keeps Rows; each is found by a small number.
type rows [ByClass + 1][]Row

// at returns the place of a row, which it makes if it is not there.
func (r *rows) at(by Dimension, number int, key uint64) int32 {
	if number >= rowsMax {
		number, key = 0, 0
	}
	for len(r[by]) <= number {
		r[by] = append(r[by], Row{})
	}
	r[by][number].Key = key
	return int32(number)
}

// assign finds the rows that a block counts in from now on.
func (p *Pool) assign(e *entry) {
	number, largest := p.bucket(e.size)
	e.rows = [...]int32{
		ByTag:    p.rows.at(ByTag, int(e.tag), uint64(e.tag)),
		ByBucket: p.rows.at(ByBucket, number, largest),
		ByClass:  p.rows.at(ByClass, int(e.class), uint64(e.class)),
	}
}

// of returns the rows that a block counts in.
func (p *Pool) of(e *entry) [ByClass + 1]*Row {
	return [...]*Row{
		ByTag:    &p.rows[ByTag][e.rows[ByTag]],
		ByBucket: &p.rows[ByBucket][e.rows[ByBucket]],
		ByClass:  &p.rows[ByClass][e.rows[ByClass]],
	}
}

// Rows returns the same by tag, by bucket and by class, those with something to say, in ascending order.
func (p *Pool) Rows(by Dimension) []Row {
	var list []Row
	for _, row := range p.rows[by] {
		if empty := (Row{Key: row.Key}); row != empty {
			list = append(list, row)
		}
	}
	return list
}

// Stats returns counters and gauges. It costs O(1), and O(classes) to find the largest free block.
func (p *Pool) Stats() Stats {
	s := p.stats
	s.Squares = p.squares.float()
	if i := p.free.largest(); i != 0 {
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
