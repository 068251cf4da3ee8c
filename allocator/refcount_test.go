package allocator

import (
	"maps"
	"slices"
)

// This file is the part of the reference that counts.

func (r *reference) forgetRows(dimensions ...Dimension) {
	for _, by := range dimensions {
		r.rows[by] = map[uint64][2]int{}
	}
}

// keys returns the rows that a block counts in. Buckets go by their largest size.
func (r *reference) keys(b *refBlock) map[Dimension]uint64 {
	return map[Dimension]uint64{ByTag: uint64(b.tag), ByBucket: r.round(b.size), ByClass: uint64(b.class)}
}

// stats counts the gauges from the blocks, and raises the peaks.
func (r *reference) stats() Stats {
	s := &r.count
	s.BytesInUse, s.BytesWanted, s.BytesCached, s.BytesCooling = 0, 0, 0, 0
	s.Blocks, s.Largest, s.Ranges, s.Squares = 0, 0, 0, 0
	for _, b := range r.blocks {
		if b.state != planned || b.hit {
			s.Blocks++
		}
		switch b.state {
		case inUse:
			s.BytesInUse += b.size
			s.BytesWanted += b.wanted
		case cooling:
			s.BytesCooling += b.size
		case cached:
			s.BytesCached += b.size
			s.Largest = max(s.Largest, b.size)
			s.Ranges++
			s.Squares += float64(b.size) * float64(b.size) // small enough to be exact
		}
	}
	s.PeakInUse = max(s.PeakInUse, s.BytesInUse)
	s.PeakWanted = max(s.PeakWanted, s.BytesWanted)
	s.PeakCached = max(s.PeakCached, s.BytesCached)
	s.PeakCooling = max(s.PeakCooling, s.BytesCooling)
	s.PeakReserved = max(s.PeakReserved, s.BytesInUse+s.BytesCached+s.BytesCooling)
	return *s
}

// table counts the rows of one dimension.
func (r *reference) table(by Dimension) []Row {
	rows := map[uint64]*Row{}
	at := func(key uint64) *Row {
		if rows[key] == nil {
			rows[key] = &Row{Key: key}
		}
		return rows[key]
	}
	for key, counts := range r.rows[by] {
		at(key).Hits, at(key).Misses = uint64(counts[0]), uint64(counts[1])
	}
	for _, b := range r.blocks {
		key := r.keys(b)[by]
		switch b.state {
		case inUse:
			at(key).InUse += b.size
			at(key).Wanted += b.wanted
		case cooling:
			at(key).Cooling += b.size
		case cached:
			at(key).Cached += b.size
			at(key).Blocks++
		}
	}
	var list []Row
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		list = append(list, *rows[key])
	}
	return list
}
