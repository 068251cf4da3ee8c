package tbuddy

import "math/bits"

// The modes of a tree. The mode alternates between unmet and alone until two calls meet. It ends as shared.
const (
	unmet  uint32 = iota // no call is under way, and no two calls have met
	alone                // one call is under way, and has the tree to itself
	called               // the same, and other calls wait for its end
	shared               // calls have met: all use the semaphores and locks
)

// beginSoleUse reports whether the caller has the tree to itself, until endSoleUse. Otherwise the tree is shared.
func (t *Tree) beginSoleUse() bool {
	for tries := 1; ; tries++ {
		switch t.mode.Load() {
		case shared:
			return false
		case unmet:
			if t.mode.CompareAndSwap(unmet, alone) {
				return true
			}
		case alone:
			t.mode.CompareAndSwap(alone, called)
		case called:
			yieldSometimes(tries)
		}
	}
}

// endSoleUse ends the caller's sole use of the tree. If other calls wait, the tree becomes shared.
func (t *Tree) endSoleUse() {
	if !t.mode.CompareAndSwap(alone, unmet) {
		t.beginSharing(func(units int) stock { return newBulkStock(units) })
	}
}

// beginSharing gives each order its semaphore. Until then the caller has the tree to itself.
func (t *Tree) beginSharing(newStock func(units int) stock) {
	for _, units := range t.counts {
		t.stocks = append(t.stocks, newStock(units))
	}
	t.mode.Store(shared)
}

// allocAlone is Alloc for a caller that has the tree to itself.
func (t *Tree) allocAlone(order int, scatter uint64) (page int, ok bool) {
	fits := t.listedOrders(1) >> order << order
	if fits == 0 {
		return 0, false
	}
	from := bits.TrailingZeros32(fits)
	i := t.findAvailable(from, scatter)
	first := i << (from - order)
	t.counts[from]--
	t.nodes[first].word = heldBit
	for cut, part := order, first; cut < from; cut, part = cut+1, part/2 {
		t.nodes[part+1].word = availableBit(cut)
		t.counts[cut]++
	}
	t.updateUpwardsAlone(first / 2)
	return t.firstPageOf(first, order), true
}

// freeAlone is Release for a caller that has the tree to itself.
func (t *Tree) freeAlone(i, order int) (merged int, ok bool) {
	if t.nodes[i].word&heldBit == 0 {
		return 0, false
	}
	for i > 1 && t.nodes[i^1].word == availableBit(order) {
		t.nodes[i].word, t.nodes[i^1].word = 0, 0
		t.counts[order]--
		i, order = i/2, order+1
	}
	t.nodes[i].word = availableBit(order)
	t.counts[order]++
	t.updateUpwardsAlone(i / 2)
	return order, true
}

// updateUpwardsAlone is updateUpwards for a caller that has the tree to itself.
func (t *Tree) updateUpwardsAlone(p int) {
	for ; p != 0; p /= 2 {
		list := (t.nodes[2*p].word | t.nodes[2*p+1].word) & orders
		if list == t.nodes[p].word {
			return
		}
		t.nodes[p].word = list
	}
}
