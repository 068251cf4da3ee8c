package stats

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap/table"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// slabsID is the number of the row for what is free in slabs; no tag has it.
const slabsID = math.MaxUint32

// countSlab counts a slab that the driver created for a thread.
func (m *Model) countSlab(p *process, thread uint32, s wire.SlabView) {
	if s.Status() != 0 || m.quiet {
		return
	}
	for _, b := range p.books {
		b.ledger.allocated(thread, s.Bytes(), s.Cost())
		b.window.current().DriverCreates++
		b.spend(s.Cost())
	}
}

// ranges are the free ranges in slabs as the policy reported them last.
type ranges struct {
	largest, ranges uint64
	squares         float64
}

// rangesOf reads a GAUGE.
func rangesOf(g wire.GaugeView) ranges {
	t := ranges{largest: g.Largest(), ranges: g.Ranges(), squares: g.Squares()}
	if !(t.squares >= 0) {
		t.squares = 0
	}
	return t
}

// spread says how free memory is divided.
type spread struct {
	largest uint64 // block or range
	ranges  uint64 // in slabs
	squares float64
}

// spread of a process. What the policy said of its slabs may be a moment older than what is free now; of a policy that
// has said nothing yet all that is free counts as one range.
func (p *process) spread() spread {
	s := spread{largest: p.sizes.Largest(), squares: p.cached.Squares()}
	free := heap.Amount(p.own().ledger.Room)
	if free == 0 || p.heap.Left { // a process that was removed keeps what it shows
		return s
	}
	t := p.reported
	if t.ranges == 0 || t.largest == 0 {
		t = ranges{largest: free, ranges: 1, squares: float64(free) * float64(free)}
	}
	t.largest = min(t.largest, free)
	s.largest = max(s.largest, t.largest)
	s.ranges = t.ranges
	s.squares += min(t.squares, float64(t.largest)*float64(free))
	return s
}

// spread of all processes: no free block serves another one.
func (m *Model) spread() spread {
	var all spread
	for _, p := range m.processes {
		s := p.spread()
		all.largest = max(all.largest, s.largest)
		all.ranges += s.ranges
		all.squares += s.squares
	}
	return all
}

func (s *spread) addTo(t *Totals) {
	t.LargestCached, t.Squares = s.largest, s.squares
	t.CachedBlocks += s.ranges
}

// slabTag returns the row of a process's slabs, false when it has none.
func (p *process) slabTag() (Tag, bool) {
	if p.left != nil {
		return *p.left, true
	}
	t := newSlabTag(&p.own().ledger, p.spread().ranges)
	listSizes(&p.slabs, &t.Free)
	sortClasses(t.Free)
	return t, len(t.Free) > 0 || t.Cached > 0
}

// slabTag returns the row of all slabs.
func (m *Model) slabTag() (Tag, bool) {
	t := newSlabTag(&m.ledger, m.spread().ranges)
	for _, p := range m.processes {
		listSizes(&p.slabs, &t.Free)
	}
	sortClasses(t.Free)
	t.Free = joinClasses(t.Free)
	return t, len(t.Free) > 0 || t.Cached > 0
}

func newSlabTag(l *ledger, ranges uint64) Tag {
	return Tag{
		ID: slabsID, Name: callsite.Slabs, Slabs: true, Cached: heap.Amount(l.Room), CachedCount: ranges,
		Free: []FreeClass{},
	}
}

// listSizes appends sizes with their counts.
func listSizes(s *table.Sizes, to *[]FreeClass) {
	s.All(func(size, count uint64) { *to = append(*to, FreeClass{Size: size, Blocks: count}) })
}
