package carve

import (
	"fmt"
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/tbuddy"
)

// pages is one slab under the buddy system: its tree, the counts of free blocks, and the history.
type pages struct {
	tree    *tbuddy.Tree
	shift   int                // a page is 1 << shift bytes
	tally   *Tally             // free blocks of all slabs
	free    [maxHeight + 1]int // number of free blocks, by order
	orders  uint32             // a bit for each order with free blocks
	history history
}

const maxHeight = 24 // height of a tree with tbuddy.MaxPages pages

// newPages returns a slab of count pages. If count is not a power of two, the largest blocks come first.
func newPages(count, shift int, t *Tally) pages {
	p := pages{tree: tbuddy.New(count), shift: shift, tally: t}
	p.history = newHistory(p.tree.Height())
	for order := range p.free {
		p.countFreeBlocks(order, count>>order&1)
	}
	return p
}

// removeFromTally takes the free blocks of a slab out of the tally, before the slab is removed.
func (p *pages) removeFromTally() {
	for order, n := range p.free {
		if n != 0 {
			p.countFreeBlocks(order, -n)
		}
	}
}

// countFreeBlocks notes that an order has n more free blocks.
func (p *pages) countFreeBlocks(order, n int) {
	p.free[order] += n
	p.orders &^= 1 << order
	if p.free[order] != 0 {
		p.orders |= 1 << order
	}
	p.tally.AddRanges(1<<(p.shift+order), n)
}

// takeBlock takes a block of 2^order pages. The tree cuts the block from a free block of the lowest order that is large
// enough.
func (p *pages) takeBlock(order int) (page int, ok bool) {
	page, ok = p.tree.Alloc(order, 0)
	if !ok {
		return 0, false
	}
	p.countCutBlock(order, order+bits.TrailingZeros32(p.orders>>order))
	return page, true
}

// freeBlock frees a block. It returns false if there is no such block.
func (p *pages) freeBlock(page, order int) bool {
	merged, ok := p.tree.Release(page, order)
	if ok {
		p.countFreedBlock(order, merged)
	}
	return ok
}

// countCutBlock notes that a block of an order was cut from a block of order from; the buddies that were split off are
// free.
func (p *pages) countCutBlock(order, from int) {
	p.countFreeBlocks(from, -1)
	for ; order < from; order++ {
		p.countFreeBlocks(order, 1)
	}
}

// countFreedBlock notes that a block of an order was freed, and merged with free buddies into a block of order merged.
func (p *pages) countFreedBlock(order, merged int) {
	for ; order < merged; order++ {
		p.countFreeBlocks(order, -1)
	}
	p.countFreeBlocks(merged, 1)
}

// mergedOrder returns the order of the block into which a taken block would be merged if it were freed.
func (p *pages) mergedOrder(page, order int) int {
	for ; order < p.tree.Height() && p.tree.State(page&^(1<<order-1)^1<<order, order) == tbuddy.Available; order++ {
	}
	return order
}

// largestFreeRank returns the largest order with a free block, plus one; 0 when all blocks are taken.
func (p *pages) largestFreeRank() uint8 { return uint8(bits.Len32(p.orders)) }

// orderOf returns the smallest order whose blocks have size bytes.
func orderOf(size uint64, shift int) int { return bits.Len64((max(size, 1) - 1) >> shift) }

// validate checks the tree and, against it, the counts, and adds the free blocks to a tally.
func (p *pages) validate(want *Tally) error {
	if err := p.tree.Validate(); err != nil {
		return err
	}
	var free [maxHeight + 1]int
	p.eachFreeBlock(0, p.tree.Height(), func(_, order int) {
		free[order]++
		want.AddRanges(1<<(p.shift+order), 1)
	})
	if free != p.free {
		return fmt.Errorf("free blocks by order are counted as %v and are %v", p.free, free)
	}
	return nil
}

// eachFreeBlock visits the free blocks within a block.
func (p *pages) eachFreeBlock(page, order int, visit func(page, order int)) {
	if page >= p.tree.Pages() {
		return
	}
	switch p.tree.State(page, order) {
	case tbuddy.Available:
		visit(page, order)
	case tbuddy.Partial:
		p.eachFreeBlock(page, order-1, visit)
		p.eachFreeBlock(page+1<<(order-1), order-1, visit)
	}
}
