package curve

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// Bytes of a pile, and of a block that is measured, with what maps and lists leave empty.
	pileBytes, markBytes = 192, 32
	// slotShare is the part of the memory that lets the stack have one more slot: its slots take an eighth of it.
	slotShare = 8 * levelsMax * (2*nodeBytes + slotBytes)
	// looked is how many blocks are cached from one look at the memory to the next.
	looked = 256
	// sparsest bounds how little is measured: one in 2^sparsest.
	sparsest = 40
)

// rate counts blocks that are measured.
type rate struct {
	since int64 // ns
	count int
}

// follows reports whether a pile is in the sample.
func (c *Curve) follows(pile uint64) bool { return pile&(1<<c.skipped-1) == 0 }

// measures reports whether the place at a height of a pile is in the sample.
func (c *Curve) measures(pile uint64, height int64) bool {
	return mixed(pile+uint64(height))&(1<<c.spaced-1) == 0
}

// put caches a block that is measured, and returns its place in the order.
func (c *Curve) put(size uint64) (order uint64) {
	c.next++
	c.marks++
	c.rate.count++
	c.whole.push(c.next, size)
	return c.next
}

// take takes a block out. If it serves, t counts at which limits it was still cached; else t is nil.
func (c *Curve) take(order, size uint64, t *tally) {
	c.marks--
	c.whole.pop(order, size, t)
}

// bytes returns how much memory the curve takes at most until it looks again, with all slots that it may come to have.
func (c *Curve) bytes() int {
	const others = tallyBytes + looked*(pileBytes+markBytes)
	stack := levelsMax * c.whole.slots * (2*nodeBytes + slotBytes)
	return others + stack + markBytes*c.marks + pileBytes*len(c.piles)
}

// look measures less where there is too little memory, or too much is to be measured in a second.
func (c *Curve) look(time int64) {
	if c.options.Rate > 0 {
		if time-c.rate.since >= 1e9 {
			c.rate = rate{since: time}
		}
		if c.rate.count > c.options.Rate && c.spaced+c.skipped < sparsest {
			c.rate.count = 0
			c.spaced++
			c.thin()
		}
	}
	c.puts++
	if c.puts < looked {
		return
	}
	c.puts = 0
	if c.bytes() > c.options.Memory {
		c.sweep()
	}
	for c.bytes() > c.options.Memory && c.spaced+c.skipped < sparsest {
		if pileBytes*len(c.piles) > c.options.Memory/4 {
			c.skipped++
		} else {
			c.spaced++
		}
		c.thin()
	}
}

// sweep forgets piles on which nothing lies.
func (c *Curve) sweep() {
	piles := make(map[pile]*heap, len(c.piles)/2)
	for p, h := range c.piles {
		if h.height > 0 {
			piles[p] = h
		}
	}
	c.piles = piles
	clear(c.near[:])
	c.classes = map[uint32][]*heap{}
	for p, h := range piles {
		c.classes[p.class] = append(c.classes[p.class], h)
	}
	for _, heaps := range c.classes {
		slices.SortFunc(heaps, func(a, b *heap) int { return cmp.Compare(a.size, b.size) })
	}
}

// thin leaves out what is not in the sample any more.
func (c *Curve) thin() {
	c.keep()
	c.whole.thin(c.spaced+c.skipped, func(yield func(order, size uint64)) {
		for p, h := range c.piles {
			for _, m := range h.marks {
				yield(m.order, p.size)
			}
		}
	})
}

// keep drops the piles and marks that are not in the sample.
func (c *Curve) keep() {
	maps.DeleteFunc(c.piles, func(p pile, _ *heap) bool { return !c.follows(p.hash()) })
	c.sweep()
	c.marks = 0
	for p, h := range c.piles {
		hash := p.hash()
		h.marks = slices.Clone(slices.DeleteFunc(h.marks, func(m mark) bool { return !c.measures(hash, int64(m.at)) }))
		c.marks += len(h.marks)
	}
}
