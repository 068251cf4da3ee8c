package merging

import (
	"cmp"
	"container/heap"
	"slices"
	"sort"
)

const (
	// checkBudget bounds how often the linear scan and the colouring check whether a block fits a group, before they
	// give up: a few seconds.
	checkBudget = 1 << 27
	// colourBlocks bounds how many blocks are coloured, because each is inserted into the middle of a group.
	colourBlocks = 1 << 14
	// exactBlocks and exactBudget bound the exact search: the blocks, and the checks of a group, which take some
	// hundredths of a second.
	exactBlocks = 64
	exactBudget = 1 << 23
)

// GroupLinearly is the thesis' linear scan (figure 5.18): each block, in order, joins the first group that it can reuse. ok is
// false if there are too many blocks.
func (p *Problem) GroupLinearly() (plan *Grouping, ok bool) {
	var groups []*group
	left := checkBudget
next:
	for x := range p.Blocks {
		if left -= len(groups); left < 0 {
			return nil, false
		}
		for _, g := range groups {
			if p.fitsInGroup(g, x) && p.hasNoConflict(g, x) {
				p.addToGroup(g, x)
				continue next
			}
		}
		groups = append(groups, p.newGroup(x))
	}
	return p.groupingOf("linear scan", groups), true
}

// GroupByColouring is greedy colouring by size: the largest block first, each joins the group whose size is nearest to its own.
// ok is false if there are too many blocks.
func (p *Problem) GroupByColouring() (plan *Grouping, ok bool) {
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
			if (best == nil || p.isSizeCloser(g, best, x)) && p.fitsInGroup(g, x) && p.hasNoConflict(g, x) {
				best = g
			}
		}
		if best == nil {
			groups = append(groups, p.newGroup(x))
			continue
		}
		p.addToGroup(best, x)
	}
	return p.groupingOf("greedy colouring", groups), true
}

// isSizeCloser reports whether a group's size is nearer to a block's size than another group's is.
func (p *Problem) isSizeCloser(g, than *group, x int) bool {
	return absoluteDifference(g.size, p.Blocks[x].Size) < absoluteDifference(than.size, p.Blocks[x].Size)
}

func absoluteDifference(x, y uint64) uint64 { return max(x, y) - min(x, y) }

// GroupBestFit takes blocks with spans in the order of their begins, as an allocator would, and gives each the free group
// that is nearest in size. It regards a block as in use from its first span to its last. It is fast for any number of
// blocks.
func (p *Problem) GroupBestFit() *Grouping {
	order := make([]int, len(p.Blocks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(p.beginOf(x), p.beginOf(y)) })
	f := fitter{problem: p, free: map[uint32]*groupList{}}
	for _, x := range order {
		f.listGroupsFreeAt(p.beginOf(x))
		g := f.takeBestFreeGroup(x)
		if g == nil {
			g = p.newGroup(x)
			f.groups = append(f.groups, g)
		} else {
			p.addToGroup(g, x)
		}
		heap.Push(&f.busy, busyGroup{p.endOf(x), g})
	}
	return p.groupingOf("best fit", f.groups)
}

func (p *Problem) beginOf(x int) int {
	if s := p.Blocks[x].Spans; len(s) > 0 {
		return s[0].From
	}
	return 0
}

func (p *Problem) endOf(x int) int {
	if s := p.Blocks[x].Spans; len(s) > 0 {
		return s[len(s)-1].To
	}
	return 0
}

// FindBestGrouping returns the best grouping that it finds: the fewest bytes, then the fewest blocks; with byCount the other way
// round. It solves small problems exactly. bound may be zero; a grouping that reaches it is optimal.
func (p *Problem) FindBestGrouping(bound Bound, byCount bool) *Grouping {
	linear, _ := p.GroupLinearly()
	return p.findBestGrouping(linear, bound, byCount)
}

// findBestGrouping is Solve with the result of the linear scan, nil if that gave up.
func (p *Problem) findBestGrouping(linear *Grouping, bound Bound, byCount bool) *Grouping {
	var best *Grouping
	consider := func(plan *Grouping) {
		if plan != nil && (best == nil || isBetterGrouping(plan, best, byCount)) {
			best = plan
		}
	}
	consider(linear)
	colour, _ := p.GroupByColouring()
	consider(colour)
	if p.Edges == nil {
		consider(p.GroupBestFit())
	}
	if best == nil { // the graph is too large: no blocks share
		groups := make([]*group, len(p.Blocks))
		for x := range p.Blocks {
			groups[x] = p.newGroup(x)
		}
		best = p.groupingOf("none", groups)
	}
	reached := best.Bytes == bound.Bytes && !byCount || len(best.Groups) == bound.Blocks && byCount
	best.Optimal = reached
	if !reached && len(p.Blocks) <= exactBlocks {
		best = p.searchExactly(best, byCount)
	}
	return best
}

// isBetterGrouping compares groupings by the figure that was asked for, then by the other.
func isBetterGrouping(x, y *Grouping, byCount bool) bool {
	return isFewerBytesOrBlocks(cmp.Compare(x.Bytes, y.Bytes), cmp.Compare(len(x.Groups), len(y.Groups)), byCount)
}

func isFewerBytesOrBlocks(bytes, blocks int, byCount bool) bool {
	if byCount {
		return cmp.Or(blocks, bytes) < 0
	}
	return cmp.Or(bytes, blocks) < 0
}

// fitter is the state of GroupBestFit.
type fitter struct {
	problem *Problem
	groups  []*group
	busy    busyHeap
	free    map[uint32]*groupList // by class
}

// busyGroup is a group that is in use until a step.
type busyGroup struct {
	until int
	group *group
}

// busyHeap is a heap with the group on top that is free first.
type busyHeap []busyGroup

func (w busyHeap) Len() int           { return len(w) }
func (w busyHeap) Less(i, j int) bool { return w[i].until < w[j].until }
func (w busyHeap) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *busyHeap) Push(x any)        { *w = append(*w, x.(busyGroup)) }

// Pop removes the last element.
func (w *busyHeap) Pop() any {
	old := *w
	last := old[len(old)-1]
	*w = old[:len(old)-1]
	return last
}

// groupList holds the free groups of a class by size.
type groupList struct {
	sizes []uint64
	stock map[uint64][]*group // by size; no list is empty
}

// listGroupsFreeAt moves the groups that are free at a step to the free lists.
func (f *fitter) listGroupsFreeAt(step int) {
	for len(f.busy) > 0 && f.busy[0].until <= step {
		g := heap.Pop(&f.busy).(busyGroup).group
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

// takeBestFreeGroup takes the free group that suits a block best: the smallest that is large enough, or else the largest.
func (f *fitter) takeBestFreeGroup(x int) *group {
	b := &f.problem.Blocks[x]
	s := f.free[b.Class]
	if s == nil {
		return nil
	}
	index := sort.Search(len(s.sizes), func(i int) bool { return s.sizes[i] >= b.Size })
	for i := index; i < len(s.sizes); i++ {
		if g := f.takeGroupOfSize(s, i, x); g != nil {
			return g
		}
		if !f.problem.Max {
			return nil
		}
	}
	for i := index - 1; i >= 0 && f.problem.Max; i-- {
		if g := f.takeGroupOfSize(s, i, x); g != nil {
			return g
		}
	}
	return nil
}

// takeGroupOfSize takes a group of one size off the free list that can hold a block, nil if none of the latest eight can.
func (f *fitter) takeGroupOfSize(s *groupList, i, x int) *group {
	size := s.sizes[i]
	stock := s.stock[size]
	for j := len(stock) - 1; j >= max(0, len(stock)-8); j-- {
		g := stock[j]
		if !f.problem.fitsInGroup(g, x) {
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

// searchExactly searches all groupings for a better one, block by block in the order of creation, so that a group's first block
// is created first and the group's size only grows. If the search takes too much work it gives up; otherwise the result
// is optimal. There are at most 64 blocks.
func (p *Problem) searchExactly(best *Grouping, byCount bool) *Grouping {
	s := search{problem: p, byCount: byCount, budget: exactBudget, bytes: best.Bytes, blocks: len(best.Groups)}
	for x := range p.Blocks {
		s.order = append(s.order, x)
		var edges, misfits uint64
		for y := range p.Blocks {
			if x != y && p.blocksInterfere(x, y) {
				edges |= 1 << y
			}
			if x != y && !p.canEverShare(y, x) {
				misfits |= 1 << y
			}
		}
		s.edges, s.misfits = append(s.edges, edges), append(s.misfits, misfits)
	}
	slices.SortFunc(s.order, p.compareByCreation)
	s.searchGroupsFrom(0, 0)
	if s.found != nil {
		best = p.groupingOf("exact", s.found)
	}
	best.Optimal = s.budget > 0
	return best
}

// canEverShare reports whether the group of an older block can hold x: alone, or together with a third block for which the group's block is
// made larger.
func (p *Problem) canEverShare(head, x int) bool {
	for third := range p.Blocks { // x itself: alone
		if third != head && p.canShare([]int{head, x, third}) {
			return true
		}
	}
	return false
}

// search is a branch and bound search.
type search struct {
	problem *Problem
	byCount bool
	order   []int
	edges   []uint64 // by block: the blocks that interfere
	misfits []uint64 // by block: the blocks whose group it can never join, if they were created first
	budget  int      // checks of groups, and blocks placed, that are left

	groups []bitGroup
	bytes  uint64 // of the best grouping
	blocks int
	found  []*group // the best grouping, nil while it is the given one
}

// bitGroup is a group with its blocks as bits.
type bitGroup struct {
	members uint64
	head    int
	size    uint64
	room    uint64 // what its block may be made for: as large as this
}

// searchGroupsFrom places the blocks from order[index] on; bytes are those of the groups so far.
func (s *search) searchGroupsFrom(index int, bytes uint64) {
	if s.budget--; s.budget <= 0 || !s.canBecomeBetter(bytes) {
		return
	}
	if index == len(s.order) {
		if slices.ContainsFunc(s.groups, func(g bitGroup) bool { return g.size > g.room }) {
			return // no member that would make its block large enough has come
		}
		s.bytes, s.blocks = bytes, len(s.groups)
		s.keepAsBestGrouping()
		return
	}
	x := s.order[index]
	b := &s.problem.Blocks[x]
	for i := range s.groups {
		g := s.groups[i]
		s.budget--
		if g.members&s.edges[x] != 0 || s.misfits[x]>>g.head&1 == 1 {
			continue
		}
		grown, head := max(g.size, b.Size), &s.problem.Blocks[g.head]
		s.groups[i] = bitGroup{g.members | 1<<x, g.head, grown, max(g.room, head.largestSizeFor(b))}
		s.searchGroupsFrom(index+1, bytes-g.size+grown)
		s.groups[i] = g
	}
	s.groups = append(s.groups, bitGroup{1 << x, x, b.Size, b.Size})
	s.searchGroupsFrom(index+1, bytes+b.Size)
	s.groups = s.groups[:len(s.groups)-1]
}

// canBecomeBetter reports whether the groups so far can still become a better grouping: neither figure ever falls.
func (s *search) canBecomeBetter(bytes uint64) bool {
	return isFewerBytesOrBlocks(cmp.Compare(bytes, s.bytes), cmp.Compare(len(s.groups), s.blocks), s.byCount)
}

func (s *search) keepAsBestGrouping() {
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
