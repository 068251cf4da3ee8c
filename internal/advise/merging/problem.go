package merging

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// Problem asks which blocks can share one. Blocks have spans, or Edges say which of them interfere.
type Problem struct {
	Blocks []Block // in the order of their first use
	// Edges are symmetric: Edges[x] contains y if Edges[y] contains x. Nil: spans decide.
	Edges []map[int]bool
	// Max allows different sizes in one block, which is then as large as the largest: the thesis' max trick.
	Max bool
}

// Block is a request for memory.
type Block struct {
	Size  uint64
	Class uint32
	// Fixed says that the memory comes from the caller. Others may use it later, but it cannot be in another block, and
	// its size stays.
	Fixed bool
	// Created is when the block is allocated, Known when its size is known: a block can be made larger for others
	// only if the size of one of them that is as large as each is known when the block is allocated.
	Created, Known int
	Spans          []Span // sorted and disjoint
}

// Grouping is a solution: groups of blocks. The blocks of a group share one block.
type Grouping struct {
	Method string
	Groups [][]int  // each in the order of creation, sorted by their first blocks
	Sizes  []uint64 // of the groups' blocks
	Bytes  uint64   // of all blocks
	// Optimal says that no grouping has fewer bytes, or fewer blocks if that was asked for.
	Optimal bool
}

// blocksInterfere reports whether two blocks interfere.
func (p *Problem) blocksInterfere(x, y int) bool {
	if p.Edges != nil {
		return p.Edges[x][y]
	}
	return haveOverlap(p.Blocks[x].Spans, p.Blocks[y].Spans)
}

// group is a group of blocks while a grouping is made.
type group struct {
	members []int
	head    int // the block that is created first
	size    uint64
	spans   []Span // of all members, sorted; empty if edges decide
}

func (p *Problem) newGroup(x int) *group {
	b := &p.Blocks[x]
	return &group{members: []int{x}, head: x, size: b.Size, spans: slices.Clone(b.Spans)}
}

// hasNoConflict reports whether a block interferes with no block of a group.
func (p *Problem) hasNoConflict(g *group, x int) bool {
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

// fitsInGroup reports whether a block's size and class allow it in a group.
func (p *Problem) fitsInGroup(g *group, x int) bool {
	if p.isOlder(x, g.head) {
		return p.canShare(append([]int{x}, g.members...))
	}
	head := &p.Blocks[g.head]
	return p.fitsInGroupOf(head, &p.Blocks[x], max(g.size, head.largestSizeFor(&p.Blocks[x])))
}

// largestSizeFor returns how large a block may be made for another one: as large as that if its size is known in time.
func (b *Block) largestSizeFor(other *Block) uint64 {
	if !b.Fixed && other.Known <= b.Created {
		return max(b.Size, other.Size)
	}
	return b.Size
}

// fitsInGroupOf reports whether a block can be in the group of an older one whose block has so much room.
func (p *Problem) fitsInGroupOf(head, b *Block, room uint64) bool {
	return b.Class == head.Class && !b.Fixed && (b.Size == head.Size || p.Max && b.Size <= room)
}

// isOlder reports whether block x is created before y.
func (p *Problem) isOlder(x, y int) bool { return p.compareByCreation(x, y) < 0 }

// canShare reports whether sizes and classes allow blocks to share one. The first of them is created first.
func (p *Problem) canShare(members []int) bool { return p.firstMisfit(members) < 0 }

// firstMisfit returns the first member that the members' block cannot hold; -1: there is none. The first of them is created first.
func (p *Problem) firstMisfit(members []int) int {
	head := &p.Blocks[members[0]]
	room := head.Size
	for _, m := range members[1:] {
		room = max(room, head.largestSizeFor(&p.Blocks[m]))
	}
	for _, m := range members[1:] {
		if !p.fitsInGroupOf(head, &p.Blocks[m], room) {
			return m
		}
	}
	return -1
}

// addToGroup adds a block to a group.
func (p *Problem) addToGroup(g *group, x int) {
	g.members = append(g.members, x)
	g.size = max(g.size, p.Blocks[x].Size)
	if p.isOlder(x, g.head) {
		g.head = x
	}
	if p.Edges == nil {
		for _, s := range p.Blocks[x].Spans {
			i := sort.Search(len(g.spans), func(i int) bool { return g.spans[i].From > s.From })
			g.spans = slices.Insert(g.spans, i, s)
		}
	}
}

// groupingOf makes a grouping of groups.
func (p *Problem) groupingOf(method string, groups []*group) *Grouping {
	plan := &Grouping{Method: method}
	for _, g := range groups {
		slices.SortFunc(g.members, p.compareByCreation)
	}
	slices.SortFunc(groups, func(a, b *group) int { return p.compareByCreation(a.members[0], b.members[0]) })
	for _, g := range groups {
		plan.Groups = append(plan.Groups, g.members)
		plan.Sizes = append(plan.Sizes, g.size)
		plan.Bytes += g.size
	}
	return plan
}

// compareByCreation orders blocks by creation.
func (p *Problem) compareByCreation(x, y int) int {
	return cmp.Or(cmp.Compare(p.Blocks[x].Created, p.Blocks[y].Created), cmp.Compare(x, y))
}

// Conflict is two blocks that a grouping must not put together.
type Conflict struct {
	X, Y int
	Why  string
}

func (c Conflict) String() string { return fmt.Sprintf("%d and %d: %s", c.X, c.Y, c.Why) }

// FindConflicts returns the errors of a grouping: pairs that interfere, sizes that do not fit, blocks that are missing or occur
// twice (as a pair with itself).
func (p *Problem) FindConflicts(plan *Grouping) []Conflict {
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
	members = slices.SortedFunc(slices.Values(members), p.compareByCreation)
	if len(members) > 0 {
		if m := p.firstMisfit(members); m >= 0 {
			found = append(found, Conflict{members[0], m, "sizes or classes differ"})
		}
	}
	if p.Edges == nil {
		return append(found, p.checkSpans(members)...)
	}
	for i, x := range members {
		for _, y := range members[i+1:] {
			if p.blocksInterfere(x, y) {
				found = append(found, Conflict{x, y, "interfere"})
			}
		}
	}
	return found
}

// checkSpans finds members whose spans overlap. The spans are sorted by their begins, so it suffices to compare each
// with the one that ends last.
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
