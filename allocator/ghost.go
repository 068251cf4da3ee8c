package allocator

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// ghostsMax bounds what is remembered of evicted blocks.
const ghostsMax = 1024

// ghosts remembers the latest blocks that a limit or a drain took from the pool, so that a miss can say that one of
// them would have served.
type ghosts struct {
	shelf shelf
	ring  [ghostsMax + 1]struct {
		class  Class
		tag    Tag
		reason wire.Miss
		there  bool
	}
	next int32 // the oldest, to be replaced
	made uint64
}

// remember notes an eviction, if its reason is one that a miss can be blamed on.
func (g *ghosts) remember(class Class, tag Tag, size uint64, reason wire.Evict) {
	var blame wire.Miss
	switch reason {
	case wire.EvictLimit:
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
		g.shelf.take(g.next, slot.class, slot.tag)
	}
	g.made++
	slot.class, slot.tag, slot.reason, slot.there = class, tag, blame, true
	g.shelf.put(g.next, class, tag, size, ^g.made)
}

// blame returns why a block that would have served is gone, and forgets it: the next one may be blamed on another.
func (g *ghosts) blame(r rule, class Class, req Request, l *limits) (wire.Miss, bool) {
	i := r.find(&g.shelf, class, req, l)
	if i == 0 {
		return wire.MissNone, false
	}
	slot := &g.ring[i]
	g.shelf.take(i, slot.class, slot.tag)
	slot.there = false
	return slot.reason, true
}

// drop forgets the ghosts of a class.
func (g *ghosts) drop(class Class) {
	for i := range g.ring {
		if slot := &g.ring[i]; slot.there && slot.class == class {
			g.shelf.take(int32(i), slot.class, slot.tag)
			slot.there = false
		}
	}
	g.shelf.drop(class)
}
