package arena

import (
	"cmp"
	"context"
	"slices"
)

// asItComes places buffers when they begin, each in the lowest gap between those that live. It needs little memory and
// takes any number of buffers; gaps in lives stay unused. When the context ends, it places the rest above those that live.
func asItComes(ctx context.Context, buffers []Buffer) []int64 {
	whole := make([]Buffer, len(buffers))
	copy(whole, buffers)
	for i := range whole {
		whole[i].Gaps = nil
	}
	all, offsets := pieces(whole), make([]int64, len(buffers))
	var live []int32 // by offset
	find := func(offset int64) int {
		at, _ := slices.BinarySearchFunc(live, offset, func(b int32, o int64) int { return cmp.Compare(offsets[b], o) })
		return at
	}
	for _, e := range events(all) {
		b := all[e.piece].buffer
		if !e.begin {
			at := find(offsets[b])
			live = slices.Delete(live, at, at+1)
			continue
		}
		offset, at, align := int64(0), 0, int64(max(buffers[b].Align, 1))
		if len(live) > 0 && ctx.Err() != nil {
			at = len(live) - 1
			offset = offsets[live[at]]
		}
		for ; at < len(live) && offsets[live[at]] < offset+int64(buffers[b].Size); at++ {
			offset = roundUp(offsets[live[at]]+int64(buffers[live[at]].Size), align)
		}
		offsets[b] = offset
		live = slices.Insert(live, at, b)
	}
	return offsets
}

// laid is a range of the arena that is taken in a section.
type laid struct {
	buffer int32
	lo, hi int64
}

// span is a range of offsets: from from+1 to to-1.
type span struct{ from, to int64 }

// greedy places buffers one after the other.
type greedy struct {
	p       *problem
	offsets []int64
	laid    [][]laid // by section
	barred  []span
	seen    []int32 // by buffer: for whom it was barred last
}

// fit places all items in their order, each as low as it can lie, or in the gap that is the least too large for it. It
// returns false when it was interrupted.
func (p *problem) fit(ctx context.Context, items []int32, best bool) ([]int64, bool) {
	g := greedy{p: p, offsets: make([]int64, len(p.size)), laid: make([][]laid, len(p.sections)), seen: make([]int32, len(p.size))}
	for n, b := range items {
		if ctx.Err() != nil {
			return nil, false
		}
		g.bar(b, int32(n+1))
		offset := g.lowest(p.align[b], best)
		g.offsets[b] = offset
		for _, c := range p.cells[b] {
			g.laid[c.section] = append(g.laid[c.section], laid{b, offset + c.lo, offset + c.hi})
		}
	}
	return g.offsets, true
}

// bar finds the offsets at which a buffer would overlap others.
func (g *greedy) bar(b, turn int32) {
	g.barred = g.barred[:0]
	for _, c := range g.p.cells[b] {
		for _, l := range g.laid[c.section] {
			if g.p.plain && g.seen[l.buffer] == turn { // in every section the same
				continue
			}
			g.seen[l.buffer] = turn
			g.barred = append(g.barred, span{l.lo - c.hi, l.hi - c.lo})
		}
	}
	slices.SortFunc(g.barred, func(a, b span) int { return cmp.Compare(a.from, b.from) })
}

// lowest returns the offset to take: the lowest, or the lowest in the smallest range that is not barred.
func (g *greedy) lowest(align int64, best bool) int64 {
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
