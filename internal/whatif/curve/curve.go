// Package curve computes the hit rate at every limit of a pool's cached bytes in one pass over requests and releases.
// It uses Mattson's stack distance (Mattson et al. 1970) for a cache whose blocks leave it when they serve a request: a
// block is hit at a limit if, since it was freed, it has never lain deeper in the stack than the limit, in bytes.
//
// For policies that serve requests from blocks of a single size (pow2, mantissa, buckets) and evict the block that was
// freed first, the curve is exact within the 3 % that separate two limits, if there are at most 16 sizes. With more
// sizes, neighbouring sizes are joined, and the curve is slightly too low between them for limits below the largest
// block. Other policies take the best fit among cached blocks, which no single order of blocks describes. So Live
// simulates the policy at a few limits, the anchors: the curve goes through these exact points, and its error is how
// far it would miss each of them without that point. Measure plays a recording at enough limits that nothing is
// estimated.
//
// Long streams are sampled by a hash, as in SHARDS (Waldspurger et al. 2015), at a rate that adapts to the allowed
// memory. The sample consists not of requests, but of positions: in a class and size the block freed last serves first,
// so these blocks form a pile, and a block is taken from the height at which it was put.
package curve

import (
	"cmp"
	"math"
	"slices"
)

// Options say what a curve may cost.
type Options struct {
	// Memory is how many bytes the curve may take, at least MemoryMin; 0: MemoryDefault. Beyond that it samples.
	Memory int
	// Rate is approximately how many blocks may be measured per second of the events' time; 0: any number. Beyond that
	// it samples.
	Rate int
}

// Bounds of a curve's memory, in bytes.
const (
	MemoryMin     = 2 << 20
	MemoryDefault = 16 << 20
)

const (
	// sizesSearchedMax bounds how many sizes are searched for a block that can serve.
	sizesSearchedMax = 32
	// recentPiles is how many piles are found without a look into the map.
	recentPiles = 1 << 6
	// agesMax is for how many blocks of a pile the time of release is known.
	agesMax = 4
)

// Curve follows one process. Calls must be serialised by the caller. A call costs O(log n), except the few calls that
// halve the sample: up to 0.1 s.
type Curve struct {
	options          Options
	piles            map[pileKey]*pile
	recent           [recentPiles]*pile // the piles that were used last, by hash
	classes          map[uint32][]*pile // ascending by size
	frees            uint64
	stack            stack
	lastOrder        uint64 // of the block that was cached last
	measured         int    // blocks in the sample
	heightShift      uint   // one in 2^heightShift positions of a pile is measured
	pileShift        uint   // one in 2^pileShift piles is followed
	cachedSinceCheck int    // blocks cached since the memory was checked
	rate             rate
	tally            tally
}

// pileKey is what blocks have in common that serve the same requests.
type pileKey struct {
	class uint32
	size  uint64
}

// pile is the free blocks of one class and size; the block freed last is on top.
type pile struct {
	pileKey
	height int64
	marks  []mark   // the measured blocks, from below
	ages   []uint64 // of the uppermost blocks, from below: how many blocks were freed before
}

// mark is a measured block.
type mark struct {
	order  uint64 // position in the order of caching
	height uint64 // height in the pile
}

// New returns an empty curve.
func New(o Options) *Curve {
	if o.Memory == 0 {
		o.Memory = MemoryDefault
	}
	o.Memory = max(o.Memory, MemoryMin)
	slots := leavesMin
	for 2*slots*slotShare <= o.Memory {
		slots *= 2
	}
	return &Curve{options: o, piles: map[pileKey]*pile{}, classes: map[uint32][]*pile{}, stack: stack{slots: slots}}
}

// RestartCounting counts requests and hits from here on. Free blocks stay.
func (c *Curve) RestartCounting() {
	c.tally = tally{}
}

// NoteRequest notes a request for a block of at least size bytes and less than most, or of exactly size bytes if most is
// not above size. The block of the class that was freed last serves it: its size is returned, 0 if there is no block.
func (c *Curve) NoteRequest(class uint32, size, most uint64) uint64 {
	p := pileKey{class, max(size, 1)}
	hash := p.hash()
	if !c.isPileSampled(hash) {
		return 0
	}
	from, h := c.pileFreedLast(p, hash, most)
	c.tally.addRequest(math.Ldexp(1, int(c.pileShift)), h != nil)
	if h == nil {
		return 0
	}
	if n := len(h.marks); n > 0 && h.marks[n-1].height == uint64(h.height) {
		c.uncacheBlock(h.marks[n-1].order, from.size, &c.tally)
		h.marks = h.marks[:n-1]
	}
	h.height--
	h.ages = h.ages[:max(len(h.ages)-1, 0)]
	return from.size
}

// pileFreedLast returns the key and the pile whose top block was freed last among those that can serve; nil: none can.
func (c *Curve) pileFreedLast(p pileKey, hash, most uint64) (from pileKey, found *pile) {
	if h := c.pileOf(p, hash); h != nil && h.height > 0 {
		from, found = p, h
	}
	if most <= p.size {
		return from, found
	}
	heaps := c.classes[p.class]
	i, _ := slices.BinarySearchFunc(heaps, p.size+1, compareSize)
	for _, h := range heaps[i:min(i+sizesSearchedMax, len(heaps))] {
		if h.size >= most {
			break
		}
		if h.height > 0 && (found == nil || h.freesBeforeTop() > found.freesBeforeTop()) {
			from.size, found = h.size, h
		}
	}
	from.class = p.class
	return from, found
}

// pileOf returns a pile, nil if there is none.
func (c *Curve) pileOf(p pileKey, hash uint64) *pile {
	near := &c.recent[hash>>58] // the low bits decide whether a pile is followed
	if *near == nil || (*near).pileKey != p {
		*near = c.piles[p]
	}
	return *near
}

func compareSize(h *pile, size uint64) int { return cmp.Compare(h.size, size) }

// freesBeforeTop returns how many blocks were freed before the top block, or 0 if that is forgotten.
func (h *pile) freesBeforeTop() uint64 {
	if len(h.ages) == 0 {
		return 0
	}
	return h.ages[len(h.ages)-1]
}

// NoteBlockFreed notes at a time (ns, any epoch) that a block of a class and size is free and can serve again.
func (c *Curve) NoteBlockFreed(class uint32, size uint64, time int64) {
	p := pileKey{class, max(size, 1)}
	hash := p.hash()
	if !c.isPileSampled(hash) {
		return
	}
	h := c.pileOf(p, hash)
	if h == nil {
		h = &pile{pileKey: p}
		c.piles[p] = h
		heaps := c.classes[class]
		i, _ := slices.BinarySearchFunc(heaps, p.size, compareSize)
		c.classes[class] = slices.Insert(heaps, i, h)
	}
	h.height++
	c.frees++
	if len(h.ages) == agesMax {
		h.ages = slices.Delete(h.ages, 0, 1)
	}
	h.ages = append(h.ages, c.frees)
	if c.isHeightSampled(hash, h.height) {
		h.marks = append(h.marks, mark{c.cacheBlock(p.size), uint64(h.height)})
	}
	c.reduceSampleIfCostly(time)
}

// DropClass removes all blocks of a class. It costs a step for each of the class's piles.
func (c *Curve) DropClass(class uint32) {
	for _, h := range c.classes[class] {
		for _, m := range h.marks {
			c.uncacheBlock(m.order, h.size, nil)
		}
		delete(c.piles, h.pileKey)
	}
	delete(c.classes, class)
	clear(c.recent[:])
}

// scramble turns a number into bits that look random (the finaliser of SplitMix64, Steele et al. 2014).
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (p pileKey) hash() uint64 { return scramble(p.size ^ scramble(uint64(p.class))) }
