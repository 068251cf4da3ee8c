package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
)

// LayoutPolicy is the policy that takes layouts.
const LayoutPolicy = "arena"

// Arena is what layouts achieved for a policy that takes them. Sums are over all processes; sizes and periods are those
// of the largest layout.
type Arena struct {
	Given   bool   // layouts were given, not learned
	Layouts int    // number of layouts
	Period  int    // requests in a period
	Outside int    // requests of a period that have no place
	Size    uint64 // bytes of the arenas
	Bound   uint64 // bytes: arenas cannot be smaller
	Planned uint64 // requests that a layout served

	Departures [len(allocator.Stats{}.Departures)]uint64 // other requests since the policy has a layout

	// The most while a layout was in force, after allocator.SettledAfter periods.
	Reserved, Wanted uint64
}

// DepartureText returns the words for an index of Departures.
func DepartureText(why int) string { return allocator.Departure(why).String() }

// addProcessFigures adds the figures of one process.
func (a *Arena) addProcessFigures(p *simulatedProcess, s *allocator.Stats) {
	a.Planned += s.Planned
	for why, n := range s.Departures {
		a.Departures[why] += n
	}
	a.Given = p.simulation.options.GivenLayout != nil
	l := p.learning
	if l == nil || l.layout == nil {
		return
	}
	a.Layouts += l.layouts
	if l.layout.Size > a.Size {
		a.Period, a.Outside, a.Size, a.Bound = l.layout.Period, l.layout.Outside, l.layout.Size, l.layout.Bound
	}
	a.Reserved, a.Wanted = max(a.Reserved, l.reserved), max(a.Wanted, l.requested)
}

// layoutLearning learns layouts for one process.
type layoutLearning struct {
	learn.Learner
	layout    *learn.Layout // the latest; nil: none
	layouts   int
	settling  int // requests until reserved and requested count
	reserved  uint64
	requested uint64
}

// learnFromRequest notes a request that was served, and gives the policy a layout when there is a new one.
func (p *simulatedProcess) learnFromRequest(req *allocator.Request, buffer *simulatedBuffer) {
	l := p.learning
	buffer.number = l.AddRequest(req)
	if l.settling > 0 {
		l.settling--
	} else if l.layout != nil {
		l.reserved, l.requested = max(l.reserved, p.reserved), max(l.requested, p.requested+req.Size)
	}
	if p.simulation.options.GivenLayout != nil {
		return
	}
	if layout, ok := l.LayoutIfNew(); ok {
		p.installLayout(layout)
	}
}

// installGivenLayout gives the policy the layout that it has from the start, if there is one.
func (p *simulatedProcess) installGivenLayout() {
	if given := p.simulation.options.GivenLayout; given != nil {
		if layout := given(p.simulation.script.processNumber(p.number)); layout != nil {
			p.installLayout(layout)
		}
	}
}

// installLayout gives the policy a layout.
func (p *simulatedProcess) installLayout(layout *learn.Layout) {
	l := p.learning
	var err error
	if p.evictions, err = p.policy.InstallLayout(layout.Layout, p.evictions[:0]); err != nil {
		return
	}
	p.returnEvictedBlocks()
	l.layout, l.settling = layout, allocator.SettledAfter*layout.Period
	l.layouts++
	if heard := p.simulation.options.OnLayout; heard != nil {
		heard(p.simulation.script.processNumber(p.number), layout)
	}
}

// readLayoutPiece reads a piece of a layout that the recorded policy got.
func (p *simulatedProcess) readLayoutPiece(piece string) {
	if !p.simulation.options.AsRecorded {
		return
	}
	layout, err := p.draft.ReadPiece(piece)
	if err != nil || layout == nil {
		return // the recorded policy failed as well, or the recording lacks a piece
	}
	if p.evictions, err = p.policy.InstallLayout(*layout, p.evictions[:0]); err == nil {
		p.returnEvictedBlocks()
	}
}
