// Package tbuddy is the tree buddy allocator of seed 001 §4.1: it hands out blocks of 2^order pages, aligned to their
// size, to many threads at once. It knows pages by number and sees no memory. It is pure: no device, no clock, no I/O,
// no goroutine. The same calls by one thread give the same answers.
//
// # Definition
//
// A block of order n is 2^n pages. A static binary tree has one node for each possible block; the root's
// order is the height. A node is
//
//	Available   the block is free as a whole; all below is Busy
//	Partial     the block is not free as a whole, but something below is Available
//	Busy        nothing in it is free
//
// Each order has a semaphore that counts its Available blocks. A thread that allocates first waits for a unit of its
// order, and then looks for the block (two stages). There are as many Available blocks as units, plus one for each unit
// whose thread still looks, so each thread finds a block in the end. A thread that gets no unit must grow: it takes a
// block of the next order, gives one half of it to the semaphore and keeps the other. A thread that frees a block whose
// buddy is Available takes the buddy's unit and the buddy, and frees the block of both instead (errata of seed 001:
// merging continues upwards).
//
// # Invariants
//
//   - Buddies are never both Available, and all below an Available or allocated node is Busy.
//   - The orders that a node's word lists are those of the Available blocks in it: what the words of its halves list.
//   - At rest the semaphore of each order counts its Available blocks, and expects and reserves none.
//   - At most two nodes are locked by one thread: a node and its parent, the node first.
//   - Alloc fails only when at some moment during the call no free block was large enough.
//
// # Where this departs from the seed
//
// A word lists which orders are Available below, not only that something is. So a search goes straight down and costs
// O(height). With Partial alone it might have to try every partial subtree.
//
// The seed tries to merge whenever the buddy's semaphore gives a unit, and returns the unit if the buddy is Busy. Here
// a thread looks at the buddy first, with the parent locked. So of two buddies that are freed at the same time, the
// second sees the first. If the buddy is Available and all units of its order are promised to threads that have not
// taken their blocks yet, the free waits for them: otherwise an unmerged pair could stay.
//
// While a merge holds the unit of a buddy, that memory is in no semaphore, and an allocation that climbs past it would
// wrongly fail. So a merge is announced to the semaphore of the next order, as growth is, before it takes the unit. And
// an allocation that has found nothing at any order tries again if the root lists something large enough, or if
// anything was freed or merged meanwhile: it may have passed an order just before a block came there, and a higher
// order just after another block left. A block is listed before it is signalled, and so before its free ends. A block
// that is no longer listed was allocated, or taken by a merge.
//
// The seed has thousands of threads; a host may have one. Until two calls meet, each call has the tree to itself and
// takes the same block in plain steps. The first two calls that meet make the tree shared for good.
package tbuddy

import (
	"fmt"
	"math/bits"
	"sync/atomic"
)

// MaxPages is the most pages that a tree can have.
const MaxPages = 1 << 24

// Tree is a buddy allocator. Make one with New. All methods but Validate may be called from any thread.
type Tree struct {
	pages  int
	height int
	nodes  []node // [1] is the root, the halves of i are 2i and 2i+1; [0] is locked for the root's parent
	mode   atomic.Uint32
	counts []int   // Available blocks by order, until the tree is shared
	stocks []stock // by order, from then on
	_      [64]byte
	moved  atomic.Uint64 // frees that have ended, plus buddies that frees have taken
}

// New returns a tree over a number of pages, all free. The number need not be a power of two: pages beyond it are never
// handed out. New panics unless it is 1 to MaxPages.
func New(pages int) *Tree {
	if pages < 1 || pages > MaxPages {
		panic(fmt.Sprintf("tbuddy: %d pages are outside 1 to %d", pages, MaxPages))
	}
	t := &Tree{pages: pages, height: bits.Len(uint(pages - 1))}
	t.nodes = make([]node, 2<<t.height)
	t.counts = make([]int, t.height+1)
	for page := 0; page < pages; {
		order := min(bits.Len(uint(pages-page))-1, bits.TrailingZeros(uint(page)|1<<t.height))
		i := t.nodeOf(page, order)
		t.nodes[i].word = availableBit(order)
		t.updateUpwardsAlone(i / 2)
		t.counts[order]++
		page += 1 << order
	}
	return t
}

// Pages returns how many pages the tree has.
func (t *Tree) Pages() int { return t.pages }

// Height returns the order of the root: no block is larger.
func (t *Tree) Height() int { return t.height }

// LargestFree returns the largest order that has a free block, -1 if no order has one. It costs O(height), and is exact
// when no other thread allocates or frees.
func (t *Tree) LargestFree() int {
	if t.beginSoleUse() {
		defer t.endSoleUse()
		return bits.Len32(t.listedOrders(1)) - 1
	}
	for order := t.height; order >= 0; order-- {
		if t.stocks[order].units() > 0 {
			return order
		}
	}
	return -1
}

// FreePages returns how many pages are free. It costs O(height), and is exact when no other thread allocates or frees.
func (t *Tree) FreePages() int {
	pages := 0
	if t.beginSoleUse() {
		defer t.endSoleUse()
		for order, n := range t.counts {
			pages += n << order
		}
		return pages
	}
	for order, s := range t.stocks {
		pages += s.units() << order
	}
	return pages
}

// nodeOf returns the node of a block.
func (t *Tree) nodeOf(page, order int) int { return 1<<(t.height-order) + page>>order }

// orderOf returns the order of a node.
func (t *Tree) orderOf(i int) int { return t.height + 1 - bits.Len(uint(i)) }

// firstPageOf returns the first page of a node of that order.
func (t *Tree) firstPageOf(i, order int) int { return (i - 1<<(t.height-order)) << order }
