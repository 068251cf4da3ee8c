package arena

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// measure is a property of buffers by which an order sorts.
type measure uint8

const (
	byWidth measure = iota // how long the buffer lives
	bySize
	byArea // size times width
	byLoad // the most bytes that are needed at a time of its life
	byTime // when the buffer begins
	measures
)

// order is a list of measures, the most important first. Larger measures come first.
type order struct {
	name string
	by   []measure
}

// orders are the orders of the heuristics and the searches. Moffitt's are WAT, TAW and TWA, by their initials (his
// total is our load). Size is the usual order of first fit, and time that of an allocator.
var orders = []order{
	{"load, area, width", []measure{byLoad, byArea, byWidth}},
	{"width, area, load", []measure{byWidth, byArea, byLoad}},
	{"size, width", []measure{bySize, byWidth}},
	{"load, width, area", []measure{byLoad, byWidth, byArea}},
	{"area, width", []measure{byArea, byWidth}},
	{"time, size", []measure{byTime, bySize}},
}

// scales are the measures of all buffers.
type scales [measures][]float64

func newScales(p *problem, buffers []Buffer) *scales {
	var s scales
	for m := range s {
		s[m] = make([]float64, len(buffers))
	}
	load := make([]float64, len(p.sections))
	for t, entries := range p.sections {
		for _, e := range entries {
			load[t] += float64(e.size)
		}
	}
	for i := range buffers {
		b := &buffers[i]
		s[byWidth][i] = float64(b.Upper) - float64(b.Lower)
		s[bySize][i] = float64(b.Size)
		s[byArea][i] = s[byWidth][i] * s[bySize][i]
		s[byTime][i] = -float64(b.Lower)
		for _, c := range p.cells[i] {
			s[byLoad][i] = max(s[byLoad][i], load[c.section])
		}
	}
	return &s
}

// itemsSortedBy returns the items in an order. The first measure of each is changed at random by up to the share noise; then
// equal items are ordered at random, too.
func (s *scales) itemsSortedBy(items []int32, by []measure, noise float64, random *rand.Rand) []int32 {
	first := slices.Clone(s[by[0]])
	luck := make([]float64, len(first))
	if noise > 0 {
		for i := range first {
			first[i] *= 1 + noise*(random.Float64()-0.5)
			luck[i] = random.Float64()
		}
	}
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b int32) int {
		c := cmp.Compare(first[b], first[a])
		for _, m := range by[1:] {
			c = cmp.Or(c, cmp.Compare(s[m][b], s[m][a]))
		}
		return cmp.Or(c, cmp.Compare(luck[b], luck[a]))
	})
	return sorted
}

// sortByRandomMean returns the items sorted by a mean of the logarithms of size and width, with a random weight. The mean is
// changed at random by up to the share noise. With loadFirst only items with the same load are sorted by it.
func (s *scales) sortByRandomMean(items []int32, loadFirst bool, noise float64, random *rand.Rand) []int32 {
	mean, weight := make([]float64, len(s[bySize])), random.Float64()
	for i := range mean {
		mean[i] = math.Pow(s[bySize][i], weight) * math.Pow(s[byWidth][i], 1-weight) * (1 + noise*(random.Float64()-0.5))
	}
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b int32) int {
		if loadFirst && s[byLoad][a] != s[byLoad][b] {
			return cmp.Compare(s[byLoad][b], s[byLoad][a])
		}
		return cmp.Compare(mean[b], mean[a])
	})
	return sorted
}

// picker says at which section the search continues.
type picker uint8

const (
	pickFewest  picker = iota // where the fewest buffers can begin
	pickTight                 // where the least room may be wasted
	pickProduct               // where both are small
	pickLowest                // at the lowest floor; of several, where the first buffer in the order can begin
)

// chooseSection returns a section from low to high whose neighbours have no lower floor. One of the buffers that can
// begin there, or an unused range, is at its floor, and no buffer can be placed below.
func (k picker) chooseSection(x *search, low, high int32) int32 {
	best, least, s := low, int64(1<<62), x.state
	for t := low; t <= high; {
		if s.left[t] == 0 {
			t++
			continue
		}
		floor, end := s.floor[t], t+1
		for end <= high && s.left[end] > 0 && s.floor[end] == floor {
			end++
		}
		valley := (t == low || s.left[t-1] == 0 || s.floor[t-1] > floor) && (end > high || s.left[end] == 0 || s.floor[end] > floor)
		for ; valley && t < end; t++ {
			if score := k.sectionScore(x, t); score < least || score == least && k == pickLowest && x.firstRankAtFloor(t) < x.firstRankAtFloor(best) {
				best, least = t, score
			}
		}
		t = end
	}
	return best
}

// sectionScore is the lower, the better a section is to continue with. It packs the number of choices and the room that may be
// wasted into one number; pickFewest compares the choices first, pickTight the room.
func (k picker) sectionScore(x *search, t int32) int64 {
	s := x.state
	slack := s.capacity - s.floor[t] - s.rest[t]
	ways := int64(s.support[t])
	if slack > 0 {
		ways++
	}
	slack = min(slack, 1<<40)
	switch k {
	case pickFewest:
		return ways<<41 + slack
	case pickTight:
		return slack<<20 + ways
	case pickLowest:
		return s.floor[t]
	default:
		return ways * (1 + slack)
	}
}

// firstRankAtFloor returns the rank of the first buffer that can begin at the floor of a section.
func (x *search) firstRankAtFloor(t int32) int32 {
	first := int32(math.MaxInt32)
	for _, e := range x.live[t][:x.left[t]] {
		if x.offset[e.buffer]+e.lo == x.floor[t] {
			first = min(first, x.rank[e.buffer])
		}
	}
	return first
}
