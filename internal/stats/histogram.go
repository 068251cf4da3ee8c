package stats

import (
	"iter"
	"math"
	"math/bits"
)

// Histogram counts values in buckets whose width grows with the value, with 16 buckets for each power of two: a percentile is
// off by at most 1/32 of its value. It stores the buckets between the lowest and the highest that occurred.
type Histogram struct {
	counts []uint64
	lowest int // bucket of counts[0]
	Total  uint64
	first  uint64 // value, exact
}

const histogramBits = 4

// Add counts a value.
func (h *Histogram) Add(v uint64) {
	at := bucketOfValue(v) - h.lowest
	switch {
	case h.Total == 0:
		h.lowest, h.first, at = bucketOfValue(v), v, 0
		h.counts = make([]uint64, 1, 8)
	case at < 0:
		grown := make([]uint64, len(h.counts)-at)
		copy(grown[-at:], h.counts)
		h.counts, h.lowest, at = grown, h.lowest+at, 0
	case at >= len(h.counts):
		h.counts = append(h.counts, make([]uint64, at+1-len(h.counts))...)
	}
	h.counts[at]++
	h.Total++
}

// Percentile returns the middle of the bucket that holds the value at rank ⌈p × total⌉, the only value itself, 0 without values.
func (h *Histogram) Percentile(p float64) uint64 {
	if h.Total == 1 {
		return h.first
	}
	rank := uint64(math.Ceil(p * float64(h.Total)))
	var seen uint64
	for i, count := range h.counts {
		if seen += count; seen >= rank && seen > 0 {
			return middleOfBucket(h.lowest + i)
		}
	}
	return 0
}

// EnoughForP99 is how many values a sentence about their 99th percentile needs.
const EnoughForP99 = 5

// SpreadText says what n values show: one has no percentiles, and a few have a median only.
func SpreadText(n uint64, p50, p99 string) string {
	switch {
	case n == 1:
		return p50
	case n < EnoughForP99:
		return "median " + p50
	}
	return "p50 " + p50 + ", p99 " + p99
}

// Buckets yields the middle and the count of each bucket that has values, ascending.
func (h *Histogram) Buckets() iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		for i, count := range h.counts {
			if count > 0 && !yield(middleOfBucket(h.lowest+i), count) {
				return
			}
		}
	}
}

func bucketOfValue(v uint64) int {
	shift := max(0, bits.Len64(v)-histogramBits-1)
	return shift<<histogramBits + int(v>>shift)
}

func middleOfBucket(i int) uint64 {
	shift := max(0, i>>histogramBits-1)
	low := uint64(i-shift<<histogramBits) << shift
	return low + uint64(1)<<shift/2
}
