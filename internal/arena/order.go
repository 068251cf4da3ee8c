package arena

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// measure is something about buffers that an order goes by.
type measure uint8

const (
	byWidth measure = iota // how long it lives
	bySize
	byArea // size times width
	byLoad // the most that is needed at a time of its life
	byTime // when it begins
	measures
)

// order is a list of measures, the most important first. What has more of the first comes first.
type order struct {
	name string
	by   []measure
}

// orders are those that are tried. Moffitt's are WAT, TAW and TWA, by their initials (total is our load).
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

// sorted returns the items in an order. The first measure of each is changed by up to the share noise, by chance, and
// then chance decides between equals, too.
func (s *scales) sorted(items []int32, by []measure, noise float64, random *rand.Rand) []int32 {
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

// mixed returns the items by a mean of the logarithms of size and width, which chance weights, and changes by up to the
// share noise; where loads is set only those with the same load.
func (s *scales) mixed(items []int32, loads bool, noise float64, random *rand.Rand) []int32 {
	mean, weight := make([]float64, len(s[bySize])), random.Float64()
	for i := range mean {
		mean[i] = math.Pow(s[bySize][i], weight) * math.Pow(s[byWidth][i], 1-weight) * (1 + noise*(random.Float64()-0.5))
	}
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b int32) int {
		if loads && s[byLoad][a] != s[byLoad][b] {
			return cmp.Compare(s[byLoad][b], s[byLoad][a])
		}
		return cmp.Compare(mean[b], mean[a])
	})
	return sorted
}

// picker says which section to go on with.
type picker uint8

const (
	pickFewest  picker = iota // where the fewest can begin
	pickTight                 // with the least to waste
	pickProduct               // where both are small
	pickLowest                // at the lowest floor, and there where the first in the order can begin
)

// choose returns a section from low to high where no floor beside it is lower: one of those buffers that can begin
// there, or nothing, is at its floor, and no buffer can be placed below.
func (k picker) choose(x *search, low, high int32) int32 {
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
			if score := k.score(x, t); score < least || score == least && k == pickLowest && x.earliest(t) < x.earliest(best) {
				best, least = t, score
			}
		}
		t = end
	}
	return best
}

// score is the lower the better a section is to go on with.
func (k picker) score(x *search, t int32) int64 {
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

// earliest is the place in the order of the first buffer that can begin at the floor of a section.
func (x *search) earliest(t int32) int32 {
	first := int32(math.MaxInt32)
	for _, e := range x.live[t][:x.left[t]] {
		if x.offset[e.buffer]+e.lo == x.floor[t] {
			first = min(first, x.rank[e.buffer])
		}
	}
	return first
}
