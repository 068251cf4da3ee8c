package ghost

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

const (
	equalFactor   = 1.01 // values within one percent count as equal
	peakFactorMax = 2.0  // a ghost with more than this many times the current peak ranks lower, however fast it is
)

// sortBestFirst sorts the best ghost first: the one with the least driver time; among ghosts within one percent of that, the one
// with the lowest peak; among peaks within one percent, the current configuration. Then come the ghosts that need more
// than twice the current peak, or that fail requests which the current configuration serves; then those whose times
// follow from assumed costs. Last come the ghosts that did not see the whole run.
func sortBestFirst(rows []stats.Ghost) {
	current := slices.IndexFunc(rows, func(g stats.Ghost) bool { return g.Present && g.CoversRun() })
	group := func(g *stats.Ghost) int {
		switch {
		case !g.CoversRun():
			return 3
		case g.Assumed:
			return 2
		case current >= 0 && (float64(g.PeakReserved) > peakFactorMax*float64(rows[current].PeakReserved) || g.Failures > rows[current].Failures):
			return 1
		}
		return 0
	}
	var groups [4][]stats.Ghost
	for i := range rows {
		number := group(&rows[i])
		groups[number] = append(groups[number], rows[i])
	}
	ranked := rows[:0]
	for _, rest := range groups {
		for len(rest) > 0 {
			number := indexOfBestRow(rest)
			ranked = append(ranked, rest[number])
			rest = slices.Delete(rest, number, number+1)
		}
	}
}

// indexOfBestRow returns the index of the best row. Where nothing else decides, the first row wins.
func indexOfBestRow(rows []stats.Ghost) int {
	least := rows[0].DriverNS
	for i := range rows {
		least = min(least, rows[i].DriverNS)
	}
	best := -1
	for i := range rows {
		if rows[i].DriverNS <= least*equalFactor && (best < 0 || hasLowerOrOwnPeak(&rows[i], &rows[best])) {
			best = i
		}
	}
	return best
}

// hasLowerOrOwnPeak reports whether row a has a lower peak than b, or an equal peak and the current configuration.
func hasLowerOrOwnPeak(a, b *stats.Ghost) bool {
	switch {
	case float64(a.PeakReserved)*equalFactor < float64(b.PeakReserved):
		return true
	case float64(b.PeakReserved)*equalFactor < float64(a.PeakReserved):
		return false
	}
	return a.Present && !b.Present
}
