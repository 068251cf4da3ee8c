package curve

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

const (
	// Bytes of a pile, and of a block that is measured, with what maps and lists leave empty.
	pileBytes, markBytes = 192, 32
	// slotShare is the part of the memory that lets the stack have one more slot: the slots of the stack and its two
	// halves take three eighths of it.
	slotShare = 8 * levelsMax * (2*nodeBytes + slotBytes)
	// looked is how many blocks are cached from one look at the memory to the next.
	looked = 256
	// sparsest bounds how little is measured: one in 2^sparsest.
	sparsest = 40
)

// half is a sample of its own, of one half of what is measured. The distance between the halves shows the error of
// sampling.
type half struct {
	stack
	tally tally
}

// rate counts blocks that are measured.
type rate struct {
	since int64 // ns
	count int
}

// follows reports whether a pile is in the sample.
func (c *Curve) follows(pile uint64) bool { return pile&(1<<c.skipped-1) == 0 }

// measures reports whether a place in a pile is in the sample.
func (c *Curve) measures(name uint64) bool { return name&(1<<c.spaced-1) == 0 }

// halfOf returns the half of a block. Where piles are left out, these are what is sampled.
func (c *Curve) halfOf(name, pile uint64) uint64 {
	if c.skipped > 0 {
		return pile >> 63
	}
	return name >> 63
}

// request counts a request of a pile that is followed.
func (c *Curve) request(pile, size uint64, hit bool) {
	stands := math.Ldexp(1, int(c.skipped))
	c.tally.request(stands, float64(size), hit)
	if c.skipped > 0 {
		c.halves[pile>>63].tally.request(stands, float64(size), hit)
	}
}

// put caches a block that is measured, and returns its place in the order.
func (c *Curve) put(name, pile, size uint64) (order uint64) {
	c.next++
	c.marks++
	c.rate.count++
	c.whole.push(c.next, size)
	if c.halves != nil {
		c.halves[c.halfOf(name, pile)].push(c.next, size)
	}
	return c.next
}

// take takes a block out. It counts at the limits where it was still cached, if it serves.
func (c *Curve) take(name, pile, order, size uint64, serves bool) {
	c.marks--
	var whole, part *tally
	if serves {
		whole = &c.tally
	}
	c.whole.pop(order, size, whole)
	if c.halves == nil {
		return
	}
	h := &c.halves[c.halfOf(name, pile)]
	if serves {
		part = &h.tally
	}
	h.pop(order, size, part)
}

// bytes returns how much memory the curve takes at most until it looks again, with all slots and halves that it may
// come to have.
func (c *Curve) bytes() int {
	const others = 3*tallyBytes + looked*(pileBytes+markBytes)
	stacks := 3 * levelsMax * c.whole.slots * (2*nodeBytes + slotBytes)
	return others + stacks + markBytes*c.marks + pileBytes*len(c.piles)
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
	shift := c.spaced + c.skipped
	c.whole.thin(shift, func(yield func(order, size uint64)) {
		c.each(func(_, _, order, size uint64) { yield(order, size) })
	})
	if c.halves == nil {
		c.halves = new([2]half)
	}
	for i := range c.halves {
		h := &c.halves[i]
		h.stack = c.whole.clone()
		h.thin(shift+1, func(yield func(order, size uint64)) {
			c.each(func(name, pile, order, size uint64) {
				if c.halfOf(name, pile) == uint64(i) {
					yield(order, size)
				}
			})
		})
	}
}

// keep drops the piles and marks that are not in the sample.
func (c *Curve) keep() {
	maps.DeleteFunc(c.piles, func(p pile, _ *heap) bool { return !c.follows(p.hash()) })
	c.sweep()
	c.marks = 0
	for p, h := range c.piles {
		hash := p.hash()
		h.marks = slices.Clone(slices.DeleteFunc(h.marks, func(m mark) bool { return !c.measures(nameOf(hash, int64(m.at))) }))
		c.marks += len(h.marks)
	}
}

// each visits the blocks that are measured.
func (c *Curve) each(visit func(name, pile, order, size uint64)) {
	for p, h := range c.piles {
		hash := p.hash()
		for _, m := range h.marks {
			visit(nameOf(hash, int64(m.at)), hash, m.order, p.size)
		}
	}
}
