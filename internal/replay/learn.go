package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
)

// Learns is the policy that takes plans.
const Learns = "arena"

// Arena is what plans did for a policy that takes them. Sums are of all processes, sizes and periods of the largest plan.
type Arena struct {
	Given   bool   // plans are given, not learned
	Plans   int    // that were made
	Period  int    // requests in a period
	Outside int    // of these, that have no place
	Size    uint64 // bytes of the arenas
	Bound   uint64 // bytes: no arenas are smaller
	Planned uint64 // requests that a plan served

	Departures [len(allocator.Stats{}.Departures)]uint64 // other requests since the policy takes plans

	// While a plan was in force, after allocator.SettledAfter periods.
	Reserved, Wanted uint64 // at most
}

// DepartureName returns the words for one of the Departures.
func DepartureName(why int) string { return allocator.Departure(why).String() }

// add adds the figures of one process.
func (a *Arena) add(p *process, s *allocator.Stats) {
	a.Planned += s.Planned
	for why, n := range s.Departures {
		a.Departures[why] += n
	}
	a.Given = p.player.options.Given != nil
	l := p.learning
	if l == nil || l.plan == nil {
		return
	}
	a.Plans += l.plans
	if l.plan.Size > a.Size {
		a.Period, a.Outside, a.Size, a.Bound = l.plan.Period, l.plan.Outside, l.plan.Size, l.plan.Bound
	}
	a.Reserved, a.Wanted = max(a.Reserved, l.reserved), max(a.Wanted, l.wanted)
}

// learning makes plans for one process.
type learning struct {
	learn.Learner
	plan     *learn.Plan // the latest; nil: none
	plans    int
	settling int // requests until figures count
	reserved uint64
	wanted   uint64
}

// learn notes a request that was served, and gives the policy a plan when there is a new one.
func (p *process) learn(req *allocator.Request, h *held) {
	l := p.learning
	h.number = l.Request(req)
	if l.settling > 0 {
		l.settling--
	} else if l.plan != nil {
		l.reserved, l.wanted = max(l.reserved, p.reserved), max(l.wanted, p.wanted+req.Size)
	}
	if p.player.options.Given != nil {
		return
	}
	if plan, ok := l.Plan(); ok {
		p.install(plan)
	}
}

// given gives the policy the plan that there is from the start.
func (p *process) given() {
	if give := p.player.options.Given; give != nil {
		if plan := give(p.player.script.origin(p.number)); plan != nil {
			p.install(plan)
		}
	}
}

// install gives the policy a plan.
func (p *process) install(plan *learn.Plan) {
	l := p.learning
	var err error
	if p.evictions, err = p.policy.Install(plan.Layout, p.evictions[:0]); err != nil {
		return
	}
	p.give()
	l.plan, l.settling = plan, allocator.SettledAfter*plan.Period
	l.plans++
	if heard := p.player.options.Learned; heard != nil {
		heard(p.player.script.origin(p.number), plan)
	}
}

// readPlan takes a piece of a plan that the recorded policy got.
func (p *process) readPlan(piece string) {
	if !p.player.options.AsRecorded {
		return
	}
	layout, err := p.draft.Read(piece)
	if err != nil || layout == nil {
		return // it was the recorded policy's error, or not all of it was recorded
	}
	if p.evictions, err = p.policy.Install(*layout, p.evictions[:0]); err == nil {
		p.give()
	}
}
