package tbuddy

// Alloc takes a block of 2^order pages and returns its first page, a multiple of 2^order. It fails when there is no
// such block, or when the order is below 0 or above the height.
//
// Scatter chooses among the suitable blocks: threads with different values look in different places. 0 prefers the
// lowest page of the smallest order that has a block.
func (t *Tree) Alloc(order int, scatter uint64) (page int, ok bool) {
	if order < 0 || order > t.height {
		return 0, false
	}
	if t.beginSoleUse() {
		defer t.endSoleUse()
		return t.allocAlone(order, scatter)
	}
	for tries := 1; ; tries++ {
		before := t.moved.Load()
		if from := t.claimOrder(order); from >= 0 {
			return t.cutOffBlock(order, from, scatter), true
		}
		if t.listedOrders(1)>>order == 0 && t.moved.Load() == before {
			return 0, false
		}
		yieldSometimes(tries)
	}
}

// claimOrder takes a unit of that order, or of a larger order whose block the caller must split, and returns the order. If
// no order has a unit, it takes back its promises and returns -1.
func (t *Tree) claimOrder(order int) int {
	for from := order; from <= t.height; from++ {
		if t.stocks[from].wait() {
			return from
		}
	}
	// From the top down, so that a thread that climbs meanwhile waits for no promise that is about to be broken.
	for from := t.height; from >= order; from-- {
		t.stocks[from].signal(0, 1)
	}
	return -1
}

// cutOffBlock finds the block of order from that the caller has claimed, and cuts off its first part of the wanted order.
func (t *Tree) cutOffBlock(order, from int, scatter uint64) int {
	if from == order {
		return t.firstPageOf(t.seizeAny(order, scatter, heldBit), order)
	}
	i := t.seizeAny(from, scatter, 0)
	first := i << (from - order)
	t.splitNode(i, first)
	for cut := order; cut < from; cut++ {
		t.stocks[cut].signal(1, 1)
	}
	return t.firstPageOf(first, order)
}

// seizeAny seizes an Available node of that order. The caller has reserved a node, so one exists. Other threads may
// take a node before the caller reaches it, but then another is left. The mark is heldBit if the whole node is to be
// allocated. It is 0 if the node is to be split: then no block can be freed there.
func (t *Tree) seizeAny(order int, scatter uint64, mark uint32) int {
	for tries := 1; ; tries++ {
		i := t.findAvailable(order, scatter)
		if i != 0 && t.seizeNode(i, order, mark) {
			return i
		}
		scatter = scatter*6364136223846793005 + uint64(tries)
		yieldSometimes(tries)
	}
}

// findAvailable follows the lists of orders from the root and returns a node that was Available, 0 if others changed the
// lists on the way. Each bit of scatter decides one choice between two halves.
func (t *Tree) findAvailable(order int, scatter uint64) int {
	if t.listedOrders(1)&availableBit(order) == 0 {
		return 0
	}
	i := 1
	for range t.height - order {
		i = 2*i + int(scatter&1)
		scatter >>= 1
		if t.listedOrders(i)&availableBit(order) != 0 {
			continue
		}
		if i ^= 1; t.listedOrders(i)&availableBit(order) == 0 {
			return 0
		}
	}
	return i
}

// seizeNode makes node i Busy if it is Available, and marks it.
func (t *Tree) seizeNode(i, order int, mark uint32) bool {
	t.lock(i / 2)
	if t.listedOrders(i) != availableBit(order) {
		t.unlock(i / 2)
		return false
	}
	t.setListed(i, mark)
	t.updateUpwards(i / 2)
	return true
}

// splitNode cuts a seized node. The node first, at its beginning, becomes held; the other parts become Available. splitNode
// works upwards from first, and only at the node itself do the nodes above it list the parts. A thread that finds a
// part earlier has claimed a block of its order, and may take it.
func (t *Tree) splitNode(i, first int) {
	t.lock(first / 2)
	t.setListed(first, heldBit)
	for part := first; ; part /= 2 {
		p := part / 2
		t.setListed(part+1, availableBit(t.orderOf(part)))
		if p == i {
			t.updateUpwards(p)
			return
		}
		t.lock(p / 2)
		t.setListedAndUnlock(p, t.listedOrders(part)|t.listedOrders(part+1))
	}
}
