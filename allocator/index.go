package allocator

import (
	"math/bits"
	"slices"
)

// index orders blocks by size, in many sections: one for each class, or for each class and tag. Blocks of equal size form
// a list; the latest block on it is taken first.
//
// The sizes of a section stand in order on strips of at most stripMax sizes. Strips are like the leaves of a B+ tree (Bayer
// and McCreight 1972), with one list above them instead of a tree. A bit says whether a size has blocks. A size whose last
// block is taken stays on its strip until the strip is full, because that block usually comes back: taking blocks and
// giving them back moves nothing, however many sizes there are. A search halves the list and then the strip, without a
// branch that depends on sizes. Most sections have one strip.
type index struct {
	sections []ladder
	strips   []strip
	nodes    []sized
	recent   []int32       // by a hash of section and size: the node that was looked up last, which may be of another size
	links    Chunked[link] // by block
	spare    []int32       // unused nodes
	unused   []int32       // unused strips
	dropped  []int32       // unused sections
}

const (
	stripMax = 64 // sizes on a strip: one bit each
	stripMin = 2  // most tags have few sizes, and there may be 100,000 tags
)

// ladder is a section: strips[k] has all sizes from lows[k] to below lows[k+1]. lows[0] is 0.
type ladder struct {
	lows   []uint64
	strips []int32
}

// strip has neighbouring sizes of a section, ascending. Every strip has a block, unless it is the only one of its section.
type strip struct {
	full  uint64 // a bit for each size that has blocks
	sizes []uint64
	nodes []int32 // of these sizes
}

// sized is the list of blocks of one size in one section.
type sized struct {
	size           uint64
	newest, oldest int32 // blocks
	count          int32 // of blocks
	section        int32 // 0: the node is unused
	strip          int32
	place          int32 // index on the strip
}

// link is a block's place in the list of its node.
type link struct{ newer, older, node int32 }

func newIndex() index {
	return index{sections: make([]ladder, 1), strips: make([]strip, 1), nodes: make([]sized, 1), recent: make([]int32, 16)}
}

// takeUnusedIndex returns an unused index of a list. If there is none, it appends an element to the list.
func takeUnusedIndex[T any](list *[]T, unused *[]int32) int32 {
	if last := len(*unused) - 1; last >= 0 {
		i := (*unused)[last]
		*unused = (*unused)[:last]
		return i
	}
	var none T
	*list = append(*list, none)
	return int32(len(*list) - 1)
}

// newSection returns the number of a new section.
func (x *index) newSection() int32 {
	i := takeUnusedIndex(&x.sections, &x.dropped)
	if s := &x.sections[i]; s.strips == nil { // a dropped section has a strip
		*s = ladder{lows: []uint64{0}, strips: []int32{x.newStrip(stripMin)}}
	}
	return i
}

// newStrip returns the number of a new strip with room for some sizes.
func (x *index) newStrip(room int) int32 {
	i := takeUnusedIndex(&x.strips, &x.unused)
	x.strips[i] = strip{sizes: make([]uint64, 0, room), nodes: make([]int32, 0, room)}
	return i
}

// searchAtLeast returns the index of the first of ascending sizes that is at least size, or their number when there is none.
// Each step adds zero or half of the remaining length: a branch would be mispredicted every other time.
func searchAtLeast(sizes []uint64, size uint64) (place int) {
	n := len(sizes)
	for n > 1 {
		half := n >> 1
		_, less := bits.Sub64(sizes[place+half-1], size, 0)
		place += half & -int(less)
		n -= half
	}
	if n == 1 {
		_, less := bits.Sub64(sizes[place], size, 0)
		place += int(less)
	}
	return place
}

// stripIndex returns the index of the strip where a size belongs.
func (s *ladder) stripIndex(size uint64) int {
	if last := len(s.lows) - 1; size >= s.lows[last] {
		return last
	}
	rank := searchAtLeast(s.lows, size)
	if rank == len(s.lows) || s.lows[rank] != size {
		rank--
	}
	return rank
}

// nodeMatches reports whether node n belongs to a size in a section. Node 0 belongs to no size.
func (x *index) nodeMatches(n, section int32, size uint64) bool {
	return x.nodes[n].size == size && x.nodes[n].section == section
}

// recentIndex returns the index in recent for a size in a section.
func (x *index) recentIndex(section int32, size uint64) uint64 {
	h := (size + uint64(section)*0xc2b2ae3d27d4eb4f) * 0x9e3779b97f4a7c15
	return (h ^ h>>32) & uint64(len(x.recent)-1)
}

// findNode returns the node of a size in a section, 0 when there is none.
func (x *index) findNode(section int32, size uint64) int32 {
	slot := x.recentIndex(section, size)
	if n := x.recent[slot]; x.nodeMatches(n, section, size) {
		return n
	}
	s := &x.sections[section]
	on := &x.strips[s.strips[s.stripIndex(size)]]
	if place := searchAtLeast(on.sizes, size); place < len(on.sizes) && on.sizes[place] == size {
		x.recent[slot] = on.nodes[place]
		return on.nodes[place]
	}
	return 0
}

// addBlock adds block i.
func (x *index) addBlock(section, i int32, size uint64) {
	x.links.MakePlace(i)
	n := x.links.At(i).node // a block usually comes back to its former node
	if !x.nodeMatches(n, section, size) {
		n = x.findOrAddNode(section, size)
	}
	s := &x.nodes[n]
	*x.links.At(i) = link{older: s.newest, node: n}
	if s.newest != 0 {
		x.links.At(s.newest).newer = i
	} else {
		s.oldest = i
		on, bit := x.bitOfNode(n)
		on.full |= bit
	}
	s.newest = i
	s.count++
}

// findOrAddNode returns the node of a size in a section, and makes it if there is none.
func (x *index) findOrAddNode(section int32, size uint64) int32 {
	slot := x.recentIndex(section, size)
	if n := x.recent[slot]; x.nodeMatches(n, section, size) {
		return n
	}
	s := &x.sections[section]
	rank := s.stripIndex(size)
	strip := s.strips[rank]
	on := &x.strips[strip]
	place := searchAtLeast(on.sizes, size)
	if place < len(on.sizes) && on.sizes[place] == size {
		x.recent[slot] = on.nodes[place]
		return on.nodes[place]
	}
	if len(on.sizes) == cap(on.sizes) {
		x.makeRoomOnStrip(s, rank)
		return x.findOrAddNode(section, size)
	}
	n := x.newNode()
	x.nodes[n] = sized{size: size, section: section, strip: strip}
	slot = x.recentIndex(section, size) // newNode may have made recent longer
	on.sizes = slices.Insert(on.sizes, place, size)
	on.nodes = slices.Insert(on.nodes, place, n)
	below := uint64(1)<<(place&63) - 1
	on.full = on.full&below | on.full&^below<<1
	for ; place < len(on.nodes); place++ {
		x.nodes[on.nodes[place]].place = int32(place)
	}
	x.recent[slot] = n
	return n
}

// newNode returns an unused node. It keeps recent longer than the list of nodes, so that hashes seldom collide.
func (x *index) newNode() int32 {
	n := takeUnusedIndex(&x.nodes, &x.spare)
	if 2*len(x.nodes) > len(x.recent) {
		x.recent = make([]int32, 2*len(x.recent))
	}
	return n
}

// bitOfNode returns the strip of a node, and the node's bit in strip.full.
func (x *index) bitOfNode(n int32) (*strip, uint64) {
	s := &x.nodes[n]
	return &x.strips[s.strip], 1 << (s.place & 63)
}

// releaseNode makes a node unused.
func (x *index) releaseNode(n int32) {
	x.nodes[n] = sized{}
	x.spare = append(x.spare, n)
}

// sectionOf returns the section of block i, or its last section if that still exists; 0: none.
func (x *index) sectionOf(i int32) int32 {
	if !x.links.has(i) {
		return 0
	}
	return x.nodes[x.links.At(i).node].section
}

// removeBlock removes block i. It returns the section if no block is left there, otherwise 0.
func (x *index) removeBlock(i int32) (emptied int32) {
	l := *x.links.At(i)
	s := &x.nodes[l.node]
	if l.newer != 0 {
		x.links.At(l.newer).older = l.older
	} else {
		s.newest = l.older
	}
	if l.older != 0 {
		x.links.At(l.older).newer = l.newer
	} else {
		s.oldest = l.newer
	}
	if s.count--; s.count == 0 {
		on, bit := x.bitOfNode(l.node)
		if on.full &^= bit; on.full == 0 && x.forgetStripIfEmpty(s.section, s.size) {
			return s.section
		}
	}
	return 0
}

// smallestAtLeast returns the latest of the smallest blocks with at least size bytes, 0 when there is none.
func (x *index) smallestAtLeast(section int32, size uint64) int32 {
	s := &x.sections[section]
	on := &x.strips[s.strips[0]]
	if len(s.strips) == 1 { // the usual case
		if on.full == 0 {
			return 0
		}
		largest := &x.nodes[on.nodes[bits.Len64(on.full)-1]]
		if largest.size < size {
			return 0
		}
		if on.full&(on.full-1) == 0 {
			return largest.newest
		}
	}
	var from uint64 // the bit of the first size that is large enough, 0 when none is
	if n := x.recent[x.recentIndex(section, size)]; x.nodeMatches(n, section, size) {
		if x.nodes[n].count != 0 {
			return x.nodes[n].newest
		}
		on, from = x.bitOfNode(n)
	} else {
		on = &x.strips[s.strips[s.stripIndex(size)]]
		from = 1 << searchAtLeast(on.sizes, size)
	}
	full := on.full &^ (from - 1)
	if full == 0 {
		if on = x.stripAbove(section, size); on == nil {
			return 0
		}
		full = on.full
	}
	return x.nodes[on.nodes[bits.TrailingZeros64(full)]].newest
}

// stripAbove returns the strip after the one where a size belongs, nil when there is none.
func (x *index) stripAbove(section int32, size uint64) *strip {
	s := &x.sections[section]
	if len(s.strips) == 1 {
		return nil
	}
	rank := s.stripIndex(size) + 1
	if rank == len(s.strips) {
		return nil
	}
	return &x.strips[s.strips[rank]]
}

// latestOfLargest returns the latest of the largest blocks, 0 when there is none.
func (x *index) latestOfLargest(section int32) int32 {
	s := &x.sections[section]
	on := &x.strips[s.strips[len(s.strips)-1]]
	if on.full == 0 {
		return 0
	}
	return x.nodes[on.nodes[bits.Len64(on.full)-1]].newest
}

// sizeOf returns the size of a block that is in the index.
func (x *index) sizeOf(i int32) uint64 { return x.nodes[x.links.At(i).node].size }

// countAndOldestOfSize returns how many blocks of a section have one size, and the oldest of these blocks.
func (x *index) countAndOldestOfSize(section int32, size uint64) (count, oldest int32) {
	if n := x.findNode(section, size); n != 0 {
		return x.nodes[n].count, x.nodes[n].oldest
	}
	return 0, 0
}

// forgetSection forgets a section without blocks. Its only strip waits for the next section.
func (x *index) forgetSection(section int32) {
	x.removeEmptySizes(&x.strips[x.sections[section].strips[0]])
	x.dropped = append(x.dropped, section)
}
