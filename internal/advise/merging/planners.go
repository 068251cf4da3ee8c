package merging

import (
	"cmp"
	"container/heap"
	"slices"
	"sort"
)

const (
	// checkBudget is how often the linear scan and the colouring look whether a block fits a group, before they give
	// up: a few seconds.
	checkBudget = 1 << 27
	// colourBlocks is how many blocks are coloured: each goes into the middle of a group.
	colourBlocks = 1 << 14
	// exactBlocks and exactBudget bound the exact search, the latter in looks at a group: some hundredths of a second.
	exactBlocks = 64
	exactBudget = 1 << 23
)

// Linear is the thesis' linear scan (figure 5.18): each block, in order, goes into the first one it can reuse. ok is
// false when there are too many blocks for it.
func (p *Problem) Linear() (plan *Plan, ok bool) {
	var groups []*group
	left := checkBudget
next:
	for x := range p.Blocks {
		if left -= len(groups); left < 0 {
			return nil, false
		}
		for _, g := range groups {
			if p.fits(g, x) && p.free(g, x) {
				p.put(g, x)
				continue next
			}
		}
		groups = append(groups, p.newGroup(x))
	}
	return p.plan("linear scan", groups), true
}

// Colour is greedy colouring by sizes: the largest block first, each into the group that it makes largest by least and
// wastes least in. ok is false when there are too many blocks for it.
func (p *Problem) Colour() (plan *Plan, ok bool) {
	if len(p.Blocks) > colourBlocks {
		return nil, false
	}
	order := make([]int, len(p.Blocks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(p.Blocks[y].Size, p.Blocks[x].Size) })
	var groups []*group
	left := checkBudget
	for _, x := range order {
		if left -= len(groups); left < 0 {
			return nil, false
		}
		var best *group
		for _, g := range groups {
			if (best == nil || p.closer(g, best, x)) && p.fits(g, x) && p.free(g, x) {
				best = g
			}
		}
		if best == nil {
			groups = append(groups, p.newGroup(x))
			continue
		}
		p.put(best, x)
	}
	return p.plan("greedy colouring", groups), true
}

// closer reports whether a group's size is nearer to a block's than another's is.
func (p *Problem) closer(g, than *group, x int) bool {
	return distance(g.size, p.Blocks[x].Size) < distance(than.size, p.Blocks[x].Size)
}

func distance(x, y uint64) uint64 { return max(x, y) - min(x, y) }

// BestFit goes through blocks with spans by their begins, as an allocator would, and takes the free group nearest in
// size. It regards a block as in use from its first span to its last, and is fast for any number of blocks.
func (p *Problem) BestFit() *Plan {
	order := make([]int, len(p.Blocks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(p.begin(x), p.begin(y)) })
	f := fitter{problem: p, free: map[uint32]*groupList{}}
	for _, x := range order {
		f.retire(p.begin(x))
		g := f.take(x)
		if g == nil {
			g = p.newGroup(x)
			f.groups = append(f.groups, g)
		} else {
			p.put(g, x)
		}
		heap.Push(&f.busy, busy{p.finish(x), g})
	}
	return p.plan("best fit", f.groups)
}

func (p *Problem) begin(x int) int {
	if s := p.Blocks[x].Spans; len(s) > 0 {
		return s[0].From
	}
	return 0
}

func (p *Problem) finish(x int) int {
	if s := p.Blocks[x].Spans; len(s) > 0 {
		return s[len(s)-1].To
	}
	return 0
}

// Solve returns the best plan it finds: fewest bytes, then fewest blocks; with byCount the other way round. Small
// problems are solved exactly. bound may be the zero value; a plan that reaches it is optimal.
func (p *Problem) Solve(bound Bound, byCount bool) *Plan {
	linear, _ := p.Linear()
	return p.solve(linear, bound, byCount)
}

// solve is Solve with what the linear scan gave, nil when it gave up.
func (p *Problem) solve(linear *Plan, bound Bound, byCount bool) *Plan {
	var best *Plan
	consider := func(plan *Plan) {
		if plan != nil && (best == nil || better(plan, best, byCount)) {
			best = plan
		}
	}
	consider(linear)
	colour, _ := p.Colour()
	consider(colour)
	if p.Edges == nil {
		consider(p.BestFit())
	}
	if best == nil { // a graph too large to search
		groups := make([]*group, len(p.Blocks))
		for x := range p.Blocks {
			groups[x] = p.newGroup(x)
		}
		best = p.plan("none", groups)
	}
	reached := best.Bytes == bound.Bytes && !byCount || len(best.Groups) == bound.Blocks && byCount
	best.Optimal = reached
	if !reached && len(p.Blocks) <= exactBlocks {
		best = p.exact(best, byCount)
	}
	return best
}

// better compares plans: by what was asked for, then by the other.
func better(x, y *Plan, byCount bool) bool {
	return fewer(cmp.Compare(x.Bytes, y.Bytes), cmp.Compare(len(x.Groups), len(y.Groups)), byCount)
}

func fewer(bytes, blocks int, byCount bool) bool {
	if byCount {
		return cmp.Or(blocks, bytes) < 0
	}
	return cmp.Or(bytes, blocks) < 0
}

// fitter is the best fit as far as it has got.
type fitter struct {
	problem *Problem
	groups  []*group
	busy    waiting
	free    map[uint32]*groupList // by class
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

// groupList has the free groups of a class by size.
type groupList struct {
	sizes []uint64
	stock map[uint64][]*group // never empty
}

// retire puts the groups that are free at a step on the free lists.
func (f *fitter) retire(step int) {
	for len(f.busy) > 0 && f.busy[0].until <= step {
		g := heap.Pop(&f.busy).(busy).group
		class := f.problem.Blocks[g.head].Class
		s := f.free[class]
		if s == nil {
			s = &groupList{stock: map[uint64][]*group{}}
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

// from takes a group of one size off the free list that can hold a block, nil when none of the latest few can.
func (f *fitter) from(s *groupList, i, x int) *group {
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

// exact searches all plans for a better one than a given one, block by block in the order of creation, so that a
// group's first block makes it and its size only grows. It gives up when that takes too much work; else the plan is optimal.
// There are at most 64 blocks.
func (p *Problem) exact(best *Plan, byCount bool) *Plan {
	s := search{problem: p, byCount: byCount, left: exactBudget, bytes: best.Bytes, blocks: len(best.Groups)}
	for x := range p.Blocks {
		s.order = append(s.order, x)
		var edges, misfits uint64
		for y := range p.Blocks {
			if x != y && p.interfere(x, y) {
				edges |= 1 << y
			}
			if x != y && !p.suits([]int{y, x}) {
				misfits |= 1 << y
			}
		}
		s.edges, s.misfits = append(s.edges, edges), append(s.misfits, misfits)
	}
	slices.SortFunc(s.order, p.order)
	s.descend(0, 0)
	if s.found != nil {
		best = p.plan("exact", s.found)
	}
	best.Optimal = s.left > 0
	return best
}

// search is a branch and bound.
type search struct {
	problem *Problem
	byCount bool
	order   []int
	edges   []uint64 // by block: those that interfere
	misfits []uint64 // by block: those whose group it cannot join, when they made it
	left    int      // groups that may still be looked at, and blocks placed

	groups []set
	bytes  uint64 // of the best plan
	blocks int
	found  []*group // the best plan, nil while it is the given one
}

// set is a group: its blocks as bits.
type set struct {
	members uint64
	head    int
	size    uint64
}

// descend places the blocks from order[at] on, with bytes in the groups so far.
func (s *search) descend(at int, bytes uint64) {
	if s.left--; s.left <= 0 || !s.promising(bytes) {
		return
	}
	if at == len(s.order) {
		s.bytes, s.blocks = bytes, len(s.groups)
		s.keep()
		return
	}
	x := s.order[at]
	b := &s.problem.Blocks[x]
	for i := range s.groups {
		g := s.groups[i]
		s.left--
		if g.members&s.edges[x] != 0 || s.misfits[x]>>g.head&1 == 1 {
			continue
		}
		grown := max(g.size, b.Size)
		s.groups[i] = set{g.members | 1<<x, g.head, grown}
		s.descend(at+1, bytes-g.size+grown)
		s.groups[i] = g
	}
	s.groups = append(s.groups, set{1 << x, x, b.Size})
	s.descend(at+1, bytes+b.Size)
	s.groups = s.groups[:len(s.groups)-1]
}

// promising reports whether the groups so far can still become a better plan: neither figure ever falls.
func (s *search) promising(bytes uint64) bool {
	return fewer(cmp.Compare(bytes, s.bytes), cmp.Compare(len(s.groups), s.blocks), s.byCount)
}

func (s *search) keep() {
	s.found = nil
	for _, set := range s.groups {
		g := &group{head: set.head, size: set.size}
		for x := range s.problem.Blocks {
			if set.members>>x&1 == 1 {
				g.members = append(g.members, x)
			}
		}
		s.found = append(s.found, g)
	}
}
