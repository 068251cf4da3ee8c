package merging

import (
	"cmp"
	"slices"
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
	f := fitter{problem: p, free: map[uint32]*shelf{}}
	for _, x := range order {
		f.retire(p.begin(x))
		g := f.take(x)
		if g == nil {
			g = p.newGroup(x)
			f.groups = append(f.groups, g)
		} else {
			p.put(g, x)
		}
		f.busy.push(busy{p.finish(x), g})
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
	bytes := cmp.Compare(x.Bytes, y.Bytes)
	blocks := cmp.Compare(len(x.Groups), len(y.Groups))
	if byCount {
		return cmp.Or(blocks, bytes) < 0
	}
	return cmp.Or(bytes, blocks) < 0
}
