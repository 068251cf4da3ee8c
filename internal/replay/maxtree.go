package replay

// maxTree are counters in a row, of which a beginning is raised or lowered together, and the highest that each ever
// was. Each step costs O(log n): a tree over the counters, in which a node keeps what is still to be added to its whole
// range.
type maxTree struct {
	leaves int
	sum    []int // by node: what is still to be added to all below
	high   []int // the highest that sum was since it was passed on; not below 0
}

func newMaxTree(n int) maxTree {
	leaves := 1
	for leaves < n {
		leaves *= 2
	}
	return maxTree{leaves, make([]int, 2*leaves), make([]int, 2*leaves)}
}

// add adds to the counters 0 … last.
func (h *maxTree) add(last, n int) {
	node, low, width := 1, 0, h.leaves
	for low+width-1 > last {
		h.pass(node)
		width /= 2
		node *= 2
		if low+width <= last { // all of the left half, and some of the right one
			h.push(node, n, max(n, 0))
			node, low = node+1, low+width
		}
	}
	h.push(node, n, max(n, 0))
}

// push adds to all counters below a node, which reached high on the way there.
func (h *maxTree) push(node, sum, high int) {
	h.high[node] = max(h.high[node], h.sum[node]+high)
	h.sum[node] += sum
}

// pass tells the two halves of a node what is to be added to it.
func (h *maxTree) pass(node int) {
	if h.sum[node] == 0 && h.high[node] == 0 {
		return
	}
	h.push(2*node, h.sum[node], h.high[node])
	h.push(2*node+1, h.sum[node], h.high[node])
	h.sum[node], h.high[node] = 0, 0
}

// most returns the highest that each counter ever was, with some surplus ones at the end.
func (h *maxTree) most() []int {
	for node := 1; node < h.leaves; node++ {
		h.pass(node)
	}
	return h.high[h.leaves:]
}
