package tune

import (
	"cmp"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// Reason is why a configuration is recommended.
type Reason uint8

// The reasons.
const (
	Close    Reason = iota // it saves nearly as much as possible with nearly the memory that the program takes without a pool
	Knee                   // saving takes more memory than that: less memory would cost much time, more would gain little
	Fits                   // it saves nearly as much as possible within the allowed memory
	Vain                   // nothing within the allowed memory saves time
	NoneFits               // no configuration keeps to the allowed memory
)

const (
	closeMemory   = 1.25 // times the memory without a pool: what counts as nearly that
	closeSaving   = 0.9  // of the best saving: what counts as nearly that
	savingGivenUp = 0.01 // of the best saving: what is given up for less memory
)

// splitFront returns the front, the fastest point first, and all other points. A point is in the front if no other point is
// better in both time and memory. If points are equal in both, it returns only the simplest.
func splitFront(points []Point, present *replay.Configuration) (front, rest []Point) {
	sorted := slices.Clone(points)
	slices.SortStableFunc(sorted, func(a, b Point) int {
		if c := cmp.Or(cmp.Compare(a.DriverNS, b.DriverNS), cmp.Compare(a.PeakReserved, b.PeakReserved)); c != 0 {
			return c
		}
		return compareBySimplicity(&a, &b, present)
	})
	least := uint64(math.MaxUint64)
	for i := range sorted {
		if p := &sorted[i]; i == 0 || p.PeakReserved < least {
			front = append(front, *p)
			least = p.PeakReserved
		} else if q := &front[len(front)-1]; p.DriverNS != q.DriverNS || p.PeakReserved != q.PeakReserved {
			rest = append(rest, *p)
		}
	}
	return front, rest
}

// splitByAssumed returns the points that are not assumed, and the assumed ones.
func splitByAssumed(points []Point) (known, assumed []Point) {
	for i := range points {
		if points[i].IsAssumed() {
			assumed = append(assumed, points[i])
		} else {
			known = append(known, points[i])
		}
	}
	return known, assumed
}

// compareBySimplicity orders configurations with equal results: the present one first, then those with fewer limits set,
// then no pool, then the default policy, then the others in their order.
func compareBySimplicity(a, b *Point, present *replay.Configuration) int {
	order := func(p *Point) int {
		if present != nil && p.Configuration.String() == present.String() {
			return -1
		}
		return len(p.Configuration.Settings)
	}
	names := append([]string{noPool.Policy, allocator.Default}, allocator.PolicyNames()...)
	return cmp.Or(
		cmp.Compare(order(a), order(b)),
		cmp.Compare(slices.Index(names, a.Configuration.Policy), slices.Index(names, b.Configuration.Policy)),
		cmp.Compare(a.Configuration.String(), b.Configuration.String()),
	)
}

// recommendFrom chooses from a front. none is the point without a pool; most is the number of bytes that may be reserved, 0
// for any. It returns nil if no point keeps to most.
func recommendFrom(front []Point, none *Point, most uint64) (*Point, Reason) {
	if len(front) == 0 {
		return nil, NoneFits
	}
	if most > 0 {
		p := pointOfLeastMemory(front, none, most)
		switch {
		case p == nil:
			return nil, NoneFits
		case p.DriverNS >= none.DriverNS:
			return p, Vain
		}
		return p, Fits
	}
	if front[0].DriverNS >= none.DriverNS {
		return &front[0], Vain
	}
	p := pointOfLeastMemory(front, none, uint64(closeMemory*float64(none.PeakReserved)))
	if p != nil && none.DriverNS-p.DriverNS >= closeSaving*(none.DriverNS-front[0].DriverNS) {
		return p, Close
	}
	return kneeOfFront(front), Knee
}

// pointOfLeastMemory returns the point with the least memory among those that save nearly as much as the best within that much
// memory, nil if no point is within it.
func pointOfLeastMemory(front []Point, none *Point, most uint64) *Point {
	var best *Point
	enough := 0.0          // ns
	for i := range front { // the fastest first; memory falls
		p := &front[i]
		switch {
		case p.PeakReserved > most:
		case best == nil:
			best = p
			enough = p.DriverNS + savingGivenUp*max(0, none.DriverNS-p.DriverNS)
		case p.DriverNS <= enough:
			best = p
		}
	}
	return best
}

// kneeOfFront returns the point of a front that is farthest below the line between its ends, with logarithmic axes that are
// scaled so that the ends are 1 apart on each.
func kneeOfFront(front []Point) *Point {
	first, last := &front[0], &front[len(front)-1]
	distance := func(p *Point) float64 {
		return positionOnLogAxis(first.DriverNS, last.DriverNS, p.DriverNS) +
			positionOnLogAxis(float64(last.PeakReserved), float64(first.PeakReserved), float64(p.PeakReserved))
	}
	best := first
	for i := range front {
		if distance(&front[i]) < distance(best) {
			best = &front[i]
		}
	}
	return best
}

// positionOnLogAxis returns the position of a figure between two others, 0 to 1, on a logarithmic axis.
func positionOnLogAxis(from, to, v float64) float64 {
	length := math.Log(max(to, 1)) - math.Log(max(from, 1))
	if length == 0 {
		return 0
	}
	return (math.Log(max(v, 1)) - math.Log(max(from, 1))) / length
}

// PointInUse returns what is in use now, or else no pool.
func (r *Result) PointInUse() *Point { return cmp.Or(r.Present, &r.None) }

// littleShare is the share of a run below which less time in the driver is not worth a change.
const littleShare = 0.01

// SavesLittle reports whether the recommendation hardly changes the run: beside now, PointInUse with its measured time where that is known.
func (r *Result) SavesLittle(now *Point) bool {
	gain := now.DriverNS - r.Recommended.DriverNS
	return !now.IsAssumed() && r.Reason != Vain && gain > 0 && gain < littleShare*float64(r.RanNS)
}
