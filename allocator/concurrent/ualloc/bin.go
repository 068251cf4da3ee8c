package ualloc

import (
	"math/bits"
	"sync/atomic"
)

// bin is the header of one bin. The seed keeps it in the first units of the bin; here those stay unused, because the
// memory may be a device's.
type bin struct {
	// state is the class plus one in the upper half, and the free counter in the lower: the slots that are neither
	// taken nor claimed by a thread that is about to look for one in the bitmap. 0: the bin has no class, and is in its
	// chunk or on its way there.
	state atomic.Uint64
	// used has a bit per slot; slots that the class does not have count as used.
	used [bitmapWords]atomic.Uint64

	next     atomic.Pointer[bin] // stays when the bin is unlinked, for readers that have reached the bin
	previous *bin                // guarded by the list's mutex
	linked   bool                // guarded by the list's mutex

	chunk  *chunk
	index  int    // in the chunk
	goHome func() // returns the bin to its chunk; nil until that happens for the first time
}

const countBits = 32

func packState(class, count int) uint64 { return uint64(class+1)<<countBits | uint64(count) }

// unpackState returns the class and the free counter; class -1: none.
func unpackState(state uint64) (class, count int) {
	return int(state>>countBits) - 1, int(state & (1<<countBits - 1))
}

func (b *bin) loadState() (class, count int) { return unpackState(b.state.Load()) }

func (b *bin) capacity(class int) int { return binCapacity(class, b.index) }

// isEmpty says whether the bin has that class and no block.
func (b *bin) isEmpty(class int) bool { return b.state.Load() == packState(class, b.capacity(class)) }

// openForClass gives the bin a class, with its first slot taken. No other thread knows the bin.
func (b *bin) openForClass(class int) {
	n := b.capacity(class)
	for i := range b.used {
		b.used[i].Store(^uint64(0) << max(0, min(64, n-64*i)))
	}
	b.used[0].Or(1)
	b.state.Store(packState(class, n-1))
}

// claimSlot decrements the free counter, and returns how many slots are left. ok is false if the bin is exhausted or does
// not have the class.
func (b *bin) claimSlot(class int) (left int, ok bool) {
	for {
		has, count := b.loadState()
		if has != class || count == 0 {
			return 0, false
		}
		if b.state.CompareAndSwap(packState(class, count), packState(class, count-1)) {
			return count - 1, true
		}
	}
}

// takeSlot finds a zero bit and sets it. The caller has claimed a slot, so there are at least as many zero bits as
// callers. A scan misses them only if other threads free slots that it has passed and take slots ahead of it, and so
// make progress.
func (b *bin) takeSlot() (slot int) {
	for {
		for i := range b.used {
			word := &b.used[i]
			for free := ^word.Load(); free != 0; free = ^word.Load() {
				bit := bits.TrailingZeros64(free)
				if word.Or(1<<bit)>>bit&1 == 0 {
					return 64*i + bit
				}
			}
		}
	}
}

// freeSlot clears a slot's bit. It returns false if the slot is not taken; if two threads free a slot, one of them
// succeeds.
func (b *bin) freeSlot(slot int) bool {
	bit := uint64(1) << (slot % 64)
	return b.used[slot/64].And(^bit)&bit != 0
}

// countFreeSlots counts the slots that are not taken.
func (b *bin) countFreeSlots() int {
	n := 0
	for i := range b.used {
		n += bits.OnesCount64(^b.used[i].Load())
	}
	return n
}
