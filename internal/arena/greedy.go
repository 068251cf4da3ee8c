package arena

import (
	"cmp"
	"context"
	"slices"
)

// placeInOrderOfTime places buffers when they begin, each in the lowest gap between those that live. It needs little memory
// and takes any number of buffers. It does not use gaps in lives. When the context ends, it places the remaining
// buffers above those that live.
func placeInOrderOfTime(ctx context.Context, buffers []Buffer) []int64 {
	whole := make([]Buffer, len(buffers))
	copy(whole, buffers)
	for i := range whole {
		whole[i].Gaps = nil
	}
	all, offsets := cutAtGaps(whole), make([]int64, len(buffers))
	var live []int32 // by offset
	find := func(offset int64) int {
		index, _ := slices.BinarySearchFunc(live, offset, func(b int32, o int64) int { return cmp.Compare(offsets[b], o) })
		return index
	}
	for _, e := range beginAndEndEvents(all) {
		b := all[e.piece].buffer
		if !e.begin {
			index := find(offsets[b])
			live = slices.Delete(live, index, index+1)
			continue
		}
		offset, index, align := int64(0), 0, int64(max(buffers[b].Align, 1))
		if len(live) > 0 && ctx.Err() != nil {
			index = len(live) - 1
			offset = offsets[live[index]]
		}
		for ; index < len(live) && offsets[live[index]] < offset+int64(buffers[b].Size); index++ {
			offset = roundUp(offsets[live[index]]+int64(buffers[live[index]].Size), align)
		}
		offsets[b] = offset
		live = slices.Insert(live, index, b)
	}
	return offsets
}

// placedRange is a range of the arena that is occupied in a section.
type placedRange struct {
	buffer int32
	lo, hi int64
}

// span is a range of offsets, from from+1 to to-1.
type span struct{ from, to int64 }

// greedy places buffers one after the other.
type greedy struct {
	p       *problem
	offsets []int64
	placed  [][]placedRange // by section
	barred  []span
	seen    []int32 // by buffer: the turn in which it was barred last
}

// greedyFit places all items in their order, each at the lowest offset, or with best in the smallest gap that is large
// enough. It returns false if the context ended.
func (p *problem) greedyFit(ctx context.Context, items []int32, best bool) ([]int64, bool) {
	g := greedy{p: p, offsets: make([]int64, len(p.size)), placed: make([][]placedRange, len(p.sections)), seen: make([]int32, len(p.size))}
	for n, b := range items {
		if ctx.Err() != nil {
			return nil, false
		}
		g.findBarredOffsets(b, int32(n+1))
		offset := g.chooseOffset(p.align[b], best)
		g.offsets[b] = offset
		for _, c := range p.cells[b] {
			g.placed[c.section] = append(g.placed[c.section], placedRange{b, offset + c.lo, offset + c.hi})
		}
	}
	return g.offsets, true
}

// findBarredOffsets finds the offsets at which a buffer would overlap others.
func (g *greedy) findBarredOffsets(b, turn int32) {
	g.barred = g.barred[:0]
	for _, c := range g.p.cells[b] {
		for _, l := range g.placed[c.section] {
			if g.p.plain && g.seen[l.buffer] == turn { // its range is the same in every section
				continue
			}
			g.seen[l.buffer] = turn
			g.barred = append(g.barred, span{l.lo - c.hi, l.hi - c.lo})
		}
	}
	slices.SortFunc(g.barred, func(a, b span) int { return cmp.Compare(a.from, b.from) })
}

// chooseOffset returns the lowest offset, or with best the lowest offset in the smallest range that is not barred.
func (g *greedy) chooseOffset(align int64, best bool) int64 {
	offset, found, least := int64(0), int64(-1), int64(1<<62)
	for _, s := range g.barred {
		if room := s.from - offset; room >= 0 {
			if !best {
				return offset
			}
			if room < least {
				found, least = offset, room
			}
		}
		offset = max(offset, roundUp(max(s.to, 0), align))
	}
	if found >= 0 {
		return found
	}
	return offset
}
