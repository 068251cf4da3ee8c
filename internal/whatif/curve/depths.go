package curve

import (
	"math/bits"
	"slices"
)

// depths keeps blocks in the order in which they were cached. The depth of a block is the sum of the bytes of all
// blocks cached after it that are still there, plus its own. depths maintains the present and the greatest depth of
// each block. It is a binary tree; what is to be added to a whole subtree waits at the subtree's root. Calls cost O(log
// n), except the rare ones that make room.
//
// The greatest depth decides, not the present one: a limit smaller than the greatest depth evicted the block at that
// time, and the block does not come back to the cache when blocks above it are removed.
//
// Memory is bounded: if there are too many blocks, neighbours share a slot, and deeper slots hold more blocks.
type depths struct {
	nodes []node // of an implicit tree: the children of i are 2i and 2i+1; the second half are leaves; 0 is unused
	slots []slot // the oldest first; slot i has leaf i
}

// slot is a group of neighbouring blocks in the order of caching.
type slot struct {
	firstOrder uint64 // order of its oldest block
	blocks     int    // that are still there
	bytes      float64
}

// node holds what is still to be added to its subtree: a sum, and the largest value that the sum has reached. In a leaf
// these are the depth and the greatest depth of the slot's blocks, or their means if there are several. Floats hold
// sums of bytes exactly up to 2⁵³ and never overflow.
type node struct{ sum, peak float64 }

const (
	leavesMin = 64
	nodeBytes = 16
	slotBytes = 24
)

// addToSubtree adds to a subtree a value, which reached peak on the way to sum.
func (n *node) addToSubtree(sum, most float64) {
	n.peak = max(n.peak, n.sum+most)
	n.sum += sum
}

func (d *depths) leafCount() int { return len(d.nodes) / 2 }

// pushBlock caches a block on top of all others; its order is above theirs. The other blocks are then deeper by weight; the
// depth of the new block is own. At most most slots are used, a power of two.
func (d *depths) pushBlock(order uint64, own, weight float64, most int) {
	if len(d.slots) == d.leafCount() {
		d.makeRoomForSlots(most)
	}
	d.nodes[1].addToSubtree(weight, weight)
	leaf := d.leafCount() + len(d.slots)
	d.pushDownPending(leaf, 0)
	d.nodes[leaf] = node{own, own}
	d.slots = append(d.slots, slot{order, 1, weight})
}

// slotOf returns the slot of a cached block.
func (d *depths) slotOf(order uint64) int {
	low, high := 0, len(d.slots)
	for high-low > 1 {
		if middle := (low + high) / 2; d.slots[middle].firstOrder <= order {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// popBlock removes a block, and returns its greatest depth. Blocks that were cached before it are then less deep by weight.
// On average half of the blocks in its own slot are among them.
func (d *depths) popBlock(order uint64, weight float64) float64 {
	i := d.slotOf(order)
	leaf := d.leafCount() + i
	d.pushDownPending(leaf, -weight)
	s := &d.slots[i]
	s.blocks--
	s.bytes -= weight
	d.nodes[leaf].sum -= weight / 2
	return d.nodes[leaf].peak
}

// pushDownPending adds what waits on the way from the root to a node to the nodes below, and adds a value to all leaves before
// the node.
func (d *depths) pushDownPending(to int, before float64) {
	for depth := bits.Len(uint(to)) - 1; depth > 0; depth-- {
		index := to >> depth
		n, left, right := &d.nodes[index], &d.nodes[2*index], &d.nodes[2*index+1]
		if n.sum != 0 || n.peak != 0 {
			left.addToSubtree(n.sum, n.peak)
			right.addToSubtree(n.sum, n.peak)
			*n = node{}
		}
		if to>>(depth-1)&1 == 1 && before != 0 {
			left.addToSubtree(before, 0)
		}
	}
}

// pushAllPendingDown adds everything that waits to the leaves.
func (d *depths) pushAllPendingDown() {
	for index := 1; index < d.leafCount(); index++ {
		n := d.nodes[index]
		d.nodes[2*index].addToSubtree(n.sum, n.peak)
		d.nodes[2*index+1].addToSubtree(n.sum, n.peak)
		d.nodes[index] = node{}
	}
}

// makeRoomForSlots leaves at least half of the slots unused: it removes slots without blocks, adds slots up to the allowed
// number, and joins neighbours.
func (d *depths) makeRoomForSlots(most int) {
	d.pushAllPendingDown()
	var slots []slot
	var values []node
	for i, s := range d.slots {
		if s.blocks > 0 {
			slots, values = append(slots, s), append(values, d.nodes[d.leafCount()+i])
		}
	}
	leaves := leavesMin
	for leaves < 2*len(slots) && leaves < most {
		leaves *= 2
	}
	for share := 1.0 / 1024; 2*len(slots) > leaves; share *= 2 {
		slots, values = joinNeighbours(slots, values, share)
	}
	d.nodes, d.slots = make([]node, 2*leaves), append(make([]slot, 0, leaves), slots...)
	copy(d.nodes[leaves:], values)
}

// joinNeighbours joins neighbouring slots whose bytes together are at most a share of the depth of the uppermost of
// them.
func joinNeighbours(slots []slot, values []node, share float64) ([]slot, []node) {
	kept := len(slots) - 1 // index of the present group, in place
	for i := kept - 1; i >= 0; i-- {
		s, group := slots[i], &slots[kept]
		if group.bytes+s.bytes > share*values[kept].sum {
			kept--
			slots[kept], values[kept] = s, values[i]
			continue
		}
		older, newer := float64(s.blocks), float64(group.blocks)
		values[kept].sum = (older*values[i].sum + newer*values[kept].sum) / (older + newer)
		values[kept].peak = (older*values[i].peak + newer*values[kept].peak) / (older + newer)
		*group = slot{s.firstOrder, s.blocks + group.blocks, s.bytes + group.bytes}
	}
	return slots[kept:], values[kept:]
}

// clone returns an independent copy.
func (d *depths) clone() depths {
	return depths{slices.Clone(d.nodes), slices.Clone(d.slots)}
}

// clearBlocks removes all blocks. It keeps the slots with their positions and greatest depths.
func (d *depths) clearBlocks() {
	d.pushAllPendingDown()
	for i := range d.slots {
		d.slots[i].blocks, d.slots[i].bytes = 0, 0
	}
}

// restoreBlock adds a block to its slot again.
func (d *depths) restoreBlock(order uint64, weight float64) {
	s := &d.slots[d.slotOf(order)]
	s.blocks++
	s.bytes += weight
}

// recomputeDepths computes the depths after blocks were restored. After sampling, each block represents stands blocks.
func (d *depths) recomputeDepths(stands float64) {
	above := 0.0
	for i := len(d.slots) - 1; i >= 0; i-- {
		s := &d.slots[i]
		own := s.bytes / 2
		if s.blocks == 1 {
			own = s.bytes / stands
		}
		d.nodes[d.leafCount()+i].sum = above + own
		above += s.bytes
	}
}
