package analysis

import (
	"math/bits"
	"slices"
)

// histogram counts values in buckets whose width grows with the value, 16 to each power of two: a percentile is off by
// at most 1/32 of its value. It stores the buckets between the lowest and the highest that occurred.
type histogram struct {
	counts []uint64
	lowest int // bucket of counts[0]
	total  uint64
}

const histogramBits = 4

func (h *histogram) add(v uint64) {
	at := bucket(v) - h.lowest
	switch {
	case h.total == 0:
		h.lowest, at = bucket(v), 0
		h.counts = make([]uint64, 1, 8)
	case at < 0:
		grown := make([]uint64, len(h.counts)-at)
		copy(grown[-at:], h.counts)
		h.counts, h.lowest, at = grown, h.lowest+at, 0
	case at >= len(h.counts):
		h.counts = append(h.counts, make([]uint64, at+1-len(h.counts))...)
	}
	h.counts[at]++
	h.total++
}

// percentile returns the middle of the bucket that holds the value at rank ⌈p × total⌉, 0 without values.
func (h *histogram) percentile(p float64) uint64 {
	rank := uint64(p * float64(h.total))
	if float64(rank) < p*float64(h.total) {
		rank++
	}
	var seen uint64
	for i, count := range h.counts {
		if seen += count; seen >= rank && seen > 0 {
			return bucketMiddle(h.lowest + i)
		}
	}
	return 0
}

func bucket(v uint64) int {
	shift := max(0, bits.Len64(v)-histogramBits-1)
	return shift<<histogramBits + int(v>>shift)
}

func bucketMiddle(i int) uint64 {
	shift := max(0, i>>histogramBits-1)
	low := uint64(i-shift<<histogramBits) << shift
	return low + uint64(1)<<shift/2
}

// bins count values by powers of two.
type bins [65]struct{ count, bytes uint64 }

func (b *bins) add(v, bytes uint64) {
	bin := &b[bits.Len64(v)]
	bin.count++
	bin.bytes += bytes
}

// list returns the bars that are not empty.
func (b *bins) list() []Bin {
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

func (s *sampler) add(v int64) {
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
