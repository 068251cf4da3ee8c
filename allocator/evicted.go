package allocator

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// evictedMax bounds how many evicted blocks are remembered.
const evictedMax = 1024

// recentlyEvicted remembers the latest blocks that a limit or a drain took from the pool, so that a miss can name the
// reason why a block that would have served is gone.
type recentlyEvicted struct {
	blocks freeList
	ring   []evictedBlock // grows up to evictedMax: most pools evict nothing; [0] is none
	next   int32          // index of the latest; the element after it is replaced next
}

type evictedBlock struct {
	block  entry
	reason wire.Miss
	there  bool // it is in blocks
}

func newRecentlyEvicted(byTag bool) *recentlyEvicted {
	return &recentlyEvicted{blocks: newFreeList(byTag), ring: make([]evictedBlock, 1)}
}

// rememberEviction notes an eviction if its reason can explain a miss.
func (r *recentlyEvicted) rememberEviction(e *entry, reason wire.Evict) {
	var blame wire.Miss
	switch reason {
	case wire.EvictLimit, wire.EvictAge, wire.EvictProportion, wire.EvictOutgrown:
		blame = wire.MissLimit
	case wire.EvictTagCap:
		blame = wire.MissTagCap
	case wire.EvictDrain, wire.EvictTrim, wire.EvictRelief, wire.EvictTimed:
		blame = wire.MissDrained
	default:
		return
	}
	r.rememberMissReason(e, blame)
}

// rememberMissReason notes the reason for a miss that the block would have served.
func (r *recentlyEvicted) rememberMissReason(e *entry, blame wire.Miss) {
	if r.next = r.next%evictedMax + 1; int(r.next) == len(r.ring) {
		r.ring = append(r.ring, evictedBlock{})
	}
	slot := &r.ring[r.next]
	if slot.there {
		r.blocks.removeBlock(r.next, &slot.block)
	}
	slot.block, slot.reason, slot.there = *e, blame, true
	r.blocks.addBlock(r.next, e)
}

// explainMiss returns why a block that would have served is gone, and forgets that block, so that each explains one miss.
func (r *recentlyEvicted) explainMiss(rule rule, req *Request, l *limits) (wire.Miss, bool) {
	i := rule.findBlock(&r.blocks, req.Class, req, l)
	if i == 0 {
		return wire.MissNone, false
	}
	slot := &r.ring[i]
	r.blocks.removeBlock(i, &slot.block)
	slot.there = false
	return slot.reason, true
}

// forgetClass forgets the blocks of a class.
func (r *recentlyEvicted) forgetClass(class Class) {
	for i := range r.ring {
		if slot := &r.ring[i]; slot.there && slot.block.class == class {
			r.blocks.removeBlock(int32(i), &slot.block)
			slot.there = false
		}
	}
	r.blocks.forgetClass(class)
}
