package curve

import "math/bits"

const (
	// fine is how many limits a tally distinguishes between a power of two and the next: a limit is known to 3 %.
	fine     = 32
	fineBits = 5
	// limitBits bounds limits: no policy takes one above 2⁵⁰ bytes.
	limitBits = 50
	beyond    = (limitBits-fineBits+1)*fine + 1 // the place of what no limit is enough for
)

// placeOf returns the first place of a tally whose limit is at least that. What is beyond all limits has the last.
func placeOf(limit float64) int {
	if limit > 1<<limitBits {
		return beyond
	}
	v := uint64(limit)
	if float64(v) < limit {
		v++
	}
	if v <= fine {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - fineBits
	steps := (v + 1<<shift - 1) >> shift // fine…2·fine
	return shift*fine + int(steps)
}

// limitOf returns the limit of a place, in bytes.
func limitOf(place int) uint64 {
	if place <= 2*fine {
		return uint64(place)
	}
	shift := (place - fine - 1) / fine
	return uint64(place-shift*fine) << shift
}

// tally counts requests, and at which limits they hit.
type tally struct {
	requests, bytes float64
	hits, hitBytes  float64            // with no limit
	changes         [beyond + 1]change // by limit
	sampled         float64            // hits that were measured
	weighted        float64            // hits that they stand for
	weightedBytes   float64
}

// tallyBytes is how much memory a tally takes.
const tallyBytes = 16 * (beyond + 8)

// change is by how much more hits there are at a limit than at the one before it.
type change struct{ hits, bytes float64 }

func (t *tally) request(stands, size float64, hit bool) {
	t.requests += stands
	t.bytes += stands * size
	if hit {
		t.hits += stands
		t.hitBytes += stands * size
	}
}

// between notes a hit at the limits from one place on and before another.
func (t *tally) between(from, to int, weight, size float64) {
	if from >= to {
		return
	}
	t.changes[from].hits += weight
	t.changes[from].bytes += weight * size
	t.changes[to].hits -= weight
	t.changes[to].bytes -= weight * size
}

func (t *tally) add(other *tally) {
	t.requests += other.requests
	t.bytes += other.bytes
	t.hits += other.hits
	t.hitBytes += other.hitBytes
	t.sampled += other.sampled
	t.weighted += other.weighted
	t.weightedBytes += other.weightedBytes
	for i := range t.changes {
		t.changes[i].hits += other.changes[i].hits
		t.changes[i].bytes += other.changes[i].bytes
	}
}
