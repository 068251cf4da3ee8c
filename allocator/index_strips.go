package allocator

import (
	"math/bits"
	"slices"
)

// This file has the growth, division and removal of an index's strips (index.go).

// makeRoomOnStrip makes room on a full strip. If at most a quarter of its sizes have blocks, it removes the other sizes.
// Otherwise the strip gets twice the room, or its upper half moves to a new strip. The cost for each new size is small.
func (x *index) makeRoomOnStrip(s *ladder, rank int) {
	strip := s.strips[rank]
	on := &x.strips[strip]
	room := len(on.sizes)
	switch full := bits.OnesCount64(on.full); {
	case 4*full <= room:
		x.removeEmptySizes(on)
	case room < stripMax:
		on.sizes = append(make([]uint64, 0, 2*room), on.sizes...)
		on.nodes = append(make([]int32, 0, 2*room), on.nodes...)
	default:
		place := medianBit(on.full)
		upper := x.newStrip(stripMax)
		on = &x.strips[strip] // newStrip may have moved the strips
		s.lows = slices.Insert(s.lows, rank+1, on.sizes[place])
		s.strips = slices.Insert(s.strips, rank+1, upper)
		x.splitStrip(on, place, upper)
	}
}

// medianBit returns the index of the bit that divides the set bits in two halves; the lower half may have one bit less.
func medianBit(full uint64) int {
	for range bits.OnesCount64(full) / 2 {
		full &= full - 1
	}
	return bits.TrailingZeros64(full)
}

// splitStrip moves the sizes of a strip from an index on to an empty strip.
func (x *index) splitStrip(s *strip, from int, upper int32) {
	to := &x.strips[upper]
	to.sizes, to.nodes, to.full = append(to.sizes, s.sizes[from:]...), append(to.nodes, s.nodes[from:]...), s.full>>from
	s.sizes, s.nodes, s.full = s.sizes[:from], s.nodes[:from], s.full&(1<<from-1)
	for place, n := range to.nodes {
		x.nodes[n].strip, x.nodes[n].place = upper, int32(place)
	}
}

// removeEmptySizes removes the sizes without blocks from a strip.
func (x *index) removeEmptySizes(s *strip) {
	kept := 0
	for place, n := range s.nodes {
		if s.full>>(place&63)&1 == 0 {
			x.releaseNode(n)
			continue
		}
		s.sizes[kept], s.nodes[kept] = s.sizes[place], n
		x.nodes[n].place = int32(kept)
		kept++
	}
	s.sizes, s.nodes = s.sizes[:kept], s.nodes[:kept]
	s.full = 1<<kept - 1
}

// forgetStripIfEmpty forgets the strip of a size when no block is left on it; the strip below gets its range. It keeps the only
// strip of a section, and reports that. Over time it costs no more than making strips.
func (x *index) forgetStripIfEmpty(section int32, size uint64) (only bool) {
	s := &x.sections[section]
	if len(s.strips) == 1 {
		return true
	}
	rank := s.stripIndex(size)
	x.releaseStrip(s.strips[rank])
	s.lows, s.strips = slices.Delete(s.lows, rank, rank+1), slices.Delete(s.strips, rank, rank+1)
	s.lows[0] = 0
	return false
}

// releaseStrip makes a strip without blocks unused.
func (x *index) releaseStrip(strip int32) {
	s := &x.strips[strip]
	x.removeEmptySizes(s)
	s.sizes, s.nodes = nil, nil
	x.unused = append(x.unused, strip)
}
