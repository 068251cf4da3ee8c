package tune

import (
	"cmp"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// Reason says why a configuration is recommended.
type Reason uint8

// The reasons.
const (
	Close    Reason = iota // it saves nearly what can be saved, with nearly the memory that the program takes without a pool
	Knee                   // the saving takes more memory than that: less of it would cost much time, more of it gain little
	Fits                   // it saves nearly what can be saved in the memory that there may be
	Vain                   // nothing in that memory saves time
	NoneFits               // nothing fits that
)

const (
	closeBy = 1.25 // how much of the memory without a pool is nearly that
	nearly  = 0.9  // what part of the best saving is nearly that
	spared  = 0.01 // what part of it is given up for less memory
)

// peel returns the points of which none is better in time and in memory, the fastest first, and all others. Of points
// that are equal in both the simplest counts.
func peel(points []Point, present *replay.Configuration) (front, rest []Point) {
	sorted := slices.Clone(points)
	slices.SortStableFunc(sorted, func(a, b Point) int {
		if c := cmp.Or(cmp.Compare(a.DriverNS, b.DriverNS), cmp.Compare(a.PeakReserved, b.PeakReserved)); c != 0 {
			return c
		}
		return simpler(&a, &b, present)
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

// simpler compares configurations that do the same: what is in use now comes first, then what sets less, then no pool,
// then the default policy, then the order of the others.
func simpler(a, b *Point, present *replay.Configuration) int {
	order := func(p *Point) int {
		if present != nil && p.Configuration.String() == present.String() {
			return -1
		}
		return len(p.Configuration.Settings)
	}
	names := append([]string{bare.Policy, allocator.Default}, allocator.Names()...)
	return cmp.Or(
		cmp.Compare(order(a), order(b)),
		cmp.Compare(slices.Index(names, a.Configuration.Policy), slices.Index(names, b.Configuration.Policy)),
		cmp.Compare(a.Configuration.String(), b.Configuration.String()),
	)
}

// recommend chooses from a front. none is no pool, most the bytes that may be reserved, 0 for any. It returns nil where
// nothing fits these.
func recommend(front []Point, none *Point, most uint64) (*Point, Reason) {
	if len(front) == 0 {
		return nil, NoneFits
	}
	if most > 0 {
		p := frugal(front, none, most)
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
	p := frugal(front, none, uint64(closeBy*float64(none.PeakReserved)))
	if p != nil && none.DriverNS-p.DriverNS >= nearly*(none.DriverNS-front[0].DriverNS) {
		return p, Close
	}
	return knee(front), Knee
}

// frugal returns the point with the least memory of those that save nearly as much as any within so much memory, nil
// where nothing is within it.
func frugal(front []Point, none *Point, most uint64) *Point {
	var best *Point
	enough := 0.0          // ns
	for i := range front { // the fastest first; memory falls
		p := &front[i]
		switch {
		case p.PeakReserved > most:
		case best == nil:
			best = p
			enough = p.DriverNS + spared*max(0, none.DriverNS-p.DriverNS)
		case p.DriverNS <= enough:
			best = p
		}
	}
	return best
}

// knee returns the point of a front that lies farthest below the line between its ends, time and memory each on a
// logarithmic axis on which the ends are 1 apart.
func knee(front []Point) *Point {
	first, last := &front[0], &front[len(front)-1]
	at := func(p *Point) float64 {
		return along(first.DriverNS, last.DriverNS, p.DriverNS) +
			along(float64(last.PeakReserved), float64(first.PeakReserved), float64(p.PeakReserved))
	}
	best := first
	for i := range front {
		if at(&front[i]) < at(best) {
			best = &front[i]
		}
	}
	return best
}

// along returns where a figure lies on the way from one to another, 0 to 1, by its logarithm.
func along(from, to, v float64) float64 {
	way := math.Log(max(to, 1)) - math.Log(max(from, 1))
	if way == 0 {
		return 0
	}
	return (math.Log(max(v, 1)) - math.Log(max(from, 1))) / way
}
