package treap

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

type item struct {
	size, order uint64
	node        int32
}

// TestAgainstSortedList compares trees that share a forest with sorted lists.
func TestAgainstSortedList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const nodes = 60
	var forest Forest
	forest.Grow(nodes)
	var trees [2]Tree
	var lists [2][]item
	for step := range 20_000 {
		i := int32(1 + rng.IntN(nodes))
		at := slices.IndexFunc(lists[:], func(l []item) bool {
			return slices.ContainsFunc(l, func(x item) bool { return x.node == i })
		})
		if at >= 0 {
			forest.Remove(&trees[at], i)
			lists[at] = slices.DeleteFunc(lists[at], func(x item) bool { return x.node == i })
		} else {
			at = rng.IntN(2)
			x := item{uint64(rng.IntN(20)), uint64(step), i}
			forest.Insert(&trees[at], i, x.size, x.order)
			lists[at] = append(lists[at], x)
			slices.SortFunc(lists[at], func(a, b item) int {
				return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.order, b.order))
			})
		}
		compare(t, &forest, &trees[at], lists[at], uint64(rng.IntN(22)))
	}
}

func compare(t *testing.T, forest *Forest, tree *Tree, list []item, size uint64) {
	t.Helper()
	var got []int32
	forest.Each(tree, func(i int32) { got = append(got, i) })
	var want []int32
	last, fits := int32(0), int32(0)
	for _, x := range list {
		want = append(want, x.node)
		last = x.node
		if fits == 0 && x.size >= size {
			fits = x.node
		}
		if forest.Size(x.node) != x.size {
			t.Fatalf("node %d has size %d, want %d", x.node, forest.Size(x.node), x.size)
		}
	}
	if !slices.Equal(got, want) || tree.Count != len(list) {
		t.Fatalf("the tree counts %d and holds %v, want %v", tree.Count, got, want)
	}
	if got := forest.SmallestAtLeast(tree, size); got != fits {
		t.Fatalf("the first of size %d is %d, want %d", size, got, fits)
	}
	if got := forest.Last(tree); got != last {
		t.Fatalf("the last is %d, want %d", got, last)
	}
}
