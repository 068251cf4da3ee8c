package curve

import (
	"cmp"
	"math"
	"slices"
)

// stack holds cached blocks, or a sample of them, and knows at which limits each would still be cached.
//
// A block that is larger than the limit goes to the driver at once and evicts nothing. So small limits see another
// cache than large ones: there is a level of depths for each size that occurs, without the blocks that are larger.
// Where there are too many, sizes next to each other share one.
type stack struct {
	levels []level // ascending
	slots  int     // in each at most
	shift  uint    // a block stands for 2^shift blocks
}

// levelsMax bounds what a block costs.
const levelsMax = 16

// level is what limits from low on see, up to the next level: blocks of at most high bytes. For limits between the two
// it counts blocks that are too large, too.
type level struct {
	low, high uint64
	depths
}

func (s *stack) weight(size uint64) float64 { return math.Ldexp(float64(size), int(s.shift)) }

// push caches a block of at least 1 byte on top, at a place in the order beyond all others.
func (s *stack) push(order, size uint64) {
	for i := s.levelFor(size); i < len(s.levels); i++ {
		s.levels[i].push(order, float64(size), s.weight(size), s.slots)
	}
}

// levelOf returns the place of the lowest level that has blocks of a size.
func (s *stack) levelOf(size uint64) int {
	i, _ := slices.BinarySearchFunc(s.levels, size, func(l level, size uint64) int { return cmp.Compare(l.high, size) })
	return i
}

// levelFor is levelOf for a size that may be new. A new level begins with the blocks of the one below: those are all
// that it would have.
func (s *stack) levelFor(size uint64) int {
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
		s.join()
		i = s.levelOf(size)
	}
	return i
}

// join makes one level of the two that are most alike.
func (s *stack) join() {
	found, least := 1, math.Inf(1)
	for i := 1; i < len(s.levels); i++ {
		if ratio := float64(s.levels[i].high) / float64(s.levels[i-1].low); ratio < least {
			found, least = i, ratio
		}
	}
	s.levels[found].low = s.levels[found-1].low
	s.levels = slices.Delete(s.levels, found-1, found)
}

// pop takes a block out. If it serves a request, t notes at which limits it would have; else t is nil.
func (s *stack) pop(order, size uint64, t *tally) {
	weight, stands := s.weight(size), math.Ldexp(1, int(s.shift))
	for i := s.levelOf(size); i < len(s.levels); i++ {
		from, to := float64(s.levels[i].low), beyond
		if i+1 < len(s.levels) {
			to = placeOf(float64(s.levels[i+1].low))
		}
		deepest := s.levels[i].pop(order, weight)
		if t != nil {
			t.between(placeOf(max(deepest, from, float64(size))), to, stands)
		}
	}
	if t != nil {
		t.weighted += stands
	}
}

// thin forgets blocks: each yields those that remain, which stand for 2^shift each.
func (s *stack) thin(shift uint, each func(yield func(order, size uint64))) {
	s.shift = shift
	for i := range s.levels {
		s.levels[i].clear()
	}
	each(func(order, size uint64) {
		for i := s.levelOf(size); i < len(s.levels); i++ {
			s.levels[i].recall(order, s.weight(size))
		}
	})
	for i := range s.levels {
		s.levels[i].recount(math.Ldexp(1, int(shift)))
	}
}
