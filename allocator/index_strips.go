package allocator

import (
	"math/bits"
	"slices"
)

// How the strips of an index (index.go) grow, part and go.

// makeRoom makes room on a full strip. If at most a quarter of its sizes have blocks the others go. Else the strip gets
// twice the room, or gives what stands above half of those to a new one. So this costs little for each size that comes.
func (x *index) makeRoom(s *ladder, rank int) {
	strip := s.strips[rank]
	on := &x.strips[strip]
	room := len(on.sizes)
	switch full := bits.OnesCount64(on.full); {
	case 4*full <= room:
		x.sweep(on)
	case room < stripMax:
		on.sizes = append(make([]uint64, 0, 2*room), on.sizes...)
		on.nodes = append(make([]int32, 0, 2*room), on.nodes...)
	default:
		at := middle(on.full)
		upper := x.newStrip(stripMax)
		on = &x.strips[strip] // that may have moved
		s.lows = slices.Insert(s.lows, rank+1, on.sizes[at])
		s.strips = slices.Insert(s.strips, rank+1, upper)
		x.part(on, at, upper)
	}
}

// middle returns the place of the bit that has as many others below it as from it on, or one less.
func middle(full uint64) int {
	for range bits.OnesCount64(full) / 2 {
		full &= full - 1
	}
	return bits.TrailingZeros64(full)
}

// part moves what stands on a strip from a place on to an empty strip.
func (x *index) part(s *strip, at int, upper int32) {
	to := &x.strips[upper]
	to.sizes, to.nodes, to.full = append(to.sizes, s.sizes[at:]...), append(to.nodes, s.nodes[at:]...), s.full>>at
	s.sizes, s.nodes, s.full = s.sizes[:at], s.nodes[:at], s.full&(1<<at-1)
	for place, n := range to.nodes {
		x.nodes[n].strip, x.nodes[n].place = upper, int32(place)
	}
}

// sweep takes the sizes without blocks off a strip.
func (x *index) sweep(s *strip) {
	kept := 0
	for place, n := range s.nodes {
		if s.full>>(place&63)&1 == 0 {
			x.release(n)
			continue
		}
		s.sizes[kept], s.nodes[kept] = s.sizes[place], n
		x.nodes[n].place = int32(kept)
		kept++
	}
	s.sizes, s.nodes = s.sizes[:kept], s.nodes[:kept]
	s.full = 1<<kept - 1
}

// clear forgets the strip of a size, on which no block is left, unless it is the section's only one, which it reports. The one
// below gets its range: what comes back goes there, so that this costs no more than making strips does.
func (x *index) clear(section int32, size uint64) (only bool) {
	s := &x.sections[section]
	if len(s.strips) == 1 {
		return true
	}
	rank := s.rank(size)
	x.forget(s.strips[rank])
	s.lows, s.strips = slices.Delete(s.lows, rank, rank+1), slices.Delete(s.strips, rank, rank+1)
	s.lows[0] = 0
	return false
}

// forget makes a strip without blocks unused.
func (x *index) forget(strip int32) {
	s := &x.strips[strip]
	x.sweep(s)
	s.sizes, s.nodes = nil, nil
	x.unused = append(x.unused, strip)
}
