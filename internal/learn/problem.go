package learn

import (
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
	Period  int    // requests in a period
	Outside int    // of these, that have no place: they live longer than a period, or no part of a slab can serve them
	Size    uint64 // bytes of all arenas
	Bound   uint64 // bytes: no arenas are smaller
	arenas  []solved
}

// solved is what is known of one arena.
type solved struct {
	class allocator.Class
	bound uint64
}

// with returns a plan that serves another phase of the program as well, in arenas that are large enough for each; nil when
// that cannot be, because call sites make requests in both.
func (plan *Plan) with(other *Plan) *Plan {
	if other == nil {
		return nil
	}
	both := &Plan{Period: plan.Period, Outside: plan.Outside}
	both.Arenas, both.Places = slices.Clone(plan.Arenas), slices.Clone(plan.Places)
	both.arenas = slices.Clone(plan.arenas)
	sites := map[allocator.Tag]bool{}
	for _, place := range plan.Places {
		sites[place.Tag] = true
	}
	to := make([]int, len(other.arenas))
	for i, a := range other.arenas {
		to[i] = slices.IndexFunc(both.arenas, func(s solved) bool { return s.class == a.class })
		if to[i] < 0 {
			to[i] = len(both.arenas)
			both.Arenas, both.arenas = append(both.Arenas, other.Arenas[i]), append(both.arenas, a)
			continue
		}
		if mine := &both.Arenas[to[i]]; mine.Align != other.Arenas[i].Align {
			return nil
		} else if other.Arenas[i].Size > mine.Size {
			mine.Size = other.Arenas[i].Size
		}
		both.arenas[to[i]].bound = max(both.arenas[to[i]].bound, a.bound)
	}
	for _, place := range other.Places {
		if sites[place.Tag] {
			return nil
		}
		place.Arena = to[place.Arena]
		both.Places = append(both.Places, place)
	}
	for i := range both.arenas {
		both.Size += both.Arenas[i].Size
		both.Bound += both.arenas[i].bound
	}
	if both.Check() != nil {
		return nil
	}
	return both
}

// problem is one period of requests, from where least lives on.
type problem struct {
	buffers    []buffer
	alternates bool // some live on into the next period until after their successors come: two places take turns
}

// buffer is a request of the period.
type buffer struct {
	request
	life uint64 // requests from its own on until its memory is free again; 0: more than a period
}

// problem returns the period that the latest requests repeat, nil when too little of it is remembered.
func (l *Learner) problem(length uint64) *problem {
	if l.count < 3*length {
		return nil
	}
	p := &problem{buffers: make([]buffer, length)}
	base := l.count - 3*length
	for i := range length {
		b := buffer{request: *l.at(base + i), life: 1}
		for _, again := range []uint64{0, length} { // of these at least a whole period has passed
			r := l.at(base + i + again)
			switch {
			case r.key != b.key:
				return nil
			case r.ended == 0 || r.ended-r.number > length:
				b.life = 0
				p.alternates = p.alternates || r.ended != 0 && r.ended-r.number <= 2*length && b.align != 0
			case b.life != 0:
				b.life = max(b.life, r.ended-r.number)
			}
		}
		p.buffers[i] = b
	}
	p.turn()
	return p
}

// turn lets the period begin where the fewest bytes live on, at a request of a site that makes no other where there is
// a choice: that is how the policy finds the beginning.
func (p *problem) turn() {
	n := len(p.buffers)
	live := make([]int64, n+1) // changes
	sites := map[allocator.Tag]int{}
	for i := range p.buffers {
		b := &p.buffers[i]
		sites[b.tag]++
		if !b.placeable() || b.life < 2 { // else it lives at the requests i+1 to i+life-1
			continue
		}
		from, to := i+1, i+int(b.life)
		live[min(from, n)] += int64(b.size)
		if to <= n {
			live[to] -= int64(b.size)
			continue
		}
		live[0] += int64(b.size)
		live[to-n] -= int64(b.size)
	}
	best, least, alone, now := -1, int64(0), false, int64(0)
	for i := range n {
		now += live[i]
		b := &p.buffers[i]
		only := sites[b.tag] == 1
		if b.placeable() && (best < 0 || now < least || now == least && only && !alone) {
			best, least, alone = i, now, only
		}
	}
	if best > 0 {
		p.buffers = append(p.buffers[best:len(p.buffers):len(p.buffers)], p.buffers[:best]...)
	}
}

// placeable reports whether a buffer has a place in an arena.
func (b *buffer) placeable() bool { return b.life != 0 && b.align != 0 }

// solve places the buffers of each class; nil when there are none.
func (p *problem) solve() *Plan {
	plan := &Plan{Period: len(p.buffers)}
	classes := map[allocator.Class][]int{}
	var order []allocator.Class
	for i := range p.buffers {
		b := &p.buffers[i]
		if _, known := classes[b.class]; !known && b.placeable() {
			if len(order) == allocator.ArenasMax {
				plan.Outside++
				continue
			}
			order = append(order, b.class)
		}
		if !b.placeable() {
			plan.Outside++
			continue
		}
		classes[b.class] = append(classes[b.class], i)
	}
	place := make([]allocator.Place, len(p.buffers))
	for number, class := range order {
		if !plan.solveClass(p, number, classes[class], place) {
			return nil
		}
	}
	for _, at := range place {
		if at.Size != 0 {
			plan.Places = append(plan.Places, at)
		}
	}
	if len(plan.Places) == 0 || plan.Check() != nil {
		return nil
	}
	return plan
}

// solveClass places the buffers of one class in an arena.
func (plan *Plan) solveClass(p *problem, number int, members []int, place []allocator.Place) bool {
	n := int64(len(p.buffers))
	align := p.buffers[members[0]].align
	var list []arena.Buffer
	for _, i := range members {
		b := &p.buffers[i]
		align = max(align, b.align)
		piece := arena.Buffer{ID: strconv.Itoa(i), Lower: int64(i), Upper: int64(i) + int64(b.life), Size: b.size}
		if over := piece.Upper - n; over > 0 { // it lives on into the next period, where the same buffer takes its place
			piece.Lower, piece.Upper = 0, n
			piece.Gaps = []arena.Gap{{Lower: over, Upper: int64(i)}}
		}
		list = append(list, piece)
	}
	for i := range list {
		list[i].Align = align
		list[i].Size = (list[i].Size + align - 1) &^ (align - 1)
	}
	solution, err := arena.Solve(context.Background(), list, arena.Options{Workers: 1, Steps: stepsMax, Seed: 1})
	if err != nil {
		return false
	}
	plan.Arenas = append(plan.Arenas, allocator.Arena{Size: solution.Height, Align: align})
	plan.arenas = append(plan.arenas, solved{p.buffers[members[0]].class, solution.Bound})
	plan.Size += solution.Height
	plan.Bound += solution.Bound
	for k, i := range members {
		b := &p.buffers[i]
		place[i] = allocator.Place{Arena: number, Tag: b.tag, Size: b.size, Offset: solution.Offsets[k]}
	}
	return true
}
