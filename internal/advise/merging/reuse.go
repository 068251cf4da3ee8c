package merging

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Reuse is how few blocks one run needs.
type Reuse struct {
	Form   Form
	Max    bool // blocks of different sizes may share
	Before Footprint
	// Bound is a lower bound for this form, Linear is the thesis' linear scan (zero if there are too many buffers for
	// it), Best is the best grouping. Their Peak is the sum of all blocks, not the peak of a run.
	Bound, Linear, Best Footprint
	// Fixed are the blocks that groupings leave alone, and the bytes of all of them: pinned buffers.
	Fixed   Footprint
	Optimal bool
	Method  string
	// After is the best grouping, changed so that it never holds more memory at one time than the program did: a block
	// is there from the first create of its buffers to their last release, and groups for which that is too long are
	// split.
	After  Footprint
	Groups [][]int // groups of After with two or more buffers, in the order of creation
	Reuses int     // buffers that need no block of their own in After
}

// Footprint is a number of blocks, and the bytes that they need.
type Footprint struct {
	Blocks int    `json:"blocks"`
	Peak   uint64 `json:"bytes"`
}

// GroupForReuse groups one run's buffers in one form, with the sources of taken copies in the places where the copies put them.
// copies may be nil. Pinned buffers count in Before and After only, buffers without a use in Before. An error reports a defect of this
// package: every grouping is checked.
func (a *Analysis) GroupForReuse(form Form, grow bool, copies []Copy) (*Reuse, error) {
	l, removed := a.lifetimesAfterCoalescing(form, copies)
	p, buffers := a.reuseProblem(l, grow)
	bound := a.lowerBound(l, buffers)
	r := &Reuse{Form: form, Max: grow, Bound: Footprint{bound.Blocks, bound.Bytes}}
	linear, ok := p.GroupLinearly()
	if ok {
		if err := p.checkGrouping(linear); err != nil {
			return nil, err
		}
		r.Linear = Footprint{len(linear.Groups), linear.Bytes}
	}
	best := p.findBestGrouping(linear, bound, false)
	if err := p.checkGrouping(best); err != nil {
		return nil, err
	}
	r.Best, r.Optimal, r.Method = Footprint{len(best.Groups), best.Bytes}, best.Optimal, best.Method
	a.applyGroups(r, p, best, buffers, removed)
	for i := range a.Program.Buffers {
		if a.isRoot(i) && a.Program.Buffers[i].Pinned != Free {
			r.Fixed.Blocks++
			r.Fixed.Peak += a.Program.Buffers[i].Size
		}
	}
	return r, nil
}

// lifetimesAfterCoalescing returns the lifetimes after coalescing, and the buffers that coalescing removes or nothing uses.
func (a *Analysis) lifetimesAfterCoalescing(form Form, copies []Copy) (*Lifetimes, map[int]bool) {
	l := a.Lifetimes(form)
	moved := map[int]int{} // by root: number of contents that are moved
	removed := map[int]bool{}
	for i := range copies {
		if c := &copies[i]; c.Taken {
			moved[c.Source]++
			removed[c.Source] = moved[c.Source] == len(a.Lives[c.Source].Contents)
		}
	}
	if form != API {
		a.moveContents(l, copies)
	}
	for i := range a.Lives {
		if form != API && !a.Program.Partial && a.isRoot(i) && a.Program.Buffers[i].Pinned == Free && a.Lives[i].First == None {
			removed[i] = true
		}
	}
	maps.DeleteFunc(removed, func(_ int, all bool) bool { return !all })
	for root := range removed {
		l.Spans[root] = nil
	}
	return l, removed
}

// moveContents gives the spans of moved contents to the buffers that they are moved into. A buffer that keeps some
// content keeps all its spans.
func (a *Analysis) moveContents(l *Lifetimes, copies []Copy) {
	more := map[int][]Span{}
	for i := range copies {
		c := &copies[i]
		if !c.Taken {
			continue
		}
		life := Life{Contents: a.Lives[c.Source].Contents[c.sourceContent : c.sourceContent+1]}
		more[c.Into] = a.appendSpans(more[c.Into], &life, l.Form)
	}
	for root, spans := range more {
		l.Spans[root] = unionOfSpans(append(spans, l.Spans[root]...))
	}
}

// unionOfSpans sorts spans and joins those that meet.
func unionOfSpans(spans []Span) []Span {
	slices.SortFunc(spans, func(x, y Span) int { return cmp.Compare(x.From, y.From) })
	var out []Span
	for _, s := range spans {
		out = appendSpan(out, 0, s)
	}
	return out
}

// reuseProblem returns the problem for one run's buffers in one form, in the order of their first use, and the numbers of
// these buffers.
func (a *Analysis) reuseProblem(l *Lifetimes, grow bool) (*Problem, []int) {
	var buffers []int
	for i := range a.Program.Buffers {
		if a.isRoot(i) && a.Program.Buffers[i].Pinned == Free && len(l.Spans[i]) > 0 {
			buffers = append(buffers, i)
		}
	}
	slices.SortStableFunc(buffers, func(x, y int) int { return cmp.Compare(l.Spans[x][0].From, l.Spans[y][0].From) })
	p := &Problem{Max: grow, Blocks: make([]Block, len(buffers))}
	for i, buffer := range buffers {
		b := &a.Program.Buffers[buffer]
		p.Blocks[i] = Block{
			Size: b.Size, Class: b.Class, Fixed: a.isFilledByCreate(buffer), Created: b.Created,
			Known: a.lastHostRead(0, b.Created) + 1, Spans: l.Spans[buffer],
		}
	}
	return p, buffers
}

// isMovable reports whether a buffer's contents could be in another block.
func (a *Analysis) isMovable(buffer int) bool {
	return a.isRoot(buffer) && a.Program.Buffers[buffer].Pinned == Free && a.Lives[buffer].First != None
}

// isFilledByCreate reports whether a buffer's create brings its data. The data come at once, not after commands that use another
// block, and as many bytes are read from the host as the block has.
func (a *Analysis) isFilledByCreate(buffer int) bool {
	first := a.Lives[buffer].First
	return first != None && a.Program.Steps[first].Kind == KindCreate
}

// lowerBound returns the lower bound for some buffers only.
func (a *Analysis) lowerBound(l *Lifetimes, buffers []int) Bound {
	some := &Lifetimes{Form: l.Form, Spans: make([][]Span, len(l.Spans)), sizes: l.sizes, class: l.class}
	for _, b := range buffers {
		some.Spans[b] = l.Spans[b]
	}
	return some.LowerBound()
}

// applyGroups applies the groups of a grouping, as far as they hold no more memory at one time than before.
func (a *Analysis) applyGroups(r *Reuse, p *Problem, grouping *Grouping, buffers []int, removed map[int]bool) {
	holds := a.heldBlocks()
	load := newLoad(withoutEmptyBlocks(holds))
	r.Before = Footprint{a.countRoots(), load.peakBytes()}
	for root := range removed {
		load.addBlock(holds[root], -1)
	}
	limit := load.peakBytes()
	for _, members := range grouping.Groups {
		var shared []int
		var block heldBlock
		head := 0 // the member that shared begins with
		for _, m := range members {
			next := holds[buffers[m]]
			if len(shared) > 0 && p.fitsInGroup(&group{head: head, size: block.size}, m) && load.tryReplaceTwoBlocks(block, next, limit) {
				shared, block = append(shared, buffers[m]), blockServingBoth(block, next)
				continue
			}
			r.addGroup(shared)
			head, shared, block = m, []int{buffers[m]}, next
		}
		r.addGroup(shared)
	}
	r.After = Footprint{r.Before.Blocks - len(removed) - r.Reuses, load.peakBytes()}
}

func (r *Reuse) addGroup(group []int) {
	if len(group) > 1 {
		r.Groups = append(r.Groups, group)
		r.Reuses += len(group) - 1
	}
}

// tryReplaceTwoBlocks puts one block in the place of two, unless the peak would exceed a limit.
func (l *load) tryReplaceTwoBlocks(x, y heldBlock, limit uint64) bool {
	joined := blockServingBoth(x, y)
	l.addBlock(x, -1)
	l.addBlock(y, -1)
	l.addBlock(joined, 1)
	if l.peakBytes() <= limit {
		return true
	}
	l.addBlock(joined, -1)
	l.addBlock(y, 1)
	l.addBlock(x, 1)
	return false
}

// heldBlocks returns what the program held for each buffer. Sub-buffers hold nothing.
func (a *Analysis) heldBlocks() []heldBlock {
	api := a.Lifetimes(API)
	holds := make([]heldBlock, len(api.Spans))
	for i, spans := range api.Spans {
		holds[i] = heldBlock{size: a.Program.Buffers[i].Size, spans: spans}
	}
	return holds
}

func withoutEmptyBlocks(holds []heldBlock) []heldBlock {
	return slices.DeleteFunc(slices.Clone(holds), func(h heldBlock) bool { return len(h.spans) == 0 })
}

// countRoots returns the number of buffers with memory of their own.
func (a *Analysis) countRoots() int {
	n := 0
	for i := range a.Program.Buffers {
		if a.isRoot(i) {
			n++
		}
	}
	return n
}

// checkGrouping returns an error if a grouping is wrong, which would be a defect of this package.
func (p *Problem) checkGrouping(plan *Grouping) error {
	if found := p.FindConflicts(plan); len(found) > 0 {
		return fmt.Errorf("the plan by %s is wrong in %d places, the first: blocks %s; please report this", plan.Method, len(found), found[0])
	}
	return nil
}

// load is the number of bytes held at each step. A tree over the steps gives the peak at once.
type load struct {
	steps []int // where a span begins or ends, sorted
	tree  []loadNode
}

// loadNode is a node of the tree: the bytes added to all steps below it, and the peak of these steps, including these
// bytes.
type loadNode struct{ add, peak int64 }

// heldBlock is a block that is held for all steps of its spans.
type heldBlock struct {
	size  uint64
	spans []Span
}

func newLoad(holds []heldBlock) *load {
	l := &load{}
	for _, h := range holds {
		for _, s := range h.spans {
			l.steps = append(l.steps, s.From, s.To)
		}
	}
	slices.Sort(l.steps)
	l.steps = slices.Compact(l.steps)
	l.tree = make([]loadNode, 4*len(l.steps)+4)
	for _, h := range holds {
		l.addBlock(h, 1)
	}
	return l
}

// addBlock adds a block; with sign -1 it removes the block. Its spans begin and end at steps of the load.
func (l *load) addBlock(h heldBlock, sign int64) {
	for _, s := range h.spans {
		from, _ := slices.BinarySearch(l.steps, s.From)
		to, _ := slices.BinarySearch(l.steps, s.To)
		if from < to {
			l.addRange(1, 0, len(l.steps), from, to, sign*int64(h.size))
		}
	}
}

func (l *load) addRange(node, lo, hi, from, to int, by int64) {
	if from <= lo && hi <= to {
		l.tree[node].add += by
		l.tree[node].peak += by
		return
	}
	mid := (lo + hi) / 2
	if from < mid {
		l.addRange(2*node, lo, mid, from, to, by)
	}
	if to > mid {
		l.addRange(2*node+1, mid, hi, from, to, by)
	}
	l.tree[node].peak = l.tree[node].add + max(l.tree[2*node].peak, l.tree[2*node+1].peak)
}

func (l *load) peakBytes() uint64 { return uint64(l.tree[1].peak) }

// blockServingBoth returns the block that serves two: as large as the larger one, from the first begin to the last end.
func blockServingBoth(x, y heldBlock) heldBlock {
	hull := Span{
		min(x.spans[0].From, y.spans[0].From), max(x.spans[len(x.spans)-1].To, y.spans[len(y.spans)-1].To),
	}
	return heldBlock{size: max(x.size, y.size), spans: []Span{hull}}
}
