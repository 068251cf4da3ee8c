package learn

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// packing is an assignment of buffers to blocks, in the order in which they were placed.
type packing struct {
	order  []int    // of members
	at     []int    // the block of each member
	sizes  []uint64 // of the blocks, in bytes
	height uint64   // their sum
}

// placeBlocks places buffers that get no parts of slabs: the largest first, each in the first block that is free all the
// time that it needs. Then it moves single ones forward in the order as long as there are steps left, and keeps what is
// no worse. The offsets are the numbers of blocks until lineUp.
func (plan *Plan) placeBlocks(number int, members []member, place []allocator.Place) {
	slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(b.size, a.size) })
	spans := make([][]span, len(members))
	order := make([]int, len(members))
	for i := range members {
		spans[i], order[i] = members[i].spans(len(place)), i
	}
	bound := blocksBound(members, spans, len(place))
	best := pack(members, spans, order)
	rng := rand.New(rand.NewPCG(1, uint64(len(members))))
	for left := stepsMax; best.height > bound && left > 0; left -= len(members) {
		order = slices.Clone(best.order)
		from := 1 + rng.IntN(len(order)-1)
		moved, to := order[from], rng.IntN(from)
		order = slices.Insert(slices.Delete(order, from, from+1), to, moved)
		if other := pack(members, spans, order); other.height <= best.height {
			best = other
		}
	}
	sizes := plan.blocks[number]
	for i := range members {
		m := &members[i]
		place[m.at] = allocator.Place{Arena: number, Tag: m.Tag, Size: m.Size, Offset: uint64(best.rank(best.at[i]))}
	}
	slices.SortFunc(best.sizes, func(a, b uint64) int { return cmp.Compare(b, a) })
	for i, size := range best.sizes {
		if i == len(sizes) {
			sizes = append(sizes, 0)
		}
		sizes[i] = max(sizes[i], size)
	}
	plan.blocks[number] = sizes
	plan.Arenas[number].Bound = max(plan.Arenas[number].Bound, bound)
}

// pack places members in an order, each in the first block that is free when it is needed, and of a size that may serve it.
func pack(members []member, spans [][]span, order []int) packing {
	p := packing{order: order, at: make([]int, len(members))}
	var taken [][]span
	for _, i := range order {
		m := &members[i]
		at := 0
		for at < len(taken) && (p.sizes[at] < m.size || !m.fits(p.sizes[at]) || overlap(taken[at], spans[i])) {
			at++
		}
		if at == len(taken) {
			taken, p.sizes, p.height = append(taken, nil), append(p.sizes, m.size), p.height+m.size
		}
		taken[at] = append(taken[at], spans[i]...)
		p.at[i] = at
	}
	return p
}

// rank returns how many blocks are larger, or as large and before.
func (p *packing) rank(block int) (larger int) {
	for i, size := range p.sizes {
		if size > p.sizes[block] || size == p.sizes[block] && i < block {
			larger++
		}
	}
	return larger
}

// fits reports whether a block of a size may serve a buffer that is no larger.
func (b *Buffer) fits(size uint64) bool { return b.Most == 0 || size <= max(b.Most, b.Size) }

// overlap reports whether two lists of spans have a time in common.
func overlap(some, others []span) bool {
	for i := range some {
		for k := range others {
			if some[i].lower < others[k].upper && others[k].lower < some[i].upper {
				return true
			}
		}
	}
	return false
}

// blocksBound returns what blocks for buffers, the largest first, have at least: as many of each size or larger as
// buffers of that size or larger are needed at once.
func blocksBound(members []member, spans [][]span, length int) (bound uint64) {
	live, most := make([]int, length), 0
	for i := range members {
		for _, s := range spans[i] {
			for at := s.lower; at < s.upper; at++ {
				live[at]++
				if live[at] > most {
					most = live[at]
					bound += members[i].size
				}
			}
		}
	}
	return bound
}

// lineUp gives the blocks of all phases their sizes and offsets.
func (plan *Plan) lineUp() {
	starts := make([][]uint64, len(plan.blocks))
	for number, sizes := range plan.blocks {
		for _, size := range sizes {
			starts[number] = append(starts[number], plan.Arenas[number].Size)
			plan.Arenas[number].Size += size
		}
	}
	for i := range plan.Places {
		if at := &plan.Places[i]; plan.Arenas[at.Arena].Align == 0 {
			at.Offset = starts[at.Arena][at.Offset]
		}
	}
}
