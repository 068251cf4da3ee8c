package flight

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Spread is a figure over processes. The median of an even number is the lower of the two in the middle.
type Spread struct {
	Min    uint64 `json:"min"`
	Median uint64 `json:"median"`
	Max    uint64 `json:"max"`
}

// Figures of a call site.
var (
	Peak     = func(c *wire.FlightCounts) uint64 { return c.Peak }
	InUse    = func(c *wire.FlightCounts) uint64 { return c.Inuse } // at the end
	Bytes    = func(c *wire.FlightCounts) uint64 { return c.Bytes }
	Creates  = func(c *wire.FlightCounts) uint64 { return c.Creates }
	Failed   = func(c *wire.FlightCounts) uint64 { return c.Failed }
	Releases = func(c *wire.FlightCounts) uint64 { return c.Releases }
)

func (s *Site) sortedFigures(figure func(*wire.FlightCounts) uint64) []uint64 {
	values := make([]uint64, len(s.Ranks))
	for i := range s.Ranks {
		values[i] = figure(&s.Ranks[i].Counts)
	}
	slices.Sort(values)
	return values
}

// SpreadOfFigure returns a figure over the processes that have the call site.
func (s *Site) SpreadOfFigure(figure func(*wire.FlightCounts) uint64) Spread {
	values := s.sortedFigures(figure)
	return Spread{values[0], values[(len(values)-1)/2], values[len(values)-1]}
}

// An outlier's peak differs from the median by a tenth of it and by five times the median of all such differences.
const (
	outlierShare     = 10
	outlierDeviation = 5
	outliersLeast    = 4 // processes: among fewer, none counts as an outlier
)

// ProcessesFarFromMedian returns the processes whose peak at the call site is far from the median, the farthest first.
func (s *Site) ProcessesFarFromMedian() []Rank {
	if len(s.Ranks) < outliersLeast {
		return nil
	}
	median := s.SpreadOfFigure(Peak).Median
	away := func(c *wire.FlightCounts) uint64 { return max(c.Peak, median) - min(c.Peak, median) }
	bound := max(median/outlierShare, outlierDeviation*s.SpreadOfFigure(away).Median)
	var found []Rank
	for i := range s.Ranks {
		if away(&s.Ranks[i].Counts) > bound {
			found = append(found, s.Ranks[i])
		}
	}
	slices.SortStableFunc(found, func(a, b Rank) int { return cmp.Compare(away(&b.Counts), away(&a.Counts)) })
	return found
}
