package tbuddy

import (
	"errors"
	"fmt"
	"slices"
)

// Validate checks every invariant of the package comment. No other call may be in progress.
func (t *Tree) Validate() error {
	v := validation{tree: t, free: make([]int, t.height+1)}
	if t.nodes[0].load() != 0 {
		v.addError(0, "the root's parent is locked")
	}
	v.checkNode(1, t.height, false)
	if t.mode.Load() != shared {
		if !slices.Equal(t.counts, v.free) {
			v.addError(0, "%v blocks are Available by order, counted as %v", v.free, t.counts)
		}
		return errors.Join(v.found...)
	}
	for order, s := range t.stocks {
		if s.units() != v.free[order] || !s.isAtRest() {
			v.addError(0, "order %d: %d blocks are Available, the semaphore counts %d, at rest %v", order, v.free[order], s.units(), s.isAtRest())
		}
	}
	return errors.Join(v.found...)
}

type validation struct {
	tree  *Tree
	free  []int // Available blocks by order
	found []error
}

func (v *validation) addError(i int, format string, args ...any) {
	v.found = append(v.found, fmt.Errorf("tbuddy: node %d: "+format, append([]any{i}, args...)...))
}

// checkNode checks node i and the nodes below it. taken says that a block around the node is free or allocated as a whole.
func (v *validation) checkNode(i, order int, taken bool) {
	t := v.tree
	word := t.nodes[i].load()
	free, held := word&orders == availableBit(order), word&heldBit != 0
	page := t.firstPageOf(i, order)
	switch {
	case word&lockBit != 0:
		v.addError(i, "locked")
	case taken && word != 0:
		v.addError(i, "not Busy in a block that is free or allocated as a whole: %#x", word)
	case held && word != heldBit:
		v.addError(i, "allocated and not Busy: %#x", word)
	case (free || held) && page+1<<order > t.pages:
		v.addError(i, "beyond the last page")
	case free && i > 1 && t.listedOrders(i^1) == availableBit(order):
		v.addError(i, "it and its buddy are Available")
	}
	if free {
		v.free[order]++
	}
	taken = taken || free || held
	if order == 0 {
		if !taken && page < t.pages {
			v.addError(i, "page %d is neither free nor allocated", page)
		}
		return
	}
	if below := t.listedOrders(2*i) | t.listedOrders(2*i+1); !free && below != word&orders {
		v.addError(i, "lists orders %#x, its halves list %#x", word&orders, below)
	}
	v.checkNode(2*i, order-1, taken)
	v.checkNode(2*i+1, order-1, taken)
}
