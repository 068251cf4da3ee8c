package tbuddy

// Free gives a block back that Alloc returned for that order. It returns false, and changes nothing, if no such block
// is allocated. It may wait for threads that are just taking a block.
func (t *Tree) Free(page, order int) bool {
	_, ok := t.Release(page, order)
	return ok
}

// Release is Free, and returns the order of the block that is Available then: the freed one, merged with its buddies.
func (t *Tree) Release(page, order int) (merged int, ok bool) {
	if order < 0 || order > t.height || page < 0 || page >= t.pages || page&(1<<order-1) != 0 {
		return 0, false
	}
	i := t.node(page, order)
	if t.enter() {
		defer t.leave()
		return t.freeAlone(i, order)
	}
	t.lock(i / 2)
	if t.nodes[i].load()&heldBit == 0 {
		t.unlock(i / 2)
		return 0, false
	}
	t.set(i, 0)
	merged = t.give(i, order)
	t.moved.Add(1)
	return merged, true
}

// give makes a block free that is Busy and belongs to the caller, who has locked its parent; it releases the lock, and
// returns the order of the block that is Available in the end. As
// long as the block's buddy is Available it is the block of both that is given. The semaphore of that one's order
// expects it from before the buddy is taken, so that the memory is never out of the books.
func (t *Tree) give(i, order int) int {
	promised := 0 // 1: the semaphore of this order expects the block
	for tries := 1; ; tries++ {
		if i == 1 || t.listed(i^1) != available(order) {
			t.set(i, available(order))
			t.rise(i / 2)
			t.stocks[order].signal(1, promised)
			return order
		}
		t.stocks[order+1].expect()
		if t.stocks[order].tryWait() {
			t.moved.Add(1)
			t.set(i^1, 0)
			i /= 2
			t.lock(i / 2)
			t.release(i, 0)
			t.stocks[order].signal(0, promised)
			order, promised = order+1, 1
			continue
		}
		// The buddy is as good as taken: another thread has its unit and is looking for a block.
		t.stocks[order+1].signal(0, 1)
		t.rise(i / 2)
		relax(tries)
		t.lock(i / 2)
	}
}
