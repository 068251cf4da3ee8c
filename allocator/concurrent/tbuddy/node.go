package tbuddy

import (
	"runtime"
	"sync/atomic"
)

// node is one word. Bit n says that a block of order n in the node is Available. The bit of the node's own order stands
// alone; the other bits are those of its halves. A node's lock protects the words of its two halves, except their lock
// bits. A thread that changes a node and its parent holds both locks; no change needs more.
//
// It is a plain word, because a call that has the tree to itself (alone.go) needs no atomic stores.
type node struct{ word uint32 }

func (n *node) load() uint32 { return atomic.LoadUint32(&n.word) }

func (n *node) store(value uint32) { atomic.StoreUint32(&n.word, value) }

func (n *node) compareAndSwap(old, value uint32) bool {
	return atomic.CompareAndSwapUint32(&n.word, old, value)
}

const (
	lockBit = 1 << 31
	heldBit = 1 << 30 // allocated as this block
	orders  = 1<<25 - 1
)

// State says what is free in a node.
type State uint8

// The states of a node.
const (
	Busy State = iota
	Partial
	Available
)

// String returns the state's name.
func (s State) String() string { return [...]string{"Busy", "Partial", "Available"}[s] }

// State returns the state of a block of that order, which begins at that page and lies in the tree. It panics when
// there is no such block.
func (t *Tree) State(page, order int) State {
	n := &t.nodes[t.nodeOf(page, order)] // before enter, because node may panic
	alone := t.beginSoleUse()
	listed := n.load() & orders
	if alone {
		t.endSoleUse()
	}
	switch listed {
	case 0:
		return Busy
	case availableBit(order):
		return Available
	}
	return Partial
}

func availableBit(order int) uint32 { return 1 << order }

// listedOrders returns the orders that are Available in node i.
func (t *Tree) listedOrders(i int) uint32 { return t.nodes[i].load() & orders }

// lock locks node i for a few steps of its owner. A waiting thread yields.
func (t *Tree) lock(i int) {
	for tries := 1; ; tries++ {
		n := &t.nodes[i]
		if old := n.load(); old&lockBit == 0 && n.compareAndSwap(old, old|lockBit) {
			return
		}
		yieldSometimes(tries)
	}
}

func (t *Tree) unlock(i int) { atomic.AndUint32(&t.nodes[i].word, ^uint32(lockBit)) }

// yieldSometimes is called between two tries that wait for other threads. It lets them run at every 16th try.
func yieldSometimes(tries int) {
	if tries%16 == 0 {
		runtime.Gosched()
	}
}

// setListed sets which orders node i lists, and whether the node is held. The caller holds the parent's lock. The lock bit of
// node i may change meanwhile, and stays as it is.
func (t *Tree) setListed(i int, value uint32) {
	for n := &t.nodes[i]; ; {
		if old := n.load(); n.compareAndSwap(old, old&lockBit|value) {
			return
		}
	}
}

// setListedAndUnlock sets which orders node i lists, and unlocks the node. The caller holds the parent's lock as well, so no
// other thread changes the word.
func (t *Tree) setListedAndUnlock(i int, list uint32) { t.nodes[i].store(list) }

// updateUpwards updates the list of node p, which the caller has locked, and of the nodes above it, from the lists of their
// halves. It ends at the first list that does not change, and releases the lock.
func (t *Tree) updateUpwards(p int) {
	for p != 0 {
		list := t.listedOrders(2*p) | t.listedOrders(2*p+1)
		if list == t.listedOrders(p) {
			break
		}
		t.lock(p / 2)
		t.setListedAndUnlock(p, list)
		p /= 2
	}
	t.unlock(p)
}
