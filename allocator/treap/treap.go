// Package treap has treaps (Seidel and Aragon 1996) that are keyed by size and find the smallest node that is large
// enough. The nodes are in a forest, by number, so that moving them in and out of trees allocates nothing. Priorities
// are computed from the numbers: the same calls make the same trees. The caller serialises all calls. Each costs O(n);
// all other operations have an expected cost of O(log n).
package treap

// Tree orders nodes of one forest by size, and by a second key among equals. The zero Tree is empty.
type Tree struct {
	Root  int32 // 0: empty; node numbers start at 1
	Count int
}

// Forest holds the nodes of many trees. Nodes have the caller's numbers; each is in at most one tree. The zero Forest has
// no nodes.
type Forest struct{ nodes []node }

type node struct {
	size        uint64
	order       uint64 // smaller comes first
	left, right int32
	priority    uint32
}

// pseudoRandomPriority turns a node's number into a priority that looks random and is the same in every run.
func pseudoRandomPriority(x uint64) uint32 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return uint32(x)
}

// Grow makes sure that nodes 1 to n exist. It moves nothing and never shrinks.
func (f *Forest) Grow(n int) {
	for len(f.nodes) <= n {
		f.nodes = append(f.nodes, node{priority: pseudoRandomPriority(uint64(len(f.nodes)) + 1)})
	}
}

// Size returns the size with which node i was last inserted.
func (f *Forest) Size(i int32) uint64 { return f.nodes[i].size }

// Less reports whether node a comes before node b, by the keys with which they were last inserted.
func (f *Forest) Less(a, b int32) bool {
	x, y := &f.nodes[a], &f.nodes[b]
	if x.size != y.size {
		return x.size < y.size
	}
	return x.order < y.order
}

// Insert adds node i, which is in no tree, with keys that no other node of the tree has.
func (f *Forest) Insert(t *Tree, i int32, size, order uint64) {
	n := &f.nodes[i]
	n.size, n.order, n.left, n.right = size, order, 0, 0
	at := &t.Root
	for *at != 0 && f.nodes[*at].priority >= n.priority {
		if f.Less(i, *at) {
			at = &f.nodes[*at].left
		} else {
			at = &f.nodes[*at].right
		}
	}
	n.left, n.right = f.split(*at, i)
	*at = i
	t.Count++
}

// split divides the subtree at root into the nodes before and after the key of node i.
func (f *Forest) split(root, i int32) (before, after int32) {
	left, right := &before, &after
	for root != 0 {
		if f.Less(root, i) {
			*left = root
			left = &f.nodes[root].right
			root = *left
		} else {
			*right = root
			right = &f.nodes[root].left
			root = *right
		}
	}
	*left, *right = 0, 0
	return before, after
}

// Remove removes node i, which is in the tree.
func (f *Forest) Remove(t *Tree, i int32) {
	at := &t.Root
	for *at != i {
		if f.Less(i, *at) {
			at = &f.nodes[*at].left
		} else {
			at = &f.nodes[*at].right
		}
	}
	*at = f.join(f.nodes[i].left, f.nodes[i].right)
	t.Count--
}

// join makes one subtree of two, where all nodes of a come before all nodes of b.
func (f *Forest) join(a, b int32) (root int32) {
	at := &root
	for a != 0 && b != 0 {
		if f.nodes[a].priority >= f.nodes[b].priority {
			*at = a
			at = &f.nodes[a].right
			a = *at
		} else {
			*at = b
			at = &f.nodes[b].left
			b = *at
		}
	}
	*at = a | b
	return root
}

// SmallestAtLeast returns the first node whose size is size or more, 0 when there is none.
func (f *Forest) SmallestAtLeast(t *Tree, size uint64) (found int32) {
	for at := t.Root; at != 0; {
		n := &f.nodes[at]
		if n.size >= size {
			found, at = at, n.left
		} else {
			at = n.right
		}
	}
	return found
}

// Last returns the last node, one of the largest; 0 when the tree is empty.
func (f *Forest) Last(t *Tree) (found int32) {
	for at := t.Root; at != 0; at = f.nodes[at].right {
		found = at
	}
	return found
}

// Each visits the nodes in order. The tree must not change meanwhile.
func (f *Forest) Each(t *Tree, visit func(i int32)) {
	var walk func(int32)
	walk = func(i int32) {
		if i != 0 {
			walk(f.nodes[i].left)
			visit(i)
			walk(f.nodes[i].right)
		}
	}
	walk(t.Root)
}
