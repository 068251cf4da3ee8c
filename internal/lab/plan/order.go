package plan

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
