package learn

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/arena"
)

// stepsMax is how long the search for a placement may take: some ten milliseconds.
const stepsMax = 20_000

// Plan is a layout, and what is known of it.
type Plan struct {
	allocator.Layout
	Phases  [][]Buffer        // the iterations that it is made for; those that are Placed are Layout.Places, in this order
	Classes []allocator.Class // that each arena is for
	Period  int               // requests in an iteration of the first phase
	Outside int               // of these, that have no place
	blocks  [][]uint64        // bytes of the blocks of each arena that has any, the largest first in each phase
	Size    uint64            // bytes of all arenas
	Bound   uint64            // bytes: no arenas are smaller
}

// Solve places the buffers of a program's phases, of which one iteration each is given: in arenas that are large enough
// for each phase, one for each class of requests. It returns nil when nothing has a place, or when call sites make
// requests in several phases.
func Solve(phases [][]Buffer) *Plan {
	if shareSites(phases) {
		return nil
	}
	plan := &Plan{Phases: phases, Period: len(phases[0])}
	plan.open()
	for _, buffers := range phases {
		place := make([]allocator.Place, len(buffers))
		for number := range plan.Arenas {
			if !plan.placeClass(number, buffers, place) {
				return nil
			}
		}
		for i := range place {
			if place[i].Size != 0 {
				plan.Places = append(plan.Places, place[i])
			}
		}
	}
	plan.lineUp()
	for i := range plan.Arenas {
		plan.Size += plan.Arenas[i].Size
		plan.Bound += plan.Arenas[i].Bound
	}
	for i := range phases[0] {
		if !plan.Placed(&phases[0][i]) {
			plan.Outside++
		}
	}
	if len(plan.Places) == 0 || plan.Check() != nil {
		return nil
	}
	return plan
}

// shareSites reports whether a call site makes requests in several phases: where one of its places comes next would be
// unknown.
func shareSites(phases [][]Buffer) bool {
	phase := map[allocator.Tag]int{}
	for i, buffers := range phases {
		for k := range buffers {
			if was, known := phase[buffers[k].Tag]; known && was != i {
				return true
			}
			phase[buffers[k].Tag] = i
		}
	}
	return false
}

// open makes an arena, without a size, for each class that needs one. A class of which only some requests can be parts
// of slabs needs two.
func (plan *Plan) open() {
	for _, buffers := range plan.Phases {
		for i := range buffers {
			b := &buffers[i]
			number := plan.arenaFor(b)
			if !b.placeable() || number < 0 && len(plan.Classes) == allocator.ArenasMax {
				continue
			}
			if number < 0 {
				number = len(plan.Classes)
				plan.Classes = append(plan.Classes, b.Class)
				plan.Arenas = append(plan.Arenas, allocator.Arena{})
				plan.blocks = append(plan.blocks, nil)
			}
			plan.Arenas[number].Align = max(plan.Arenas[number].Align, b.Align)
		}
	}
}

// arenaFor returns the number of a buffer's arena, -1 when there is none.
func (plan *Plan) arenaFor(b *Buffer) int {
	for i, class := range plan.Classes {
		if class == b.Class && (plan.Arenas[i].Align == 0) == (b.Align == 0) {
			return i
		}
	}
	return -1
}

// Placed reports whether a buffer of the phases has a place.
func (plan *Plan) Placed(b *Buffer) bool {
	return b.placeable() && plan.arenaFor(b) >= 0
}

// placeClass places the buffers of one class in their arena. A site whose buffers are never needed at once gets one range
// for all, unless that makes the arena larger.
func (plan *Plan) placeClass(number int, buffers []Buffer, place []allocator.Place) bool {
	a := &plan.Arenas[number]
	var members []member
	for i := range buffers {
		if b := &buffers[i]; b.placeable() && plan.arenaFor(b) == number {
			unit := max(a.Align, 1)
			members = append(members, member{b, i, (b.Size + unit - 1) &^ (unit - 1)})
		}
	}
	if len(members) == 0 {
		return true
	}
	if a.Align == 0 {
		plan.placeBlocks(number, members, place)
		return true
	}
	shared := byRange(members, len(buffers))
	best, err := solve(shared, a.Align, len(buffers))
	if err != nil {
		return false
	}
	if len(shared) < len(members) && best.Height > best.Bound {
		alone := make([][]member, len(members))
		for i := range members {
			alone[i] = members[i : i+1]
		}
		if other, err := solve(alone, a.Align, len(buffers)); err == nil && other.Height < best.Height {
			shared, best = alone, other
		}
	}
	a.Size, a.Bound = max(a.Size, best.Height), max(a.Bound, best.Bound)
	for k, group := range shared {
		for _, m := range group {
			place[m.at] = allocator.Place{Arena: number, Tag: m.Tag, Size: m.Size, Offset: best.Offsets[k]}
		}
	}
	return true
}

// member is a buffer to be placed.
type member struct {
	*Buffer
	at   int    // in the iteration
	size uint64 // bytes, rounded up
}

// span is when a buffer needs its memory, in requests of an iteration.
type span struct {
	lower, upper int64
	size         uint64
}

// spans returns when a buffer is needed: one that lives on into the next iteration also at the beginning of this one.
func (m *member) spans(length int) []span {
	lower, upper := int64(m.at), int64(m.at)+int64(m.Life)
	if over := upper - int64(length); over > 0 {
		return []span{{0, over, m.size}, {lower, int64(length), m.size}}
	}
	return []span{{lower, upper, m.size}}
}

// spansOf returns when a range for several buffers is needed, in order; ok is false when they need it at once.
func spansOf(group []member, length int) (all []span, ok bool) {
	for i := range group {
		all = append(all, group[i].spans(length)...)
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.lower, b.lower) })
	for i := 1; i < len(all); i++ {
		if all[i].lower < all[i-1].upper {
			return nil, false
		}
	}
	return all, true
}

// byRange groups the buffers of each site that are never needed at once; others stay alone.
func byRange(members []member, length int) (groups [][]member) {
	sites := map[allocator.Tag][]member{}
	for _, m := range members {
		sites[m.Tag] = append(sites[m.Tag], m)
	}
	for _, m := range members {
		site := sites[m.Tag]
		if site == nil {
			continue // the first of the site brought it
		}
		sites[m.Tag] = nil
		if _, ok := spansOf(site, length); ok {
			groups = append(groups, site)
			continue
		}
		for k := range site {
			groups = append(groups, site[k:k+1])
		}
	}
	return groups
}

// solve gives each group of buffers, which share a range, an offset.
func solve(groups [][]member, align uint64, length int) (*arena.Solution, error) {
	list := make([]arena.Buffer, len(groups))
	for i, group := range groups {
		all, _ := spansOf(group, length)
		b := arena.Buffer{ID: strconv.Itoa(i), Lower: all[0].lower, Upper: all[len(all)-1].upper, Align: align}
		for _, s := range all {
			b.Size = max(b.Size, s.size)
		}
		last := all[0].lower
		for _, s := range all {
			if s.lower > last {
				b.Gaps = append(b.Gaps, arena.Gap{Lower: last, Upper: s.lower})
			}
			if s.size < b.Size {
				b.Gaps = append(b.Gaps, arena.Gap{Lower: s.lower, Upper: s.upper, To: s.size})
			}
			last = s.upper
		}
		list[i] = b
	}
	return arena.Solve(context.Background(), list, arena.Options{Workers: 1, Steps: stepsMax, Seed: 1})
}
