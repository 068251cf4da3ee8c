package learn

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// packing assigns buffers to blocks.
type packing struct {
	order   []int    // indices of items, in the order of placement
	blockOf []int    // the block of each item
	sizes   []uint64 // of the blocks, in bytes
	height  uint64   // their sum
}

// placeUncutBuffers places buffers that cannot be sub-allocations: the largest first, each in the first block that is free
// whenever the buffer needs it. Then it moves single buffers forward in the order while steps are left, and keeps an
// order that is not worse. Until setBlockOffsets an offset is the number of a block.
func (l *Layout) placeUncutBuffers(number int, items []arenaBuffer, place []allocator.Place) {
	slices.SortStableFunc(items, func(a, b arenaBuffer) int { return cmp.Compare(b.size, a.size) })
	spans := make([][]span, len(items))
	order := make([]int, len(items))
	for i := range items {
		spans[i], order[i] = items[i].neededSpans(len(place)), i
	}
	bound := lowerBoundOfBlocks(items, spans, len(place))
	best := packFirstFit(items, spans, order)
	rng := rand.New(rand.NewPCG(1, uint64(len(items))))
	for left := stepsMax; best.height > bound && left > 0; left -= len(items) {
		order = slices.Clone(best.order)
		from := 1 + rng.IntN(len(order)-1)
		moved, to := order[from], rng.IntN(from)
		order = slices.Insert(slices.Delete(order, from, from+1), to, moved)
		if other := packFirstFit(items, spans, order); other.height <= best.height {
			best = other
		}
	}
	sizes := l.blocks[number]
	for i := range items {
		m := &items[i]
		place[m.index] = allocator.Place{Arena: number, Tag: m.Tag, Size: m.Size, Offset: uint64(best.blocksBefore(best.blockOf[i]))}
	}
	slices.SortFunc(best.sizes, func(a, b uint64) int { return cmp.Compare(b, a) })
	for i, size := range best.sizes {
		if i == len(sizes) {
			sizes = append(sizes, 0)
		}
		sizes[i] = max(sizes[i], size)
	}
	l.blocks[number] = sizes
	l.Arenas[number].Bound = max(l.Arenas[number].Bound, bound)
}

// packFirstFit places items in an order, each in the first block that is free when the item needs it and whose size may serve
// it.
func packFirstFit(items []arenaBuffer, spans [][]span, order []int) packing {
	p := packing{order: order, blockOf: make([]int, len(items))}
	var taken [][]span
	for _, i := range order {
		m := &items[i]
		block := 0
		for block < len(taken) && (p.sizes[block] < m.size || !m.fitsBlockOfSize(p.sizes[block]) || doSpansOverlap(taken[block], spans[i])) {
			block++
		}
		if block == len(taken) {
			taken, p.sizes, p.height = append(taken, nil), append(p.sizes, m.size), p.height+m.size
		}
		taken[block] = append(taken[block], spans[i]...)
		p.blockOf[i] = block
	}
	return p
}

// blocksBefore returns how many blocks come before a block: those that are larger, or equally large and earlier.
func (p *packing) blocksBefore(block int) (larger int) {
	for i, size := range p.sizes {
		if size > p.sizes[block] || size == p.sizes[block] && i < block {
			larger++
		}
	}
	return larger
}

// fitsBlockOfSize reports whether a block of a size may serve the buffer. The block is at least as large as the buffer.
func (b *Buffer) fitsBlockOfSize(size uint64) bool {
	return b.BlockMax == 0 || size <= max(b.BlockMax, b.Size)
}

// doSpansOverlap reports whether two lists of spans have a time in common.
func doSpansOverlap(some, others []span) bool {
	for i := range some {
		for k := range others {
			if some[i].lower < others[k].upper && others[k].lower < some[i].upper {
				return true
			}
		}
	}
	return false
}

// lowerBoundOfBlocks returns a lower bound for the sum of the blocks of items, which are sorted from large to small: for each
// size, as many blocks of that size or more are necessary as buffers of that size or more live at one time.
func lowerBoundOfBlocks(items []arenaBuffer, spans [][]span, length int) (bound uint64) {
	live, peak := make([]int, length), 0
	for i := range items {
		for _, s := range spans[i] {
			for time := s.lower; time < s.upper; time++ {
				live[time]++
				if live[time] > peak {
					peak = live[time]
					bound += items[i].size
				}
			}
		}
	}
	return bound
}

// setBlockOffsets gives the blocks of all phases their sizes and offsets.
func (l *Layout) setBlockOffsets() {
	starts := make([][]uint64, len(l.blocks))
	for number, sizes := range l.blocks {
		for _, size := range sizes {
			starts[number] = append(starts[number], l.Arenas[number].Size)
			l.Arenas[number].Size += size
		}
	}
	for i := range l.Places {
		if place := &l.Places[i]; l.Arenas[place.Arena].Align == 0 {
			place.Offset = starts[place.Arena][place.Offset]
		}
	}
}
