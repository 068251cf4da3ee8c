package allocator

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// ghostsMax bounds what is remembered of evicted blocks.
const ghostsMax = 1024

// ghosts remembers the latest blocks that a limit or a drain took from the pool, so that a miss can say that one of
// them would have served.
type ghosts struct {
	shelf shelf
	ring  [ghostsMax + 1]struct {
		block  entry
		reason wire.Miss
		there  bool
	}
	next int32 // the oldest, to be replaced
}

// remember notes an eviction, if its reason is one that a miss can be blamed on.
func (g *ghosts) remember(e *entry, reason wire.Evict) {
	var blame wire.Miss
	switch reason {
	case wire.EvictLimit, wire.EvictAge:
		blame = wire.MissLimit
	case wire.EvictTagCap:
		blame = wire.MissTagCap
	case wire.EvictDrain, wire.EvictTrim:
		blame = wire.MissDrained
	default:
		return
	}
	g.next = g.next%ghostsMax + 1
	slot := &g.ring[g.next]
	if slot.there {
		g.shelf.take(g.next, &slot.block)
	}
	slot.block, slot.reason, slot.there = *e, blame, true
	g.shelf.put(g.next, e)
}

// blame returns why a block that would have served is gone, and forgets it: the next one may be blamed on another.
func (g *ghosts) blame(r rule, req *Request, l *limits) (wire.Miss, bool) {
	i := r.find(&g.shelf, req.Class, req, l)
	if i == 0 {
		return wire.MissNone, false
	}
	slot := &g.ring[i]
	g.shelf.take(i, &slot.block)
	slot.there = false
	return slot.reason, true
}

// drop forgets the ghosts of a class.
func (g *ghosts) drop(class Class) {
	for i := range g.ring {
		if slot := &g.ring[i]; slot.there && slot.block.class == class {
			g.shelf.take(int32(i), &slot.block)
			slot.there = false
		}
	}
	g.shelf.drop(class)
}
