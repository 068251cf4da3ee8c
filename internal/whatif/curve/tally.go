package curve

import "math/bits"

const (
	// bucketsPerDoubling is how many limits a tally distinguishes between a power of two and the next: a limit is known
	// to 3 %.
	bucketsPerDoubling = 32
	bucketBits         = 5
	// limitBits bounds limits: no policy accepts one above 2⁵⁰ bytes.
	limitBits    = 50
	bucketBeyond = (limitBits-bucketBits+1)*bucketsPerDoubling + 1 // the bucket for depths above every limit
)

// bucketOfLimit returns the first bucket whose limit is at least the given one. A limit above all others has the last
// bucket.
func bucketOfLimit(limit float64) int {
	if limit > 1<<limitBits {
		return bucketBeyond
	}
	v := uint64(limit)
	if float64(v) < limit {
		v++
	}
	if v <= bucketsPerDoubling {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - bucketBits
	steps := (v + 1<<shift - 1) >> shift // bucketsPerDoubling to twice that
	return shift*bucketsPerDoubling + int(steps)
}

// limitOfBucket returns the limit of a bucket, in bytes.
func limitOfBucket(place int) uint64 {
	if place <= 2*bucketsPerDoubling {
		return uint64(place)
	}
	shift := (place - bucketsPerDoubling - 1) / bucketsPerDoubling
	return uint64(place-shift*bucketsPerDoubling) << shift
}

// tally counts requests, and the limits at which they hit.
type tally struct {
	requests     float64
	hits         float64                   // without a limit
	changes      [bucketBeyond + 1]float64 // by limit: how many hits more than at the previous limit
	measuredHits float64                   // hits that the measured ones represent
}

// tallyBytes is the memory of a tally.
const tallyBytes = 8 * (bucketBeyond + 4)

func (t *tally) addRequest(stands float64, hit bool) {
	t.requests += stands
	if hit {
		t.hits += stands
	}
}

// addHits adds a hit at the limits from one bucket on and before another.
func (t *tally) addHits(from, to int, weight float64) {
	if from < to {
		t.changes[from] += weight
		t.changes[to] -= weight
	}
}

func (t *tally) addTally(other *tally) {
	t.requests += other.requests
	t.hits += other.hits
	t.measuredHits += other.measuredHits
	for i, more := range other.changes {
		t.changes[i] += more
	}
}
