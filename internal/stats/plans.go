package stats

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Plans say what plans of a program's memory did, under a policy that takes plans. Sizes are bytes of all memory.
type Plans struct {
	Installed uint64 // plans that the program got
	Places    uint64 // requests in an iteration that the latest plan has a place for
	Arenas    uint64 // bytes of the arenas of the latest plan
	Bound     uint64 // bytes that any arenas for it must have at least
	// Routes counts requests by what served them: the plan, or the base policy for some reason.
	Routes [wire.RouteNoArena + 1]uint64
	// The most reserved before a plan served anything; and the most reserved and requested since one has served some
	// iterations (allocator.SettledAfter).
	Learning, Reserved, Requested uint64
}

// planning is how far a process, or the run, is with its plan.
type planning struct {
	asked    bool   // its policy takes plans
	settling uint64 // requests that the plan must still serve before peaks count as peaks under the plan
}

// PlannableRequests returns the requests that a plan could have served.
func (p *Plans) PlannableRequests() (n uint64) {
	for route, served := range p.Routes {
		if wire.Route(route) != wire.RouteNone {
			n += served
		}
	}
	return n
}

// ShareServedByPlan returns the part of Asked that a plan did serve.
func (p *Plans) ShareServedByPlan() float64 {
	return ratioOf(p.Routes[wire.RoutePlanned], p.PlannableRequests())
}

// notePlanInstalled notes that a plan has come.
func (a *account) notePlanInstalled(layout *allocator.Layout) {
	p := &a.counters.Plans
	p.Installed++
	p.Places, p.Arenas, p.Bound = uint64(len(layout.Places)), 0, 0
	for _, arena := range layout.Arenas {
		p.Arenas += arena.Size
		p.Bound += arena.Bound
	}
	a.planning.settling = allocator.SettledAfter * p.Places
}

// countByRoute counts a request by what served it.
func (a *account) countByRoute(route wire.Route) {
	p := &a.counters.Plans
	if route == wire.RouteNone || int(route) >= len(p.Routes) {
		return
	}
	a.planning.asked = true
	p.Routes[route]++
	if route == wire.RoutePlanned && a.planning.settling > 0 {
		a.planning.settling--
	}
}

// raisePlanPeaks notes new peaks of a policy that takes plans.
func (a *account) raisePlanPeaks() {
	p := &a.counters.Plans
	switch {
	case !a.planning.asked:
	case p.Routes[wire.RoutePlanned] == 0:
		raisePeak(&p.Learning, a.ReservedBytes())
	case p.Installed > 0 && a.planning.settling == 0:
		raisePeak(&p.Reserved, a.ReservedBytes())
		raisePeak(&p.Requested, a.Requested)
	}
}

// readPlan takes a piece of a plan that a process has got.
func (m *Model) readPlan(p *process, piece []byte) {
	layout, err := p.draft.ReadPiece(string(piece))
	if err != nil || layout == nil || layout.Check() != nil {
		return // not all of it was recorded
	}
	for _, a := range p.accounts {
		a.notePlanInstalled(layout)
	}
}
