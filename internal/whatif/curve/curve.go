// Package curve tells the hit rate at every limit of a pool's cached bytes at once, from one pass over requests and
// releases. It is Mattson's stack distance (Mattson et al. 1970) for a cache of blocks that are taken out when they
// serve: what decides is the greatest depth that a block has had, in bytes, since it was freed.
//
// For policies that serve from blocks of just one size (pow2, mantissa, buckets) and evict what was freed longest ago,
// the curve is exact to the 3 % to which it tells limits apart, if there are at most 16 sizes; with more it is a little
// too low between sizes that were joined, for limits below the largest block. Others take the best fit of what is
// there, which no single order of blocks shows. So Live plays the policy itself at a few limits beside it: the curve
// goes through these points, and how far it would be off at each without it is its error. Exactly plays a recording at
// enough limits that there is nothing to estimate.
//
// Long streams are sampled by a hash, as SHARDS does (Waldspurger et al. 2015), with a rate that adapts to the memory
// that is allowed. It is not requests that are chosen, but places: in a class and size, the latest freed block serves
// first, so blocks lie in a pile, and the place in the pile is the same when a block is put there and when it is taken.
package curve

import (
	"cmp"
	"math"
	"slices"
)

// Options say what a curve is of, and what it may cost.
type Options struct {
	// Memory is how many bytes it may take, at least MemoryMin; 0: MemoryDefault. Beyond that it samples.
	Memory int
	// Rate is how many blocks are measured in a second of the events' time at most, about; 0: any. Beyond that it
	// samples.
	Rate int
}

// Bounds of a curve's memory, in bytes.
const (
	MemoryMin     = 2 << 20
	MemoryDefault = 16 << 20
)

const (
	// searched bounds how many sizes are looked through for a block that serves.
	searched = 32
	// nearMost is how many piles are found without a look into the map.
	nearMost = 1 << 6
	// agesMost is of how many blocks of a pile it is known when they were freed.
	agesMost = 4
)

// Curve follows one process. Calls must be serialised by the caller. A call costs O(log n), except the few times when
// the sample is halved: then up to 0.1 s.
type Curve struct {
	options Options
	piles   map[pile]*heap
	near    [nearMost]*heap    // of piles, those that were looked up last, by hash
	classes map[uint32][]*heap // ascending by size
	frees   uint64
	whole   stack
	next    uint64 // place in the order of caching
	marks   int    // blocks that are measured
	spaced  uint   // of the places in piles, one in 2^spaced is measured
	skipped uint   // of the piles, one in 2^skipped is followed
	puts    int    // since the memory was looked at
	rate    rate
	tally   tally
}

// pile is what the blocks have in common that serve the same requests.
type pile struct {
	class uint32
	size  uint64
}

// heap is what lies on a pile.
type heap struct {
	pile
	height int64
	marks  []mark   // of blocks that are measured, from below
	ages   []uint64 // of the uppermost blocks, from below: how many were freed before
}

// mark is a block that is measured.
type mark struct {
	order uint64
	at    uint64 // height in the pile
}

// New returns a curve of nothing.
func New(o Options) *Curve {
	if o.Memory == 0 {
		o.Memory = MemoryDefault
	}
	o.Memory = max(o.Memory, MemoryMin)
	slots := leavesMin
	for 2*slots*slotShare <= o.Memory {
		slots *= 2
	}
	return &Curve{options: o, piles: map[pile]*heap{}, classes: map[uint32][]*heap{}, whole: stack{slots: slots}}
}

// Restart counts requests and hits from here on. What is free stays.
func (c *Curve) Restart() {
	c.tally = tally{}
}

// Request notes a request for a block of at least size bytes and less than most, or of just the size where most is not
// above it. The latest freed one of the class serves, if there is one: its size is returned, otherwise 0.
func (c *Curve) Request(class uint32, size, most uint64) uint64 {
	p := pile{class, max(size, 1)}
	hash := p.hash()
	if !c.follows(hash) {
		return 0
	}
	from, h := c.latest(p, hash, most)
	c.tally.request(math.Ldexp(1, int(c.skipped)), h != nil)
	if h == nil {
		return 0
	}
	if n := len(h.marks); n > 0 && h.marks[n-1].at == uint64(h.height) {
		c.take(h.marks[n-1].order, from.size, &c.tally)
		h.marks = h.marks[:n-1]
	}
	h.height--
	h.ages = h.ages[:max(len(h.ages)-1, 0)]
	return from.size
}

// latest returns the pile with the latest freed block that serves, and what lies on it; nil: there is none.
func (c *Curve) latest(p pile, hash, most uint64) (from pile, found *heap) {
	if h := c.on(p, hash); h != nil && h.height > 0 {
		from, found = p, h
	}
	if most <= p.size {
		return from, found
	}
	heaps := c.classes[p.class]
	i, _ := slices.BinarySearchFunc(heaps, p.size+1, bySize)
	for _, h := range heaps[i:min(i+searched, len(heaps))] {
		if h.size >= most {
			break
		}
		if h.height > 0 && (found == nil || h.age() > found.age()) {
			from.size, found = h.size, h
		}
	}
	from.class = p.class
	return from, found
}

// on returns what lies on a pile, nil where there is none.
func (c *Curve) on(p pile, hash uint64) *heap {
	near := &c.near[hash>>58] // the low bits say whether a pile is followed
	if *near == nil || (*near).pile != p {
		*near = c.piles[p]
	}
	return *near
}

func bySize(h *heap, size uint64) int { return cmp.Compare(h.size, size) }

// age says when the block on top was freed: the number of the call, or one before, where that is forgotten.
func (h *heap) age() uint64 {
	if len(h.ages) == 0 {
		return 0
	}
	return h.ages[len(h.ages)-1]
}

// Free notes at a time (ns, any epoch) that a block of a class and size is free and can serve again.
func (c *Curve) Free(class uint32, size uint64, time int64) {
	p := pile{class, max(size, 1)}
	hash := p.hash()
	if !c.follows(hash) {
		return
	}
	h := c.on(p, hash)
	if h == nil {
		h = &heap{pile: p}
		c.piles[p] = h
		heaps := c.classes[class]
		i, _ := slices.BinarySearchFunc(heaps, p.size, bySize)
		c.classes[class] = slices.Insert(heaps, i, h)
	}
	h.height++
	c.frees++
	if len(h.ages) == agesMost {
		h.ages = slices.Delete(h.ages, 0, 1)
	}
	h.ages = append(h.ages, c.frees)
	if c.measures(hash, h.height) {
		h.marks = append(h.marks, mark{c.put(p.size), uint64(h.height)})
	}
	c.look(time)
}

// Drop takes out all blocks of a class. It costs a step for each of its piles.
func (c *Curve) Drop(class uint32) {
	for _, h := range c.classes[class] {
		for _, m := range h.marks {
			c.take(m.order, h.size, nil)
		}
		delete(c.piles, h.pile)
	}
	delete(c.classes, class)
	clear(c.near[:])
}

// mixed makes bits that look random from a number (the finaliser of SplitMix64, Steele et al. 2014).
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (p pile) hash() uint64 { return mixed(p.size ^ mixed(uint64(p.class))) }
