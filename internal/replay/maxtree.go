package replay

// maxTree is a row of counters. add raises or lowers the counters from the first to any other together; peaks returns
// the largest value of each. A call costs O(log n): the tree's nodes hold what is still to be added to all counters
// below them.
type maxTree struct {
	leaves int
	sum    []int // by node: still to be added to all counters below
	high   []int // by node: the largest value of sum since it was pushed down; at least 0
}

func newMaxTree(n int) maxTree {
	leaves := 1
	for leaves < n {
		leaves *= 2
	}
	return maxTree{leaves, make([]int, 2*leaves), make([]int, 2*leaves)}
}

// addToFirst adds n to the counters 0 … last.
func (t *maxTree) addToFirst(last, n int) {
	node, low, width := 1, 0, t.leaves
	for low+width-1 > last {
		t.pushDown(node)
		width /= 2
		node *= 2
		if low+width <= last { // the whole left half, and some of the right half
			t.addToNode(node, n, max(n, 0))
			node, low = node+1, low+width
		}
	}
	t.addToNode(node, n, max(n, 0))
}

// addToNode adds sum to all counters below a node. On the way the sum reached high.
func (t *maxTree) addToNode(node, sum, high int) {
	t.high[node] = max(t.high[node], t.sum[node]+high)
	t.sum[node] += sum
}

// pushDown adds a node's sum to its two halves.
func (t *maxTree) pushDown(node int) {
	if t.sum[node] == 0 && t.high[node] == 0 {
		return
	}
	t.addToNode(2*node, t.sum[node], t.high[node])
	t.addToNode(2*node+1, t.sum[node], t.high[node])
	t.sum[node], t.high[node] = 0, 0
}

// peaks returns the largest value of each counter, followed by unused counters.
func (t *maxTree) peaks() []int {
	for node := 1; node < t.leaves; node++ {
		t.pushDown(node)
	}
	return t.high[t.leaves:]
}
