package allocator

// A tree orders blocks by size, and by age among equals: the most recently freed comes first. It is a treap whose
// nodes live in a forest, by number, so that moving blocks in and out allocates nothing. A node is in at most one
// tree per forest.
type tree struct {
	root  int32 // 0: empty; node numbers start at 1
	count int
}

type node struct {
	size        uint64
	order       uint64 // smaller is more recent
	left, right int32
	priority    uint32
}

// forest holds the nodes of many trees. Node i belongs to the block with that number.
type forest struct{ nodes []node }

// mixed turns a number into a priority that looks random and is the same in every run.
func mixed(x uint64) uint32 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return uint32(x)
}

func (f *forest) grow(n int) {
	for len(f.nodes) <= n {
		f.nodes = append(f.nodes, node{priority: mixed(uint64(len(f.nodes)) + 1)})
	}
}

func (f *forest) less(a, b int32) bool {
	x, y := &f.nodes[a], &f.nodes[b]
	if x.size != y.size {
		return x.size < y.size
	}
	return x.order < y.order
}

// insert adds node i with a key that no other node of the tree has.
func (f *forest) insert(t *tree, i int32, size, order uint64) {
	n := &f.nodes[i]
	n.size, n.order, n.left, n.right = size, order, 0, 0
	at := &t.root
	for *at != 0 && f.nodes[*at].priority >= n.priority {
		if f.less(i, *at) {
			at = &f.nodes[*at].left
		} else {
			at = &f.nodes[*at].right
		}
	}
	n.left, n.right = f.split(*at, i)
	*at = i
	t.count++
}

// split parts the subtree at root into what comes before the key of node i and what comes after it.
func (f *forest) split(root, i int32) (before, after int32) {
	left, right := &before, &after
	for root != 0 {
		if f.less(root, i) {
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

// remove takes out node i, which is in the tree.
func (f *forest) remove(t *tree, i int32) {
	at := &t.root
	for *at != i {
		if f.less(i, *at) {
			at = &f.nodes[*at].left
		} else {
			at = &f.nodes[*at].right
		}
	}
	*at = f.join(f.nodes[i].left, f.nodes[i].right)
	t.count--
}

// join makes one subtree of two, all of a before all of b.
func (f *forest) join(a, b int32) (root int32) {
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

// atLeast returns the first node whose size is size or more, 0 when there is none.
func (f *forest) atLeast(t *tree, size uint64) (found int32) {
	for at := t.root; at != 0; {
		n := &f.nodes[at]
		if n.size >= size {
			found, at = at, n.left
		} else {
			at = n.right
		}
	}
	return found
}

// each visits the nodes in order.
func (f *forest) each(t *tree, visit func(i int32)) {
	var walk func(int32)
	walk = func(i int32) {
		if i != 0 {
			walk(f.nodes[i].left)
			visit(i)
			walk(f.nodes[i].right)
		}
	}
	walk(t.root)
}
