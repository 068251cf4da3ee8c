package allocator

import "codeberg.org/gpumemtop/gpumemtop/allocator/treap"

// index orders blocks by size, in many sections: one per class, or one per class and tag. Blocks of equal size form a
// list, of which the latest to come is the first to go.
//
// A size whose last block is taken stays in its section's tree for a while, because that block usually comes back:
// the cycle of taking and giving back costs no change of a tree, however many sizes there are. Searches pass by a few
// empty sizes, and remove those that they come upon next; and there are never more of them than of the others, or
// emptyMax.
type index struct {
	forest   treap.Forest
	sections []treap.Tree
	bySize   []int32 // nodes, by a hash of their keys, each at the first place from there that was empty; 0: empty
	nodes    []sized
	spare    []int32 // unused nodes
	dropped  []int32 // unused sections
	links    []link  // by block

	full, empty int   // nodes
	idle        int32 // the node that has been empty longest; linked through their lists
	idlest      int32 // the one that has been empty shortest
}

const (
	emptyMax = 256
	passMax  = 8 // empty sizes that a search does not remove: their blocks would often bring them back
)

// sized is what has one size in one section.
type sized struct {
	size           uint64
	newest, oldest int32 // blocks; of an empty node: the next and the previous empty node
	count          int32 // blocks
	section        int32
	smaller        int32 // neighbours in the section
	larger         int32
}

// link is a block's place in the list of its node.
type link struct{ newer, older, node int32 }

func newIndex() index {
	return index{bySize: make([]int32, 16), nodes: make([]sized, 1), sections: make([]treap.Tree, 1)}
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
	return x.nodes[n].size == size && x.nodes[n].section == section
}

// find returns the node of a size in a section, 0 when there is none.
func (x *index) find(section int32, size uint64) int32 {
	for at := x.hash(section, size); ; at = x.after(at) {
		if n := x.bySize[at]; n == 0 || x.is(n, section, size) {
			return n
		}
	}
}

// hash returns where in bySize a node is looked for first.
func (x *index) hash(section int32, size uint64) int {
	h := (size + uint64(section)*0xc2b2ae3d27d4eb4f) * 0x9e3779b97f4a7c15
	return int((h ^ h>>32) & uint64(len(x.bySize)-1))
}

func (x *index) after(at int) int { return (at + 1) & (len(x.bySize) - 1) }

// enter makes a node known by its size. At most half of the places are taken.
func (x *index) enter(n int32) {
	if 2*(x.full+x.empty+1) > len(x.bySize) {
		old := x.bySize
		x.bySize = make([]int32, 2*len(old))
		for _, n := range old {
			if n != 0 {
				x.place(n)
			}
		}
	}
	x.place(n)
}

func (x *index) place(n int32) {
	at := x.hash(x.nodes[n].section, x.nodes[n].size)
	for x.bySize[at] != 0 {
		at = x.after(at)
	}
	x.bySize[at] = n
}

// leave makes a node unknown, and moves those closer to where they are looked for that it kept away from there.
func (x *index) leave(n int32) {
	hole := x.hash(x.nodes[n].section, x.nodes[n].size)
	for x.bySize[hole] != n {
		hole = x.after(hole)
	}
	for at := x.after(hole); x.bySize[at] != 0; at = x.after(at) {
		m := x.bySize[at]
		first := x.hash(x.nodes[m].section, x.nodes[m].size)
		if mask := len(x.bySize) - 1; (at-first)&mask >= (at-hole)&mask {
			x.bySize[hole], hole = m, at
		}
	}
	x.bySize[hole] = 0
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
	n := x.find(section, size)
	if n == 0 {
		n = x.forest.AtLeast(&x.sections[section], size)
	}
	for passed := 0; n != 0 && x.nodes[n].count == 0; passed++ {
		empty := n
		n = x.nodes[n].larger
		x.pass(empty, passed)
	}
	return x.nodes[n].newest
}

// last returns the latest of the largest blocks, 0 when there is none.
func (x *index) last(section int32) int32 {
	n := x.forest.Last(&x.sections[section])
	for passed := 0; n != 0 && x.nodes[n].count == 0; passed++ {
		empty := n
		n = x.nodes[n].smaller
		x.pass(empty, passed)
	}
	return x.nodes[n].newest
}

// pass removes an empty size when a search has passed by enough of them.
func (x *index) pass(n int32, passed int) {
	if passed >= passMax {
		x.removeNode(n)
	}
}

// sizeOf returns the size of a block that is in the index.
func (x *index) sizeOf(i int32) uint64 { return x.nodes[x.links[i].node].size }

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
	tree := &x.sections[section]
	larger := x.forest.AtLeast(tree, size)
	smaller := x.nodes[larger].smaller
	if larger == 0 {
		smaller = x.forest.Last(tree)
	}
	x.nodes[n] = sized{size: size, section: section, smaller: smaller, larger: larger}
	x.join(smaller, n)
	x.join(n, larger)
	x.forest.Insert(tree, n, size, 0)
	x.enter(n)
	x.full++
	return n
}

// join makes two nodes neighbours, of which one may be 0.
func (x *index) join(smaller, larger int32) {
	if smaller != 0 {
		x.nodes[smaller].larger = larger
	}
	if larger != 0 {
		x.nodes[larger].smaller = smaller
	}
}

// removeNode forgets an empty node.
func (x *index) removeNode(n int32) {
	x.leaveIdle(n)
	x.join(x.nodes[n].smaller, x.nodes[n].larger)
	section := x.nodes[n].section
	x.leave(n)
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
