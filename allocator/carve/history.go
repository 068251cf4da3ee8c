package carve

// history knows which blocks of a slab were never used. A block has 2^order pages and begins at a multiple of its size,
// so blocks are the nodes of a binary tree. Two bits for each node are enough: a block is fresh if neither it nor a
// block around it was handed out as a whole, and no block within it was handed out.
type history struct {
	height int    // the order of the root, which covers the slab
	some   bitset // by node: some of the block's bytes were handed out
	whole  bitset // by node: the block was handed out as a whole
}

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n uint64) bitset { return make(bitset, (n+63)/64) }

func (b bitset) has(i uint64) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b bitset) set(i uint64)      { b[i/64] |= 1 << (i % 64) }

// addConsecutive adds n consecutive numbers, and reports whether none of them was in the set.
func (b bitset) addConsecutive(from, n uint64) (clean bool) {
	clean = true
	for n > 0 {
		count := min(n, 64-from%64)
		mask := ^uint64(0) >> (64 - count) << (from % 64)
		clean = clean && b[from/64]&mask == 0
		b[from/64] |= mask
		from, n = from+count, n-count
	}
	return clean
}

// newHistory starts a history of a slab of 2^height pages at most, all fresh.
func newHistory(height int) history {
	return history{height, newBitset(2 << height), newBitset(2 << height)}
}

// blockNumber returns the number of a block: 1 is the root, the halves of i are 2i and 2i+1.
func (h *history) blockNumber(page uint64, order int) uint64 {
	return 1<<(h.height-order) + page>>order
}

// wasHandedOut reports whether the block, or a block around it, was handed out as a whole.
func (h *history) wasHandedOut(page uint64, order int) bool {
	for node := h.blockNumber(page, order); node != 0; node /= 2 {
		if h.whole.has(node) {
			return true
		}
	}
	return false
}

// noteBytesHandedOut notes that bytes of a block are handed out.
func (h *history) noteBytesHandedOut(page uint64, order int) {
	for node := h.blockNumber(page, order); node != 0 && !h.some.has(node); node /= 2 {
		h.some.set(node)
	}
}

// noteHandedOut notes that a block is handed out, and reports whether it was fresh.
func (h *history) noteHandedOut(page uint64, order int) (fresh bool) {
	node := h.blockNumber(page, order)
	fresh = !h.some.has(node) && !h.wasHandedOut(page, order)
	h.whole.set(node)
	h.noteBytesHandedOut(page, order)
	return fresh
}
