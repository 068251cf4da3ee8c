package curve

import (
	"math/bits"
	"slices"
)

// depths keeps, for blocks in the order in which they were cached, the bytes that were cached after each and are still
// there, with its own: its depth, and the greatest depth it has had. It is a binary tree; what a whole subtree is to be
// given waits at its root. Calls cost O(log n), except the rare ones that make room.
//
// The greatest depth, not the last one, decides: a limit that a block once lay deeper than took it out of the cache,
// and it does not come back when blocks above it are taken.
//
// Memory is bounded: when there are too many blocks, neighbours share a slot, the more the deeper they lie.
type depths struct {
	nodes []node // of an implicit tree: the children of i are 2i and 2i+1, leaves are the second half; 0 is unused
	slots []slot // those used, the oldest first; slot i has leaf i
}

// slot is a stretch of the order.
type slot struct {
	first  uint64 // place in the order of its oldest block
	blocks int    // that are still there
	bytes  float64
}

// node has what its subtree is still to be given: a sum, and the greatest value that the sum has had on the way. In a
// leaf these are the depth and the greatest depth of its slot's blocks, the mean where there are several. Floats hold
// sums of bytes exactly up to 2⁵³ and never overflow.
type node struct{ sum, most float64 }

const (
	leavesMin = 64
	nodeBytes = 16
	slotBytes = 24
)

// give adds to a subtree first a value that peaks at most, then what is in n.
func (n *node) give(sum, most float64) {
	n.most = max(n.most, n.sum+most)
	n.sum += sum
}

func (d *depths) leaves() int { return len(d.nodes) / 2 }

// push caches a block on top of all others, at a place in the order beyond theirs. They lie deeper by weight then; the
// block itself begins at own. No more than most slots are used, a power of two.
func (d *depths) push(order uint64, own, weight float64, most int) {
	if len(d.slots) == d.leaves() {
		d.makeRoom(most)
	}
	d.nodes[1].give(weight, weight)
	at := d.leaves() + len(d.slots)
	d.descend(at, 0)
	d.nodes[at] = node{own, own}
	d.slots = append(d.slots, slot{order, 1, weight})
}

// slotOf returns the slot of a place in the order that was pushed.
func (d *depths) slotOf(order uint64) int {
	low, high := 0, len(d.slots)
	for high-low > 1 {
		if middle := (low + high) / 2; d.slots[middle].first <= order {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// pop takes a block out, and returns the greatest depth it has had. Those below it are higher up by weight then; of
// those in its slot that is one half.
func (d *depths) pop(order uint64, weight float64) float64 {
	i := d.slotOf(order)
	at := d.leaves() + i
	d.descend(at, -weight)
	s := &d.slots[i]
	s.blocks--
	s.bytes -= weight
	d.nodes[at].sum -= weight / 2
	return d.nodes[at].most
}

// descend brings up to date what lies on the way from the root to a node, and adds a value to all leaves before it.
func (d *depths) descend(to int, before float64) {
	for depth := bits.Len(uint(to)) - 1; depth > 0; depth-- {
		at := to >> depth
		n, left, right := &d.nodes[at], &d.nodes[2*at], &d.nodes[2*at+1]
		if n.sum != 0 || n.most != 0 {
			left.give(n.sum, n.most)
			right.give(n.sum, n.most)
			*n = node{}
		}
		if to>>(depth-1)&1 == 1 && before != 0 {
			left.give(before, 0)
		}
	}
}

// settle brings every leaf up to date.
func (d *depths) settle() {
	for at := 1; at < d.leaves(); at++ {
		n := d.nodes[at]
		d.nodes[2*at].give(n.sum, n.most)
		d.nodes[2*at+1].give(n.sum, n.most)
		d.nodes[at] = node{}
	}
}

// makeRoom leaves at least one half of the slots unused: it drops those without blocks, takes more as far as there may
// be more, and joins neighbours.
func (d *depths) makeRoom(most int) {
	d.settle()
	var slots []slot
	var values []node
	for i, s := range d.slots {
		if s.blocks > 0 {
			slots, values = append(slots, s), append(values, d.nodes[d.leaves()+i])
		}
	}
	leaves := leavesMin
	for leaves < 2*len(slots) && leaves < most {
		leaves *= 2
	}
	for share := 1.0 / 1024; 2*len(slots) > leaves; share *= 2 {
		slots, values = join(slots, values, share)
	}
	d.nodes, d.slots = make([]node, 2*leaves), append(make([]slot, 0, leaves), slots...)
	copy(d.nodes[leaves:], values)
}

// join makes one slot of neighbours that have no more than a share of the depth of the uppermost of them.
func join(slots []slot, values []node, share float64) ([]slot, []node) {
	at := len(slots) - 1 // where the present group is kept, in place
	for i := at - 1; i >= 0; i-- {
		s, group := slots[i], &slots[at]
		if group.bytes+s.bytes > share*values[at].sum {
			at--
			slots[at], values[at] = s, values[i]
			continue
		}
		mine, theirs := float64(s.blocks), float64(group.blocks)
		values[at].sum = (mine*values[i].sum + theirs*values[at].sum) / (mine + theirs)
		values[at].most = (mine*values[i].most + theirs*values[at].most) / (mine + theirs)
		*group = slot{s.first, s.blocks + group.blocks, s.bytes + group.bytes}
	}
	return slots[at:], values[at:]
}

// clone returns a copy that shares nothing.
func (d *depths) clone() depths {
	return depths{slices.Clone(d.nodes), slices.Clone(d.slots)}
}

// clear forgets all blocks, but not where they were, nor their greatest depths.
func (d *depths) clear() {
	d.settle()
	for i := range d.slots {
		d.slots[i].blocks, d.slots[i].bytes = 0, 0
	}
}

// recall puts a block back to where it was.
func (d *depths) recall(order uint64, weight float64) {
	s := &d.slots[d.slotOf(order)]
	s.blocks++
	s.bytes += weight
}

// recount works out the depths anew after blocks have been recalled, each of which stands for several.
func (d *depths) recount(stands float64) {
	above := 0.0
	for i := len(d.slots) - 1; i >= 0; i-- {
		s := &d.slots[i]
		own := s.bytes / 2
		if s.blocks == 1 {
			own = s.bytes / stands
		}
		d.nodes[d.leaves()+i].sum = above + own
		above += s.bytes
	}
}
