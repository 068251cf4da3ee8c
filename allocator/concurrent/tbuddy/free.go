package tbuddy

// Free gives a block back that Alloc returned for that order. It returns false, and changes nothing, if no such block
// is allocated. It may wait for threads that are just taking a block.
func (t *Tree) Free(page, order int) bool {
	_, ok := t.Release(page, order)
	return ok
}

// Release frees a block as Free does, and returns the order of the block that is Available afterwards: the freed block,
// merged with its buddies.
func (t *Tree) Release(page, order int) (merged int, ok bool) {
	if order < 0 || order > t.height || page < 0 || page >= t.pages || page&(1<<order-1) != 0 {
		return 0, false
	}
	i := t.nodeOf(page, order)
	if t.beginSoleUse() {
		defer t.endSoleUse()
		return t.freeAlone(i, order)
	}
	t.lock(i / 2)
	if t.nodes[i].load()&heldBit == 0 {
		t.unlock(i / 2)
		return 0, false
	}
	t.setListed(i, 0)
	merged = t.mergeAndFree(i, order)
	t.moved.Add(1)
	return merged, true
}

// mergeAndFree frees a Busy block of the caller, which has locked the block's parent. It releases the lock and returns
// the order of the block that is Available in the end. While the buddy is Available, it takes the buddy and frees the
// block of both instead. It announces that block to the semaphore of its order before it takes the buddy, so that some
// semaphore counts or expects the memory at any time.
func (t *Tree) mergeAndFree(i, order int) int {
	promised := 0 // 1: the semaphore of this order expects the block
	for tries := 1; ; tries++ {
		if i == 1 || t.listedOrders(i^1) != availableBit(order) {
			t.setListed(i, availableBit(order))
			t.updateUpwards(i / 2)
			t.stocks[order].signal(1, promised)
			return order
		}
		t.stocks[order+1].promiseUnit()
		if t.stocks[order].tryWait() {
			t.moved.Add(1)
			t.setListed(i^1, 0)
			i /= 2
			t.lock(i / 2)
			t.setListedAndUnlock(i, 0)
			t.stocks[order].signal(0, promised)
			order, promised = order+1, 1
			continue
		}
		// Another thread has the buddy's unit, and will take the buddy.
		t.stocks[order+1].signal(0, 1)
		t.updateUpwards(i / 2)
		yieldSometimes(tries)
		t.lock(i / 2)
	}
}
