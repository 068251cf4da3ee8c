package experiment

import (
	"fmt"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/period"
)

// The least of a block.
const (
	BlockLeast  = 50e6 // ns of a block: many time slices of a scheduler, so that the machine's other work averages out
	SlicesLeast = 6    // slices of a block: two may warm up, four count
)

const (
	blockMost       = 1e9  // ns of a block: 32 blocks, the fewest that give an interval, take half a minute
	slicesFewest    = 3    // slices of a block where SlicesLeast take longer than blockMost: one warms up
	slicesMost      = 32   // slices of a block: more cost more, and show no more of how caches warm up
	repeatsLeast    = 16   // requests in a row that must have repeated
	repeatsMemory   = 1024 // requests by which a period is judged
	requestsOfSlice = 64   // requests of a slice where nothing repeats
	durationsMost   = 31   // latest slices whose times are remembered
	durationsLeast  = 3    // slices that show what a slice takes
)

// Plan says what a block is.
type Plan struct {
	Requests   uint64  // requests of a slice, the unit in which a block is timed
	Iterations int     // whole iterations of a slice; 0 where requests do not repeat, and answers are for each request
	Slices     int     // slices of a block; 0: nothing can be measured here
	Reason     string  // why not
	Time       float64 // ns that a slice takes, about
}

// RequestsPerBlock returns the requests of a block.
func (p Plan) RequestsPerBlock() uint64 { return p.Requests * uint64(p.Slices) }

// Blocks finds out what a block is from the requests of a process, in their order. A request takes O(1), and the memory is
// bounded.
//
// Where requests repeat, a block is a whole number of iterations. They repeat if two thirds of the latest requests were
// part of a period that had repeated without a difference, so that an iteration that differs now and then does no harm.
// Otherwise a block is a number of requests, if their mix is stationary.
type Blocks struct {
	finder  period.Finder
	mix     mix
	period  uint64    // requests of an iteration
	in, out uint64    // latest requests that were part of it, and others
	unit    uint64    // requests whose time is taken
	since   uint64    // requests since begin
	begin   float64   // ns when the unit began
	times   []float64 // ns of the latest units
	timed   int       // units
}

// AddRequest adds the next request: bytes, number of the call site, flags, and ns since any beginning.
func (b *Blocks) AddRequest(size uint64, site uint32, flags uint16, time float64) {
	b.finder.AddCreate(period.KeyOfCreate(site, size, uint32(flags)))
	b.mix.addRequest(size, site)
	b.countPeriodEvidence(b.finder.SteadyPeriod(repeatsLeast))
	unit := uint64(requestsOfSlice)
	if b.areRequestsRepeating() {
		unit = b.period
	}
	if unit != b.unit {
		b.unit, b.since, b.begin, b.times, b.timed = unit, 0, time, b.times[:0], 0
		return
	}
	if b.since++; b.since < unit {
		return
	}
	if len(b.times) < durationsMost {
		b.times = append(b.times, 0)
	}
	b.times[b.timed%durationsMost] = time - b.begin
	b.since, b.begin = 0, time
	b.timed++
}

// countPeriodEvidence counts a request for or against the period; steady is the period in which the latest requests repeat, 0
// if none.
func (b *Blocks) countPeriodEvidence(steady uint64) {
	switch {
	case steady != 0 && steady == b.period:
		b.in++
	case steady != 0 && !b.areRequestsRepeating():
		b.period, b.in, b.out = steady, 1, 0
	default:
		b.out++
	}
	if b.in+b.out >= repeatsMemory {
		b.in, b.out = b.in/2, b.out/2
	}
}

// areRequestsRepeating reports whether requests repeat.
func (b *Blocks) areRequestsRepeating() bool { return b.in > 2*b.out }

// BlockPlan returns what a block is now.
func (b *Blocks) BlockPlan() Plan {
	iterations := 1
	if !b.areRequestsRepeating() {
		if reason := b.mix.whyNotStationary(); reason != "" {
			return Plan{Reason: reason}
		}
		iterations = 0
	}
	if len(b.times) < durationsLeast {
		return Plan{Reason: fmt.Sprintf("%d of %d iterations have come that show how long one takes", len(b.times), durationsLeast)}
	}
	each := max(1, median(slices.Sorted(slices.Values(b.times))))
	slices, ofSlice := SlicesOfBlock(each)
	return Plan{
		Requests: b.unit * uint64(ofSlice), Iterations: iterations * int(ofSlice), Slices: int(slices), Time: each * ofSlice,
	}
}

// SlicesOfBlock returns how many slices a block has, and of how many units each is, where a unit takes some ns.
func SlicesOfBlock(each float64) (slices, units float64) {
	all := max(SlicesLeast, math.Ceil(BlockLeast/each))
	if all*each > blockMost {
		all = max(slicesFewest, math.Floor(blockMost/each))
	}
	units = math.Ceil(all / slicesMost)
	return math.Ceil(all / units), units
}
