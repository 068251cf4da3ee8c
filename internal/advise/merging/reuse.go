package merging

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Reuse is how few blocks one run could do with.
type Reuse struct {
	Form   Form
	Max    bool // with the max trick
	Before Demand
	// Bound is what no plan for this form can go below, Linear what the thesis' linear scan needs (zero when there are
	// too many buffers for it), Best what the best plan needs. Their Peak is not that of a run but all blocks at once.
	Bound, Linear, Best Demand
	// Fixed are blocks that plans leave alone, and the bytes of all of them: what is pinned or never used.
	Fixed   Demand
	Optimal bool
	Method  string
	// After is the best plan made so that it never holds more memory at once than the program did: a block is there
	// from the first create of its buffers to their last release, and groups for which that is too long are split.
	After  Demand
	Groups [][]int // of two buffers or more, by creation; those of After
	Reuses int     // buffers that need no block of their own in After
}

// Demand is blocks and the bytes that they need.
type Demand struct {
	Blocks int    `json:"blocks"`
	Peak   uint64 `json:"bytes"`
}

// Reuse plans one run's buffers in one form, after those of copies that are taken have gone where these put them; copies
// may be nil. Pinned and unused buffers count in Before and After only. An error would be a mistake here: no plan goes
// out unchecked.
func (a *Analysis) Reuse(form Form, grow bool, copies []Copy) (*Reuse, error) {
	l, gone := a.coalesced(form, copies)
	p, buffers := a.problem(l, grow, gone)
	bound := a.bound(l, buffers)
	r := &Reuse{Form: form, Max: grow, Bound: Demand{bound.Blocks, bound.Bytes}}
	linear, ok := p.Linear()
	if ok {
		if err := p.verify(linear); err != nil {
			return nil, err
		}
		r.Linear = Demand{len(linear.Groups), linear.Bytes}
	}
	best := p.solve(linear, bound, false)
	if err := p.verify(best); err != nil {
		return nil, err
	}
	r.Best, r.Optimal, r.Method = Demand{len(best.Groups), best.Bytes}, best.Optimal, best.Method
	a.settle(r, best, buffers, gone)
	for i := range a.Program.Buffers {
		if a.root(i) && !a.movable(i) && !gone[i] {
			r.Fixed.Blocks++
			r.Fixed.Peak += a.Program.Buffers[i].Size
		}
	}
	return r, nil
}

// coalesced returns the lifetimes once copies are gone, and which buffers are so with them.
func (a *Analysis) coalesced(form Form, copies []Copy) (*Lifetimes, map[int]bool) {
	l := a.Lifetimes(form)
	moved := map[int]int{} // contents of a root that are elsewhere
	gone := map[int]bool{}
	for i := range copies {
		if c := &copies[i]; c.Taken {
			moved[c.Source]++
			gone[c.Source] = moved[c.Source] == len(a.Lives[c.Source].Contents)
		}
	}
	if form != API {
		a.move(l, copies)
	}
	maps.DeleteFunc(gone, func(_ int, all bool) bool { return !all })
	for root := range gone {
		l.Spans[root] = nil
	}
	return l, gone
}

// move gives the spans of contents to the buffers that these are in. What stays in a buffer keeps all its spans.
func (a *Analysis) move(l *Lifetimes, copies []Copy) {
	more := map[int][]Span{}
	for i := range copies {
		c := &copies[i]
		if !c.Taken {
			continue
		}
		life := Life{Contents: a.Lives[c.Source].Contents[c.content : c.content+1]}
		more[c.Into] = a.appendSpans(more[c.Into], &life, l.Form)
	}
	for root, spans := range more {
		l.Spans[root] = union(append(spans, l.Spans[root]...))
	}
}

// union sorts spans and makes one of those that meet.
func union(spans []Span) []Span {
	slices.SortFunc(spans, func(x, y Span) int { return cmp.Compare(x.From, y.From) })
	var out []Span
	for _, s := range spans {
		out = appendSpan(out, 0, s)
	}
	return out
}

// problem asks for one run's buffers in one form, in the order of their first use, and says which they are.
func (a *Analysis) problem(l *Lifetimes, grow bool, gone map[int]bool) (*Problem, []int) {
	var buffers []int
	for i := range a.Program.Buffers {
		if a.movable(i) && !gone[i] {
			buffers = append(buffers, i)
		}
	}
	slices.SortStableFunc(buffers, func(x, y int) int { return cmp.Compare(l.Spans[x][0].From, l.Spans[y][0].From) })
	p := &Problem{Max: grow, Blocks: make([]Block, len(buffers))}
	for i, buffer := range buffers {
		b := &a.Program.Buffers[buffer]
		p.Blocks[i] = Block{
			Size: b.Size, Class: b.Class, Fixed: a.filled(buffer), Created: b.Created,
			Known: a.hostRead(0, b.Created) + 1, Spans: l.Spans[buffer],
		}
	}
	return p, buffers
}

// movable reports whether a buffer's contents could be in another block.
func (a *Analysis) movable(buffer int) bool {
	return a.root(buffer) && a.Program.Buffers[buffer].Pinned == Free && a.Lives[buffer].First != None
}

// filled reports whether a buffer's create brings its data. That happens at once, not after commands that use another
// block, and takes as many bytes from the host as the block has.
func (a *Analysis) filled(buffer int) bool {
	first := a.Lives[buffer].First
	return first != None && a.Program.Steps[first].Kind == KindCreate
}

// bound is that of some buffers only.
func (a *Analysis) bound(l *Lifetimes, buffers []int) Bound {
	some := &Lifetimes{Form: l.Form, Spans: make([][]Span, len(l.Spans)), sizes: l.sizes, class: l.class}
	for _, b := range buffers {
		some.Spans[b] = l.Spans[b]
	}
	return some.Bound()
}

// settle makes the groups of a plan real, as far as they hold no more memory at once than before.
func (a *Analysis) settle(r *Reuse, plan *Plan, buffers []int, gone map[int]bool) {
	holds := a.holds()
	load := newLoad(compact(holds))
	r.Before = Demand{a.blocks(), load.peak()}
	for root := range gone {
		load.add(holds[root], -1)
	}
	limit := load.peak()
	for _, members := range plan.Groups {
		var group []int
		var block hold
		for _, m := range members {
			next := holds[buffers[m]]
			if len(group) > 0 && load.replace(block, next, limit) {
				group, block = append(group, buffers[m]), join(block, next)
				continue
			}
			r.keep(group)
			group, block = []int{buffers[m]}, next
		}
		r.keep(group)
	}
	r.After = Demand{r.Before.Blocks - len(gone) - r.Reuses, load.peak()}
}

func (r *Reuse) keep(group []int) {
	if len(group) > 1 {
		r.Groups = append(r.Groups, group)
		r.Reuses += len(group) - 1
	}
}

// replace puts one block in the place of two, unless that takes the peak above a limit.
func (l *load) replace(x, y hold, limit uint64) bool {
	both := join(x, y)
	l.add(x, -1)
	l.add(y, -1)
	l.add(both, 1)
	if l.peak() <= limit {
		return true
	}
	l.add(both, -1)
	l.add(y, 1)
	l.add(x, 1)
	return false
}

// holds returns what the program held of each buffer; parts hold nothing.
func (a *Analysis) holds() []hold {
	api := a.Lifetimes(API)
	holds := make([]hold, len(api.Spans))
	for i, spans := range api.Spans {
		holds[i] = hold{size: a.Program.Buffers[i].Size, spans: spans}
	}
	return holds
}

func compact(holds []hold) []hold {
	return slices.DeleteFunc(slices.Clone(holds), func(h hold) bool { return len(h.spans) == 0 })
}

// blocks counts the buffers with memory of their own.
func (a *Analysis) blocks() int {
	n := 0
	for i := range a.Program.Buffers {
		if a.root(i) {
			n++
		}
	}
	return n
}

// verify returns an error when a plan is wrong, which would be a mistake here: no result goes out unchecked.
func (p *Problem) verify(plan *Plan) error {
	if found := p.Check(plan); len(found) > 0 {
		return fmt.Errorf("the plan by %s is wrong in %d places, the first: blocks %s; please report this", plan.Method, len(found), found[0])
	}
	return nil
}

// load is how many bytes are held at each step. Adding to a span and asking for the peak take O(log n).
type load struct {
	steps []int // where something begins or ends, sorted
	tree  []loaded
}

// loaded is a node: what was added to all below it, and their peak with that.
type loaded struct{ add, peak int64 }

// hold is a block: its bytes for all steps of its spans.
type hold struct {
	size  uint64
	spans []Span
}

func newLoad(holds []hold) *load {
	l := &load{}
	for _, h := range holds {
		for _, s := range h.spans {
			l.steps = append(l.steps, s.From, s.To)
		}
	}
	slices.Sort(l.steps)
	l.steps = slices.Compact(l.steps)
	l.tree = make([]loaded, 4*len(l.steps)+4)
	for _, h := range holds {
		l.add(h, 1)
	}
	return l
}

// add adds a block, whose spans end where one of the first did; with sign -1 it takes it away.
func (l *load) add(h hold, sign int64) {
	for _, s := range h.spans {
		from, _ := slices.BinarySearch(l.steps, s.From)
		to, _ := slices.BinarySearch(l.steps, s.To)
		if from < to {
			l.change(1, 0, len(l.steps), from, to, sign*int64(h.size))
		}
	}
}

func (l *load) change(node, lo, hi, from, to int, by int64) {
	if from <= lo && hi <= to {
		l.tree[node].add += by
		l.tree[node].peak += by
		return
	}
	mid := (lo + hi) / 2
	if from < mid {
		l.change(2*node, lo, mid, from, to, by)
	}
	if to > mid {
		l.change(2*node+1, mid, hi, from, to, by)
	}
	l.tree[node].peak = l.tree[node].add + max(l.tree[2*node].peak, l.tree[2*node+1].peak)
}

func (l *load) peak() uint64 { return uint64(l.tree[1].peak) }

// join returns the block that serves two: as large as the larger one, there from the first begin to the last end.
func join(x, y hold) hold {
	hull := Span{
		min(x.spans[0].From, y.spans[0].From), max(x.spans[len(x.spans)-1].To, y.spans[len(y.spans)-1].To),
	}
	return hold{size: max(x.size, y.size), spans: []Span{hull}}
}
