package analysis

import (
	"math/bits"
	"slices"
)

// bins count values by powers of two.
type bins [65]struct{ count, bytes uint64 }

func (b *bins) addValue(v, bytes uint64) {
	bin := &b[bits.Len64(v)]
	bin.count++
	bin.bytes += bytes
}

// nonEmptyBins returns the bars that are not empty.
func (b *bins) nonEmptyBins() []Bin {
	var list []Bin
	for i, bin := range b {
		if bin.count == 0 {
			continue
		}
		bar := Bin{Count: bin.count, Bytes: bin.bytes}
		if i > 0 {
			bar.From = 1 << (i - 1)
			bar.To = bar.From | (bar.From - 1)
		}
		list = append(list, bar)
	}
	return list
}

// samplesMax bounds the values that a sampler keeps.
const samplesMax = 1024

// sampler keeps evenly spaced values of a series for its median: all up to samplesMax, then every second, every fourth,
// and so on.
type sampler struct {
	values []int64
	step   uint64
	count  uint64
}

func (s *sampler) addValue(v int64) {
	if s.step == 0 {
		s.step = 1
	}
	if s.count%s.step == 0 {
		if len(s.values) == samplesMax {
			for i := range samplesMax / 2 {
				s.values[i] = s.values[2*i]
			}
			s.values = s.values[:samplesMax/2]
			s.step *= 2
		}
		if s.count%s.step == 0 {
			s.values = append(s.values, v)
		}
	}
	s.count++
}

// median returns the middle one of the values, the lower of two; 0 without values.
func (s *sampler) median() int64 {
	if len(s.values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.values))
	return sorted[(len(sorted)-1)/2]
}
