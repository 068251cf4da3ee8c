package learn

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/arena"
)

// stepsMax bounds the search for a placement: some ten milliseconds.
const stepsMax = 20_000

// Layout is an allocator's layout with the facts about it.
type Layout struct {
	allocator.Layout
	Phases  [][]Buffer        // one period of each phase; buffers that HasPlace are Layout.Places, in this order
	Classes []allocator.Class // class of each arena
	Period  int               // requests in a period of the first phase
	Outside int               // requests of the first phase that have no place
	blocks  [][]uint64        // bytes of the blocks of each arena that has blocks, the largest first in each phase
	Size    uint64            // bytes of all arenas
	Bound   uint64            // bytes: arenas cannot be smaller
}

// MakeLayout places the buffers of a program's phases, one period of each, in arenas that are large enough for every phase,
// one arena for each class of requests. It returns nil when no buffer has a place, or when a call site makes requests
// in several phases.
func MakeLayout(phases [][]Buffer) *Layout {
	if sitesInSeveralPhases(phases) {
		return nil
	}
	layout := &Layout{Phases: phases, Period: len(phases[0])}
	layout.makeArenaForEachClass()
	for _, buffers := range phases {
		place := make([]allocator.Place, len(buffers))
		for number := range layout.Arenas {
			if !layout.placeClassInArena(number, buffers, place) {
				return nil
			}
		}
		for i := range place {
			if place[i].Size != 0 {
				layout.Places = append(layout.Places, place[i])
			}
		}
	}
	layout.setBlockOffsets()
	for i := range layout.Arenas {
		layout.Size += layout.Arenas[i].Size
		layout.Bound += layout.Arenas[i].Bound
	}
	for i := range phases[0] {
		if !layout.HasPlace(&phases[0][i]) {
			layout.Outside++
		}
	}
	if len(layout.Places) == 0 || layout.Check() != nil {
		return nil
	}
	return layout
}

// sitesInSeveralPhases reports whether a call site makes requests in several phases. The policy could not know which of
// the site's places comes next.
func sitesInSeveralPhases(phases [][]Buffer) bool {
	phase := map[allocator.Tag]int{}
	for i, buffers := range phases {
		for k := range buffers {
			if earlier, known := phase[buffers[k].Tag]; known && earlier != i {
				return true
			}
			phase[buffers[k].Tag] = i
		}
	}
	return false
}

// makeArenaForEachClass makes an arena, still without a size, for each class that needs one. A class in which only some requests
// can be sub-allocations needs two.
func (l *Layout) makeArenaForEachClass() {
	for _, buffers := range l.Phases {
		for i := range buffers {
			b := &buffers[i]
			number := l.arenaFor(b)
			if !b.hasPlace() || number < 0 && len(l.Classes) == allocator.ArenasMax {
				continue
			}
			if number < 0 {
				number = len(l.Classes)
				l.Classes = append(l.Classes, b.Class)
				l.Arenas = append(l.Arenas, allocator.Arena{})
				l.blocks = append(l.blocks, nil)
			}
			l.Arenas[number].Align = max(l.Arenas[number].Align, b.Align)
		}
	}
}

// arenaFor returns the number of a buffer's arena, -1 if it has none.
func (l *Layout) arenaFor(b *Buffer) int {
	for i, class := range l.Classes {
		if class == b.Class && (l.Arenas[i].Align == 0) == (b.Align == 0) {
			return i
		}
	}
	return -1
}

// HasPlace reports whether a buffer of the phases has a place.
func (l *Layout) HasPlace(b *Buffer) bool {
	return b.hasPlace() && l.arenaFor(b) >= 0
}

// placeClassInArena places the buffers of one class in their arena. If a site's buffers are never needed at the same time they
// share one range, unless that makes the arena larger.
func (l *Layout) placeClassInArena(number int, buffers []Buffer, place []allocator.Place) bool {
	a := &l.Arenas[number]
	var items []arenaBuffer
	for i := range buffers {
		if b := &buffers[i]; b.hasPlace() && l.arenaFor(b) == number {
			unit := max(a.Align, 1)
			items = append(items, arenaBuffer{b, i, (b.Size + unit - 1) &^ (unit - 1)})
		}
	}
	if len(items) == 0 {
		return true
	}
	if a.Align == 0 {
		l.placeUncutBuffers(number, items, place)
		return true
	}
	shared := groupBuffersOfSites(items, len(buffers))
	best, err := placeGroups(shared, a.Align, len(buffers))
	if err != nil {
		return false
	}
	if len(shared) < len(items) && best.Height > best.Bound {
		single := make([][]arenaBuffer, len(items))
		for i := range items {
			single[i] = items[i : i+1]
		}
		if other, err := placeGroups(single, a.Align, len(buffers)); err == nil && other.Height < best.Height {
			shared, best = single, other
		}
	}
	a.Size, a.Bound = max(a.Size, best.Height), max(a.Bound, best.Bound)
	for k, group := range shared {
		for _, m := range group {
			place[m.index] = allocator.Place{Arena: number, Tag: m.Tag, Size: m.Size, Offset: best.Offsets[k]}
		}
	}
	return true
}

// arenaBuffer is a buffer to be placed.
type arenaBuffer struct {
	*Buffer
	index int    // in the period
	size  uint64 // bytes, rounded up
}

// span is a time in which a buffer needs its memory, in requests of a period.
type span struct {
	lower, upper int64
	size         uint64
}

// neededSpans returns when a buffer is needed. A buffer that lives on into the next period is also needed at the beginning of
// this one.
func (m *arenaBuffer) neededSpans(length int) []span {
	lower, upper := int64(m.index), int64(m.index)+int64(m.Life)
	if over := upper - int64(length); over > 0 {
		return []span{{0, over, m.size}, {lower, int64(length), m.size}}
	}
	return []span{{lower, upper, m.size}}
}

// neededSpansOfGroup returns when a range for several buffers is needed, in order; ok is false if two buffers need it at the
// same time.
func neededSpansOfGroup(group []arenaBuffer, length int) (all []span, ok bool) {
	for i := range group {
		all = append(all, group[i].neededSpans(length)...)
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.lower, b.lower) })
	for i := 1; i < len(all); i++ {
		if all[i].lower < all[i-1].upper {
			return nil, false
		}
	}
	return all, true
}

// groupBuffersOfSites groups the buffers of each site that are never needed at the same time. Other buffers form groups of
// their own.
func groupBuffersOfSites(items []arenaBuffer, length int) (groups [][]arenaBuffer) {
	sites := map[allocator.Tag][]arenaBuffer{}
	for _, m := range items {
		sites[m.Tag] = append(sites[m.Tag], m)
	}
	for _, m := range items {
		site := sites[m.Tag]
		if site == nil {
			continue // grouped with the first buffer of the site
		}
		sites[m.Tag] = nil
		if _, ok := neededSpansOfGroup(site, length); ok {
			groups = append(groups, site)
			continue
		}
		for k := range site {
			groups = append(groups, site[k:k+1])
		}
	}
	return groups
}

// placeGroups gives each group of buffers, which share a range, an offset.
func placeGroups(groups [][]arenaBuffer, align uint64, length int) (*arena.Solution, error) {
	list := make([]arena.Buffer, len(groups))
	for i, group := range groups {
		all, _ := neededSpansOfGroup(group, length)
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
	return arena.PlaceBuffers(context.Background(), list, arena.Options{Workers: 1, Steps: stepsMax, Seed: 1})
}
