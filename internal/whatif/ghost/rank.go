package ghost

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

const (
	near   = 1.01 // what lies within a percent is equal
	greedy = 2.0  // times the present peak, from which on less time is no reason any more
)

// rank puts the best first: the least time in the driver; of those within a percent of it the lowest peak; of peaks
// within a percent the present one. Behind these stand those whose peak is more than twice the present one's, or that
// had requests fail which it serves; and last those that have not seen the whole run.
func rank(rows []stats.Ghost) {
	present := slices.IndexFunc(rows, func(g stats.Ghost) bool { return g.Present && g.Whole() })
	group := func(g *stats.Ghost) int {
		switch {
		case !g.Whole():
			return 2
		case present >= 0 && (float64(g.PeakReserved) > greedy*float64(rows[present].PeakReserved) || g.Failures > rows[present].Failures):
			return 1
		}
		return 0
	}
	var groups [3][]stats.Ghost
	for i := range rows {
		at := group(&rows[i])
		groups[at] = append(groups[at], rows[i])
	}
	ranked := rows[:0]
	for _, rest := range groups {
		for len(rest) > 0 {
			at := best(rest)
			ranked = append(ranked, rest[at])
			rest = slices.Delete(rest, at, at+1)
		}
	}
}

// best returns the place of the best of some rows, among which the first wins where nothing else decides.
func best(rows []stats.Ghost) int {
	least := rows[0].DriverNS
	for i := range rows {
		least = min(least, rows[i].DriverNS)
	}
	at := -1
	for i := range rows {
		if rows[i].DriverNS <= least*near && (at < 0 || lower(&rows[i], &rows[at])) {
			at = i
		}
	}
	return at
}

// lower reports whether one row's peak is lower than another's, or equal while it is the present one.
func lower(a, b *stats.Ghost) bool {
	switch {
	case float64(a.PeakReserved)*near < float64(b.PeakReserved):
		return true
	case float64(b.PeakReserved)*near < float64(a.PeakReserved):
		return false
	}
	return a.Present && !b.Present
}
