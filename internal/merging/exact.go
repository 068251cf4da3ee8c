package merging

import (
	"cmp"
	"slices"
)

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
	byBytes, byBlocks := cmp.Compare(bytes, s.bytes), cmp.Compare(len(s.groups), s.blocks)
	if s.byCount {
		return cmp.Or(byBlocks, byBytes) < 0
	}
	return cmp.Or(byBytes, byBlocks) < 0
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
