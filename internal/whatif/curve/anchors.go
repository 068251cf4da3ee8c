package curve

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// anchors are simulations of a policy at a few limits, through which the curve is corrected. They start with empty
// pools, so their first hits are too few and do not count. Where requests come fast, the anchors cost more than the
// rest of the curve, and have soon seen enough: then they rest most of the time.
type anchors struct {
	all     []anchor
	cold    bool // their figures do not count yet
	resting bool
	warm    float64 // requests after which their figures count
	enough  float64 // requests after which they may rest
	next    float64 // requests after which limits are chosen again
	since   uint64  // time from which their figures count, ns
}

// anchor is the simulation at one limit.
type anchor struct {
	limit          uint64
	member         int
	hits, requests uint64 // before the figures counted
}

func newAnchors() anchors { return anchors{next: choiceFirst} }

// removeForNewPolicy removes all anchors, because the policy has changed.
func (a *anchors) removeForNewPolicy(batch *replay.Batch) {
	a.removeAll(batch)
	*a = newAnchors()
}

// removeAll removes all anchors from the batch.
func (a *anchors) removeAll(batch *replay.Batch) {
	for _, anchor := range a.all {
		batch.RemoveMember(anchor.member)
	}
	a.all = nil
}

// pauseAnchors removes all anchors. Limits are chosen again after a multiple of the given number of requests.
func (a *anchors) pauseAnchors(batch *replay.Batch, requests float64) {
	a.removeAll(batch)
	a.resting, a.next = true, min(a.next, requests*restFactor)
}

// canPauseMeasuring reports whether all anchors that count have seen enough requests, and requests come faster than rate per
// second.
func (a *anchors) canPauseMeasuring(requests float64, time uint64, rate int) bool {
	return !a.cold && len(a.all) > 0 && requests >= a.enough && time > a.since &&
		requests*1e9 > float64(rate)*float64(time-a.since)
}

// chooseLimits chooses limits, after the given number of requests. An anchor whose limit is chosen again keeps its pool.
func (a *anchors) chooseLimits(batch *replay.Batch, s *Snapshot, policy string, settings []allocator.Setting, requests float64) {
	var stay []anchor
	for _, limit := range s.anchorLimits() {
		if i := slices.IndexFunc(a.all, func(anchor anchor) bool { return anchor.limit == limit }); i >= 0 {
			stay = append(stay, a.all[i])
			a.all = slices.Delete(a.all, i, i+1)
			continue
		}
		if member, err := batch.AddSimulation(optionsAtLimit(policy, settings, limit)); err == nil {
			stay = append(stay, anchor{limit: limit, member: member})
		}
	}
	a.removeAll(batch)
	a.all, a.cold, a.resting = stay, true, false
	a.warm = requests + max(requests/4, shownMin)
	a.enough = min(max(requests/2, shownMin), enoughMax)
	a.next = min(requests*choiceFactor, choiceLast)
}

// playBatch lets the anchors play what the batch has read.
func (a *anchors) playBatch(batch *replay.Batch) {
	a.all = slices.DeleteFunc(a.all, func(anchor anchor) bool {
		err := batch.PlayMember(anchor.member)
		if err != nil { // a limit changed later contradicts the anchor's
			batch.RemoveMember(anchor.member)
		}
		return err != nil
	})
}

// startCounting counts figures from a time on.
func (a *anchors) startCounting(batch *replay.Batch, time uint64) {
	a.cold, a.since = false, time
	for i := range a.all {
		r := batch.ResultOfMember(a.all[i].member, cost.Device{})
		a.all[i].hits, a.all[i].requests = r.Hits, r.Hits+r.Misses
	}
}

// exactPoints returns the exact points since then, ascending by limit.
func (a *anchors) exactPoints(batch *replay.Batch) []Point {
	var points []Point
	if a.cold {
		return nil
	}
	for _, anchor := range a.all {
		r := batch.ResultOfMember(anchor.member, cost.Device{})
		if requests := r.Hits + r.Misses - anchor.requests; requests > 0 {
			points = append(points, Point{
				Limit: anchor.limit, HitRate: float64(r.Hits-anchor.hits) / float64(requests), PeakReserved: r.PeakReserved,
			})
		}
	}
	slices.SortFunc(points, compareLimits)
	return points
}

// anchorLimits returns limits at and below the limit at which the curve reaches its highest hit rate, ascending. They
// do not depend on where the curve rises, because an incorrect curve may fail to rise where it should.
func (s *Snapshot) anchorLimits() []uint64 {
	top := s.Points[s.firstPointWithShare(1)].Limit
	var limits []uint64
	for _, shift := range [anchorsMax]int{4, 2, 1, 0} {
		if limit := top >> shift; limit > 0 {
			limits = append(limits, limit)
		}
	}
	return slices.Compact(limits)
}
