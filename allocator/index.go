package allocator

import "codeberg.org/gpumemtop/gpumemtop/allocator/treap"

// index orders blocks by size, in many sections: one per class, or one per class and tag. Blocks of equal size form a
// list, of which the latest to come is the first to go.
//
// A size whose last block is taken stays in its section's tree for a while, because that block usually comes back:
// the cycle of taking and giving back costs no change of a tree, however many sizes there are. Searches remove the
// empty sizes that they come upon, and there are never more of them than of the others, or emptyMax.
type index struct {
	forest   treap.Forest
	sections []treap.Tree
	bySize   map[sizeKey]int32 // to node
	nodes    []sized
	spare    []int32 // unused nodes
	dropped  []int32 // unused sections
	links    []link  // by block

	recent [1024]int32 // nodes by some bits of their key, so that the map is asked less often

	full, empty int   // nodes
	idle        int32 // the node that has been empty longest; linked through their lists
	idlest      int32 // the one that has been empty shortest
}

const emptyMax = 64

type sizeKey struct {
	section int32
	size    uint64
}

// sized is what has one size in one section.
type sized struct {
	newest, oldest int32 // blocks; of an empty node: the next and the previous empty node
	count          int32 // blocks
	section        int32
}

// link is a block's place in the list of its node.
type link struct{ newer, older, node int32 }

func newIndex() index {
	return index{bySize: map[sizeKey]int32{}, nodes: make([]sized, 1), sections: make([]treap.Tree, 1)}
}

// section returns a number for a new section.
func (x *index) section() int32 {
	if last := len(x.dropped) - 1; last >= 0 {
		section := x.dropped[last]
		x.dropped = x.dropped[:last]
		return section
	}
	x.sections = append(x.sections, treap.Tree{})
	return int32(len(x.sections) - 1)
}

// put adds block i.
func (x *index) put(section, i int32, size uint64) {
	for len(x.links) <= int(i) {
		x.links = append(x.links, link{})
	}
	n := x.links[i].node // it usually comes back to where it was
	if !x.is(n, section, size) {
		n = x.find(section, size)
	}
	if n == 0 {
		n = x.newNode(section, size)
	} else if x.nodes[n].count == 0 {
		x.leaveIdle(n)
		x.full++
	}
	s := &x.nodes[n]
	x.links[i] = link{older: s.newest, node: n}
	if s.newest != 0 {
		x.links[s.newest].newer = i
	} else {
		s.oldest = i
	}
	s.newest = i
	s.count++
}

// is reports whether a node, or 0, is that of a size in a section.
func (x *index) is(n, section int32, size uint64) bool {
	return x.nodes[n].section == section && x.forest.Size(n) == size
}

// find returns the node of a size in a section, 0 when there is none.
func (x *index) find(section int32, size uint64) int32 {
	cached := &x.recent[(uint64(section)*31+(size*0x9e3779b97f4a7c15)>>54)%uint64(len(x.recent))]
	if !x.is(*cached, section, size) {
		*cached = x.bySize[sizeKey{section, size}]
	}
	return *cached
}

// home returns the section that block i is in, or was in last as far as that is known; 0: unknown.
func (x *index) home(i int32) int32 {
	if int(i) >= len(x.links) {
		return 0
	}
	return x.nodes[x.links[i].node].section
}

// take removes block i.
func (x *index) take(i int32) {
	l := x.links[i]
	s := &x.nodes[l.node]
	if l.newer != 0 {
		x.links[l.newer].older = l.older
	} else {
		s.newest = l.older
	}
	if l.older != 0 {
		x.links[l.older].newer = l.newer
	} else {
		s.oldest = l.newer
	}
	if s.count--; s.count == 0 {
		x.enterIdle(l.node)
	}
}

// first returns the latest of the smallest blocks with at least size bytes, 0 when there is none.
func (x *index) first(section int32, size uint64) int32 {
	if n := x.find(section, size); n != 0 && x.nodes[n].count > 0 {
		return x.nodes[n].newest
	}
	for {
		n := x.forest.AtLeast(&x.sections[section], size)
		if n == 0 || x.nodes[n].count > 0 {
			return x.nodes[n].newest
		}
		x.removeNode(n)
	}
}

// last returns the latest of the largest blocks, 0 when there is none.
func (x *index) last(section int32) int32 {
	for {
		n := x.forest.Last(&x.sections[section])
		if n == 0 || x.nodes[n].count > 0 {
			return x.nodes[n].newest
		}
		x.removeNode(n)
	}
}

// sizeOf returns the size of a block that is in the index.
func (x *index) sizeOf(i int32) uint64 { return x.forest.Size(x.links[i].node) }

// peers returns how many blocks there are of a block's size in its section, and which came first.
func (x *index) peers(section int32, size uint64) (count, oldest int32) {
	n := x.find(section, size)
	if n == 0 || x.nodes[n].count == 0 {
		return 0, 0
	}
	return x.nodes[n].count, x.nodes[n].oldest
}

// drop forgets a section, which holds no block any more.
func (x *index) drop(section int32) {
	for n := x.forest.Last(&x.sections[section]); n != 0; n = x.forest.Last(&x.sections[section]) {
		x.removeNode(n)
	}
	x.dropped = append(x.dropped, section)
}

func (x *index) newNode(section int32, size uint64) int32 {
	var n int32
	if last := len(x.spare) - 1; last >= 0 {
		n, x.spare = x.spare[last], x.spare[:last]
	} else {
		x.nodes = append(x.nodes, sized{})
		n = int32(len(x.nodes) - 1)
		x.forest.Grow(int(n))
	}
	x.nodes[n] = sized{section: section}
	x.bySize[sizeKey{section, size}] = n
	x.forest.Insert(&x.sections[section], n, size, 0)
	x.full++
	return n
}

// removeNode forgets an empty node.
func (x *index) removeNode(n int32) {
	x.leaveIdle(n)
	section := x.nodes[n].section
	delete(x.bySize, sizeKey{section, x.forest.Size(n)})
	x.forest.Remove(&x.sections[section], n)
	x.nodes[n] = sized{}
	x.spare = append(x.spare, n)
}

// enterIdle notes that a node has become empty, and removes the idlest when there are too many.
func (x *index) enterIdle(n int32) {
	x.full--
	x.empty++
	x.nodes[n].newest, x.nodes[n].oldest = 0, x.idlest
	if x.idlest != 0 {
		x.nodes[x.idlest].newest = n
	} else {
		x.idle = n
	}
	x.idlest = n
	for x.empty > max(emptyMax, x.full) {
		x.removeNode(x.idle)
	}
}

// leaveIdle takes an empty node off the list of those.
func (x *index) leaveIdle(n int32) {
	s := &x.nodes[n]
	next, previous := s.newest, s.oldest
	if next != 0 {
		x.nodes[next].oldest = previous
	} else {
		x.idlest = previous
	}
	if previous != 0 {
		x.nodes[previous].newest = next
	} else {
		x.idle = next
	}
	s.newest, s.oldest = 0, 0
	x.empty--
}
