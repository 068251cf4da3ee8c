package curve

import (
	"cmp"
	"math"
	"slices"
)

// stack holds cached blocks, or a sample of them, and knows the limits at which each would still be cached.
//
// A block that is larger than the limit is released to the driver at once and evicts nothing. So small limits have a
// different cache than large ones: there is a level of depths for each size, without the blocks that are larger. If
// there are too many sizes, neighbouring sizes share a level.
type stack struct {
	levels []level // ascending
	slots  int     // in each level, at most
	shift  uint    // a block represents 2^shift blocks
}

// levelsMax bounds the cost of a block.
const levelsMax = 16

// level is the cache of limits from low on, up to the next level: blocks of at most high bytes. For limits between low
// and high it also counts blocks that are too large.
type level struct {
	low, high uint64
	depths
}

func (s *stack) representedBytes(size uint64) float64 { return math.Ldexp(float64(size), int(s.shift)) }

// pushBlock caches a block of at least 1 byte on top; its order is above all others.
func (s *stack) pushBlock(order, size uint64) {
	for i := s.levelOrNew(size); i < len(s.levels); i++ {
		s.levels[i].pushBlock(order, float64(size), s.representedBytes(size), s.slots)
	}
}

// levelOf returns the index of the lowest level that has blocks of a size.
func (s *stack) levelOf(size uint64) int {
	i, _ := slices.BinarySearchFunc(s.levels, size, func(l level, size uint64) int { return cmp.Compare(l.high, size) })
	return i
}

// levelOrNew is levelOf for a size that may be new. A new level begins with the blocks of the level below it, which are
// all that it would have.
func (s *stack) levelOrNew(size uint64) int {
	i := s.levelOf(size)
	if i < len(s.levels) && s.levels[i].low <= size {
		return i
	}
	l := level{low: size, high: size}
	if i > 0 {
		l.depths = s.levels[i-1].clone()
	}
	s.levels = slices.Insert(s.levels, i, l)
	if len(s.levels) > levelsMax {
		s.joinMostAlikeLevels()
		i = s.levelOf(size)
	}
	return i
}

// joinMostAlikeLevels joins the two neighbouring levels whose sizes are most alike.
func (s *stack) joinMostAlikeLevels() {
	found, least := 1, math.Inf(1)
	for i := 1; i < len(s.levels); i++ {
		if ratio := float64(s.levels[i].high) / float64(s.levels[i-1].low); ratio < least {
			found, least = i, ratio
		}
	}
	s.levels[found].low = s.levels[found-1].low
	s.levels = slices.Delete(s.levels, found-1, found)
}

// popBlock removes a block. If the block serves a request, t notes the limits at which it would have been cached; else t is
// nil.
func (s *stack) popBlock(order, size uint64, t *tally) {
	weight, stands := s.representedBytes(size), math.Ldexp(1, int(s.shift))
	for i := s.levelOf(size); i < len(s.levels); i++ {
		from, to := float64(s.levels[i].low), bucketBeyond
		if i+1 < len(s.levels) {
			to = bucketOfLimit(float64(s.levels[i+1].low))
		}
		deepest := s.levels[i].popBlock(order, weight)
		if t != nil {
			t.addHits(bucketOfLimit(max(deepest, from, float64(size))), to, stands)
		}
	}
	if t != nil {
		t.measuredHits += stands
	}
}

// thinToSample keeps a sample of the blocks: each yields the blocks that are kept, and each kept block represents 2^shift
// blocks.
func (s *stack) thinToSample(shift uint, each func(yield func(order, size uint64))) {
	s.shift = shift
	for i := range s.levels {
		s.levels[i].clearBlocks()
	}
	each(func(order, size uint64) {
		for i := s.levelOf(size); i < len(s.levels); i++ {
			s.levels[i].restoreBlock(order, s.representedBytes(size))
		}
	})
	for i := range s.levels {
		s.levels[i].recomputeDepths(math.Ldexp(1, int(shift)))
	}
}
