package stats

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MissesMax is the most misses that a snapshot has.
const MissesMax = 20

// Miss is a request that the pool did not serve.
type Miss struct {
	Time    uint64 // when its create returned
	Size    uint64 // requested
	Reason  wire.Miss
	Tag     string // call site
	Process uint32 // number in the session
}

// misses keeps the latest MissesMax misses, in a ring.
type misses struct {
	list  [MissesMax]Miss // without Tag
	sites [MissesMax]*processSite
	count uint64
}

// noteCreated notes a new object, if it is a miss.
func (m *misses) noteCreated(p *process, s *processSite, o *heap.Object) {
	if o.PresentOutcome() != wire.OutcomeMiss || o.CarriedOver {
		return
	}
	at := m.count % MissesMax
	m.list[at] = Miss{Time: o.Started, Size: o.Size, Reason: wire.Miss(indexOfReason(uint8(o.Reason))), Process: p.shown.Number}
	m.sites[at] = s
	m.count++
}

// listMisses returns the misses, the latest first.
func (m *misses) listMisses() []Miss {
	n := min(m.count, MissesMax)
	list := make([]Miss, 0, n)
	for i := range n {
		at := (m.count - 1 - i) % MissesMax
		miss := m.list[at]
		miss.Tag = m.sites[at].finalSite().site.siteTitle()
		list = append(list, miss)
	}
	return list
}

// reasonCounts counts misses by reason. Most call sites have one reason only, and there may be 100,000 sites: the list of all
// reasons is made when a second reason comes.
type reasonCounts struct {
	all   uint64
	first uint8 // the only reason, if there is no list
	each  *[reasons]uint64
}

func (c *reasonCounts) addForReason(reason uint8, n uint64) {
	switch {
	case n == 0:
		return
	case c.all == 0:
		c.first = reason
	case c.each == nil && reason != c.first:
		c.each = &[reasons]uint64{}
		c.each[c.first] = c.all
	}
	c.all += n
	if c.each != nil {
		c.each[reason] += n
	}
}

// countsByReason returns the counts by reason.
func (c *reasonCounts) countsByReason() (list [reasons]uint64) {
	if c.each != nil {
		return *c.each
	}
	list[c.first] = c.all
	return list
}
