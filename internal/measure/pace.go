package measure

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/experiment"
)

// pace is how fast a process makes its requests, and where it waits.
type pace struct {
	period uint64   // requests of an iteration; 1 where they do not repeat
	base   uint64   // number of the first request
	gaps   []uint64 // ns before the first requests
	first  uint64   // time when the first request was entered
	left   uint64   // time when the latest returned
	count  uint64

	newSince, newFrom uint64 // of the requests since the blocks were last sized

	since, from uint64  // of the latest stretch of requests
	each        float64 // ns for a request in the fastest stretch so far
	phase       uint64  // number of a request before which the process waits
}

const (
	watched     = 250_000_000 // ns of a program that show where it waits
	stretch     = 50_000_000  // ns over which the pace is taken
	gapsMost    = 1 << 14     // requests that show where it waits
	repeatsSeen = 8           // how often a place must be seen to know whether the process waits there
	explained   = 0.8         // how much of the best explanation of the gaps a shorter one must have
	togetherMax = 32          // iterations from one wait to the next
)

func newPace(p *experiment.Plan) pace {
	out := pace{period: 1}
	if p.Iterations > 0 {
		out.period = p.Requests / uint64(p.Iterations)
	}
	return out
}

// addRequest takes a request by its number.
func (p *pace) addRequest(number, entered, left uint64) {
	if p.count == 0 {
		p.base, p.first, p.since, p.newSince, p.left = number, entered, entered, entered, entered
	}
	if len(p.gaps) < gapsMost {
		p.gaps = append(p.gaps, entered-min(p.left, entered))
	}
	p.count++
	p.left = max(p.left, left)
	if took := p.left - p.since; took >= stretch {
		if each := float64(took) / float64(p.count-p.from); p.each == 0 || each < p.each {
			p.each = each
		}
		p.since, p.from = p.left, p.count
	}
}

// isKnown reports whether enough was seen to plan blocks.
func (p *pace) isKnown() bool {
	return p.each > 0 && p.left-p.first >= watched && p.count >= 3*p.period
}

// takeMeanRequestNS returns the ns of a request since the last call.
func (p *pace) takeMeanRequestNS() float64 {
	mean := max(1, float64(p.left-p.newSince)/float64(max(1, p.count-p.newFrom)))
	p.newSince, p.newFrom = p.left, p.count
	return mean
}

// iterationsPerWait returns how many iterations pass from one wait of the process to the next, as far as the gaps between its
// requests show that: 1 where they do not. It notes after which request the process waits. A block between two waits has the
// time of its own work: elsewhere the program may be ahead of the device. A cycle has at most some requests.
func (p *pace) iterationsPerWait(most uint64) uint64 {
	best, count := 0.0, uint64(1)
	for pass := range 2 { // the least that explains almost as much as any does
		for n := uint64(1); n <= togetherMax; n++ {
			if cycle := n * p.period; n > 1 && (cycle > most || cycle*repeatsSeen > uint64(len(p.gaps))) {
				break
			}
			sum, phase := p.meanAndLongestGap(n * p.period)
			if best = max(best, sum); pass == 1 && sum >= explained*best {
				p.phase = p.base + phase
				return n
			}
		}
	}
	return count
}

// meanAndLongestGap returns the mean of the gaps before a request that come back in each round of a cycle of requests, and the place
// of the longest.
func (p *pace) meanAndLongestGap(cycle uint64) (each float64, longest uint64) {
	sum, most := uint64(0), uint64(0)
	var at []uint64
	for i := range cycle {
		at = at[:0]
		for k := i; k < uint64(len(p.gaps)); k += cycle {
			at = append(at, p.gaps[k])
		}
		if len(at) == 0 {
			continue
		}
		slices.Sort(at)
		usual := at[len(at)/4] // of each wait, and not of every other one
		if sum += usual; usual > most {
			most, longest = usual, i
		}
	}
	return float64(sum) / float64(cycle), longest
}

// alignedRequest returns the request that comes some ns after another, or the next that is in phase for a cycle of requests.
func (p *pace) alignedRequest(request, ns, cycle uint64) uint64 {
	soon := request + uint64(float64(ns)/max(p.each, 1))
	return soon + (p.phase%cycle+cycle-soon%cycle)%cycle
}
