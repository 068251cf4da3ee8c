package curve

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// Bytes of a pile and of a measured block, including the unused space of maps and lists.
	pileBytes, markBytes = 192, 32
	// slotShare is the memory per slot of the stack, in bytes: the slots take an eighth of the memory.
	slotShare = 8 * levelsMax * (2*nodeBytes + slotBytes)
	// checkEvery is how many blocks are cached between two checks of the memory.
	checkEvery = 256
	// shiftMax bounds the sampling: at least one in 2^shiftMax is measured.
	shiftMax = 40
)

// rate counts measured blocks.
type rate struct {
	since int64 // ns
	count int
}

// isPileSampled reports whether a pile is in the sample.
func (c *Curve) isPileSampled(pile uint64) bool { return pile&(1<<c.pileShift-1) == 0 }

// isHeightSampled reports whether a height of a pile is in the sample.
func (c *Curve) isHeightSampled(pile uint64, height int64) bool {
	return scramble(pile+uint64(height))&(1<<c.heightShift-1) == 0
}

// cacheBlock caches a measured block, and returns its order.
func (c *Curve) cacheBlock(size uint64) (order uint64) {
	c.lastOrder++
	c.measured++
	c.rate.count++
	c.stack.pushBlock(c.lastOrder, size)
	return c.lastOrder
}

// uncacheBlock removes a block. If the block serves a request, t counts the limits at which it was still cached; else t is
// nil.
func (c *Curve) uncacheBlock(order, size uint64, t *tally) {
	c.measured--
	c.stack.popBlock(order, size, t)
}

// mostMemoryBytes returns how many bytes the curve takes at most until the next check, including all slots that it may use.
func (c *Curve) mostMemoryBytes() int {
	const others = tallyBytes + checkEvery*(pileBytes+markBytes)
	stack := levelsMax * c.stack.slots * (2*nodeBytes + slotBytes)
	return others + stack + markBytes*c.measured + pileBytes*len(c.piles)
}

// reduceSampleIfCostly reduces the sample if the memory is too small, or too many blocks are measured per second.
func (c *Curve) reduceSampleIfCostly(time int64) {
	if c.options.Rate > 0 {
		if time-c.rate.since >= 1e9 {
			c.rate = rate{since: time}
		}
		if c.rate.count > c.options.Rate && c.heightShift+c.pileShift < shiftMax {
			c.rate.count = 0
			c.heightShift++
			c.thinToSample()
		}
	}
	c.cachedSinceCheck++
	if c.cachedSinceCheck < checkEvery {
		return
	}
	c.cachedSinceCheck = 0
	if c.mostMemoryBytes() > c.options.Memory {
		c.dropEmptyPiles()
	}
	for c.mostMemoryBytes() > c.options.Memory && c.heightShift+c.pileShift < shiftMax {
		if pileBytes*len(c.piles) > c.options.Memory/4 {
			c.pileShift++
		} else {
			c.heightShift++
		}
		c.thinToSample()
	}
}

// dropEmptyPiles forgets piles without blocks.
func (c *Curve) dropEmptyPiles() {
	piles := make(map[pileKey]*pile, len(c.piles)/2)
	for p, h := range c.piles {
		if h.height > 0 {
			piles[p] = h
		}
	}
	c.piles = piles
	clear(c.recent[:])
	c.classes = map[uint32][]*pile{}
	for p, h := range piles {
		c.classes[p.class] = append(c.classes[p.class], h)
	}
	for _, heaps := range c.classes {
		slices.SortFunc(heaps, func(a, b *pile) int { return cmp.Compare(a.size, b.size) })
	}
}

// thinToSample removes what is no longer in the sample.
func (c *Curve) thinToSample() {
	c.dropUnsampled()
	c.stack.thinToSample(c.heightShift+c.pileShift, func(yield func(order, size uint64)) {
		for p, h := range c.piles {
			for _, m := range h.marks {
				yield(m.order, p.size)
			}
		}
	})
}

// dropUnsampled removes the piles and marks that are not in the sample.
func (c *Curve) dropUnsampled() {
	maps.DeleteFunc(c.piles, func(p pileKey, _ *pile) bool { return !c.isPileSampled(p.hash()) })
	c.dropEmptyPiles()
	c.measured = 0
	for p, h := range c.piles {
		hash := p.hash()
		h.marks = slices.Clone(slices.DeleteFunc(h.marks, func(m mark) bool { return !c.isHeightSampled(hash, int64(m.height)) }))
		c.measured += len(h.marks)
	}
}
