package merging

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// Problem asks which blocks can be one. Either blocks have spans, or Edges say which of them interfere.
type Problem struct {
	Blocks []Block // in the order of their first use
	// Edges are symmetric: Edges[x] has y when Edges[y] has x. Nil: spans decide.
	Edges []map[int]bool
	// Max allows different sizes in one block, which is then as large as the largest: the thesis' max trick.
	Max bool
}

// Block is what asks for memory.
type Block struct {
	Size  uint64
	Class uint32
	// Fixed memory is the caller's: others may come into it, but it comes into no other block, and its size stays.
	Fixed bool
	// Created is when it is allocated, Known when its size is: a block can be made larger for another one only if that
	// one's size is known when the block is allocated.
	Created, Known int
	Spans          []Span // sorted and disjoint
}

// Plan is a solution: groups of blocks that share one.
type Plan struct {
	Method string
	Groups [][]int  // each in the order of creation, and in that of their first blocks
	Sizes  []uint64 // of the groups' blocks
	Bytes  uint64   // of all blocks
	// Optimal is set when no plan for the same problem has fewer bytes, or fewer blocks where that was asked for.
	Optimal bool
}

// interfere reports whether two blocks do.
func (p *Problem) interfere(x, y int) bool {
	if p.Edges != nil {
		return p.Edges[x][y]
	}
	return overlap(p.Blocks[x].Spans, p.Blocks[y].Spans)
}

// group is blocks that share one, as far as a plan has got.
type group struct {
	members []int
	head    int // created first: its create makes the block
	size    uint64
	spans   []Span // of all members, sorted; empty when edges decide
}

func (p *Problem) newGroup(x int) *group {
	b := &p.Blocks[x]
	return &group{members: []int{x}, head: x, size: b.Size, spans: slices.Clone(b.Spans)}
}

// free reports whether a block interferes with none of a group.
func (p *Problem) free(g *group, x int) bool {
	if p.Edges != nil {
		return !slices.ContainsFunc(g.members, func(m int) bool { return p.Edges[x][m] })
	}
	for _, s := range p.Blocks[x].Spans {
		i := sort.Search(len(g.spans), func(i int) bool { return g.spans[i].To > s.From })
		if i < len(g.spans) && g.spans[i].From < s.To {
			return false
		}
	}
	return true
}

// fits reports whether a block's size and class allow it in a group.
func (p *Problem) fits(g *group, x int) bool {
	b, head := &p.Blocks[x], &p.Blocks[g.head]
	if b.Class != head.Class {
		return false
	}
	if p.older(x, g.head) {
		return p.suits(append([]int{x}, g.members...))
	}
	return !b.Fixed && (b.Size == g.size && b.Size == head.Size || p.Max && p.room(head, b))
}

// room reports whether a block can hold another one, made larger where needed.
func (p *Problem) room(head, b *Block) bool {
	return b.Size <= head.Size || !head.Fixed && b.Known <= head.Created
}

// older reports whether x is created before y.
func (p *Problem) older(x, y int) bool { return p.order(x, y) < 0 }

// suits reports whether sizes and classes allow blocks to be one, the first of which is created first.
func (p *Problem) suits(members []int) bool {
	head := &p.Blocks[members[0]]
	for _, m := range members[1:] {
		b := &p.Blocks[m]
		if b.Class != head.Class || b.Fixed || b.Size != head.Size && (!p.Max || !p.room(head, b)) {
			return false
		}
	}
	return true
}

// put adds a block to a group.
func (p *Problem) put(g *group, x int) {
	g.members = append(g.members, x)
	g.size = max(g.size, p.Blocks[x].Size)
	if p.older(x, g.head) {
		g.head = x
	}
	if p.Edges == nil {
		for _, s := range p.Blocks[x].Spans {
			i := sort.Search(len(g.spans), func(i int) bool { return g.spans[i].From > s.From })
			g.spans = slices.Insert(g.spans, i, s)
		}
	}
}

// plan makes a plan of groups.
func (p *Problem) plan(method string, groups []*group) *Plan {
	plan := &Plan{Method: method}
	for _, g := range groups {
		slices.SortFunc(g.members, p.order)
	}
	slices.SortFunc(groups, func(a, b *group) int { return p.order(a.members[0], b.members[0]) })
	for _, g := range groups {
		plan.Groups = append(plan.Groups, g.members)
		plan.Sizes = append(plan.Sizes, g.size)
		plan.Bytes += g.size
	}
	return plan
}

func (p *Problem) order(x, y int) int {
	return cmp.Or(cmp.Compare(p.Blocks[x].Created, p.Blocks[y].Created), cmp.Compare(x, y))
}

// Conflict is two blocks that a plan must not put into one.
type Conflict struct {
	X, Y int
	Why  string
}

func (c Conflict) String() string { return fmt.Sprintf("%d and %d: %s", c.X, c.Y, c.Why) }

// Check returns what is wrong with a plan: pairs that interfere, sizes that do not fit, blocks that are missing or come
// twice (as a pair with itself).
func (p *Problem) Check(plan *Plan) []Conflict {
	var found []Conflict
	seen := make([]int, len(p.Blocks))
	for i, members := range plan.Groups {
		for _, m := range members {
			seen[m]++
		}
		found = append(found, p.checkGroup(members)...)
		if len(plan.Sizes) != len(plan.Groups) {
			continue
		}
		for _, m := range members {
			if p.Blocks[m].Size > plan.Sizes[i] {
				found = append(found, Conflict{m, m, "is larger than its block"})
			}
		}
	}
	for x, n := range seen {
		if n != 1 {
			found = append(found, Conflict{x, x, fmt.Sprintf("is in %d blocks", n)})
		}
	}
	return found
}

func (p *Problem) checkGroup(members []int) []Conflict {
	var found []Conflict
	members = slices.SortedFunc(slices.Values(members), p.order)
	for _, m := range members[min(1, len(members)):] {
		if !p.suits([]int{members[0], m}) {
			found = append(found, Conflict{members[0], m, "sizes or classes differ"})
		}
	}
	if p.Edges == nil {
		return append(found, p.checkSpans(members)...)
	}
	for i, x := range members {
		for _, y := range members[i+1:] {
			if p.interfere(x, y) {
				found = append(found, Conflict{x, y, "interfere"})
			}
		}
	}
	return found
}

// checkSpans finds members whose spans overlap: sorted by their begins, it is enough to look at the one that ends last.
func (p *Problem) checkSpans(members []int) []Conflict {
	type owned struct {
		Span
		owner int
	}
	var spans []owned
	for _, m := range members {
		for _, s := range p.Blocks[m].Spans {
			spans = append(spans, owned{s, m})
		}
	}
	slices.SortFunc(spans, func(a, b owned) int { return cmp.Compare(a.From, b.From) })
	var found []Conflict
	for i, last := 1, 0; i < len(spans); i++ {
		if spans[i].From < spans[last].To {
			found = append(found, Conflict{spans[last].owner, spans[i].owner, "interfere"})
		}
		if spans[i].To > spans[last].To {
			last = i
		}
	}
	return found
}
