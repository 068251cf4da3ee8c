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
	requests float64
	hits     float64             // with no limit
	changes  [beyond + 1]float64 // by limit: how many hits more there are than at the one before it
	weighted float64             // hits that those which were measured stand for
}

// tallyBytes is how much memory a tally takes.
const tallyBytes = 8 * (beyond + 4)

func (t *tally) request(stands float64, hit bool) {
	t.requests += stands
	if hit {
		t.hits += stands
	}
}

// between notes a hit at the limits from one place on and before another.
func (t *tally) between(from, to int, weight float64) {
	if from < to {
		t.changes[from] += weight
		t.changes[to] -= weight
	}
}

func (t *tally) add(other *tally) {
	t.requests += other.requests
	t.hits += other.hits
	t.weighted += other.weighted
	for i, more := range other.changes {
		t.changes[i] += more
	}
}
