package merging

import (
	"cmp"
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
	Optimal             bool
	Method              string
	// After is the best plan made so that it never holds more memory at once than the program did: a block is there
	// from the first create of its buffers to their last release, and groups for which that is too long are split.
	After  Demand
	Groups [][]int // of two buffers or more, by creation; those of After
	Reuses int     // buffers that need no block of their own in After
}

// Demand is blocks and the bytes that they need.
type Demand struct {
	Blocks int
	Peak   uint64
}

// Reuse plans one run's buffers in one form. Pinned and unused buffers count in Before and After only.
func (a *Analysis) Reuse(form Form, grow bool) (*Reuse, error) {
	l := a.Lifetimes(form)
	p, buffers := a.problem(l, grow)
	bound := a.bound(l, buffers)
	r := &Reuse{Form: form, Max: grow, Bound: Demand{bound.Blocks, bound.Bytes}}
	if linear, ok := p.Linear(); ok {
		if err := p.verify(linear); err != nil {
			return nil, err
		}
		r.Linear = Demand{len(linear.Groups), linear.Bytes}
	}
	best := p.Solve(bound, false)
	if err := p.verify(best); err != nil {
		return nil, err
	}
	r.Best, r.Optimal, r.Method = Demand{len(best.Groups), best.Bytes}, best.Optimal, best.Method
	a.settle(r, best, buffers)
	return r, nil
}

// problem asks for one run's buffers in one form, in the order of their first use, and says which they are.
func (a *Analysis) problem(l *Lifetimes, grow bool) (*Problem, []int) {
	var buffers []int
	for i := range a.Program.Buffers {
		if a.movable(i) {
			buffers = append(buffers, i)
		}
	}
	slices.SortStableFunc(buffers, func(x, y int) int { return cmp.Compare(a.Lives[x].First, a.Lives[y].First) })
	p := &Problem{Max: grow, Blocks: make([]Block, len(buffers))}
	for i, buffer := range buffers {
		b := &a.Program.Buffers[buffer]
		p.Blocks[i] = Block{
			Size: b.Size, Class: b.Class, Created: b.Created, Known: a.hostRead(0, b.Created) + 1,
			Spans: l.Spans[buffer],
		}
	}
	return p, buffers
}

// movable reports whether a buffer's contents could be in another block.
func (a *Analysis) movable(buffer int) bool {
	return a.root(buffer) && a.Program.Buffers[buffer].Pinned == Free && a.Lives[buffer].First != None
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
func (a *Analysis) settle(r *Reuse, plan *Plan, buffers []int) {
	holds := a.holds()
	load := newLoad(compact(holds))
	r.Before = Demand{a.blocks(), load.peak()}
	for _, members := range plan.Groups {
		var group []int
		var block hold
		for _, m := range members {
			next := holds[buffers[m]]
			if len(group) > 0 && load.replace(block, next, r.Before.Peak) {
				group, block = append(group, buffers[m]), join(block, next)
				continue
			}
			r.keep(group)
			group, block = []int{buffers[m]}, next
		}
		r.keep(group)
	}
	r.After = Demand{r.Before.Blocks - r.Reuses, load.peak()}
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
		return &PlanError{Method: plan.Method, Conflicts: found}
	}
	return nil
}
