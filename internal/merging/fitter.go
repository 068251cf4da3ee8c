package merging

import (
	"container/heap"
	"slices"
	"sort"
)

// fitter is the best fit as far as it has got.
type fitter struct {
	problem *Problem
	groups  []*group
	busy    waiting
	free    map[uint32]*shelf // by class
}

// busy is a group in use until a step.
type busy struct {
	until int
	group *group
}

// waiting has the group on top that is free first.
type waiting []busy

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, j int) bool { return w[i].until < w[j].until }
func (w waiting) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *waiting) Push(x any)        { *w = append(*w, x.(busy)) }

// Pop removes the last one.
func (w *waiting) Pop() any {
	old := *w
	last := old[len(old)-1]
	*w = old[:len(old)-1]
	return last
}

func (w *waiting) push(b busy) { heap.Push(w, b) }

// shelf has the free groups of a class by size.
type shelf struct {
	sizes []uint64
	stock map[uint64][]*group // never empty
}

// retire shelves the groups that are free at a step.
func (f *fitter) retire(step int) {
	for len(f.busy) > 0 && f.busy[0].until <= step {
		g := heap.Pop(&f.busy).(busy).group
		class := f.problem.Blocks[g.head].Class
		s := f.free[class]
		if s == nil {
			s = &shelf{stock: map[uint64][]*group{}}
			f.free[class] = s
		}
		if i, found := slices.BinarySearch(s.sizes, g.size); !found {
			s.sizes = slices.Insert(s.sizes, i, g.size)
		}
		s.stock[g.size] = append(s.stock[g.size], g)
	}
}

// take returns the free group that suits a block best: the smallest that is large enough, or else the largest.
func (f *fitter) take(x int) *group {
	b := &f.problem.Blocks[x]
	s := f.free[b.Class]
	if s == nil {
		return nil
	}
	at := sort.Search(len(s.sizes), func(i int) bool { return s.sizes[i] >= b.Size })
	for i := at; i < len(s.sizes); i++ {
		if g := f.from(s, i, x); g != nil {
			return g
		}
		if !f.problem.Max {
			return nil
		}
	}
	for i := at - 1; i >= 0 && f.problem.Max; i-- {
		if g := f.from(s, i, x); g != nil {
			return g
		}
	}
	return nil
}

// from takes a group of one size off the shelf that can hold a block, nil when none of the latest few can.
func (f *fitter) from(s *shelf, i, x int) *group {
	size := s.sizes[i]
	stock := s.stock[size]
	for j := len(stock) - 1; j >= max(0, len(stock)-8); j-- {
		g := stock[j]
		if !f.problem.fits(g, x) {
			continue
		}
		stock = slices.Delete(stock, j, j+1)
		s.stock[size] = stock
		if len(stock) == 0 {
			delete(s.stock, size)
			s.sizes = slices.Delete(s.sizes, i, i+1)
		}
		return g
	}
	return nil
}
