package merging

import (
	"slices"
	"sort"
)

// Analysis holds the facts about one program. One goroutine makes it; then any may read it.
type Analysis struct {
	Program *Program
	// Lives has one entry for each buffer; those of parts are empty: their uses are their root's.
	Lives []Life

	roots   []place // of each buffer
	parts   []bool  // roots that have parts
	starts  []int32 // of each buffer's touches; one more at the end
	hits    []touch // by root, in the order of the steps
	queues  []int64 // of each root: the one queue of all commands that use it; noUser or many else
	threads []int64 // the same of the threads that called
	late    []int32 // the latest completion of the root's touches up to this one
	order   order   // of steps on different queues
	reads   []int32 // the last step before this one by which the host learned something; None when there is none
}

// place is where a buffer's first byte lies.
type place struct {
	root   int32
	offset uint64
}

// touch is one use of a root's bytes [lo, hi). What is mapped is touched until it is unmapped.
type touch struct {
	lo, hi      uint64
	step, until int32
	reads       bool
	writes      bool
	certain     bool // exactly these bytes, by a command that does nothing else
}

// Analyse follows the buffers of a program. An error says what contradicts itself in it. It takes O(n) memory and
// O(n log n) time in steps and uses.
func Analyse(p *Program) (*Analysis, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	a := &Analysis{Program: p}
	a.order = orderOf(p)
	a.findRoots()
	a.findTouches()
	if !p.used() {
		a.creators()
	}
	a.unmap()
	a.findReads()
	a.findLives()
	return a, nil
}

func (a *Analysis) findRoots() {
	p := a.Program
	a.roots = make([]place, len(p.Buffers))
	a.parts = make([]bool, len(p.Buffers))
	for i := range p.Buffers {
		b := &p.Buffers[i]
		a.roots[i] = place{root: int32(i)}
		if b.Parent != None { // comes before its parts
			up := a.roots[b.Parent]
			a.roots[i] = place{root: up.root, offset: up.offset + b.Offset}
			a.parts[up.root] = true
		}
	}
}

// findTouches sorts the uses by root: counted first, then laid down in order.
func (a *Analysis) findTouches() {
	p := a.Program
	a.starts = make([]int32, len(p.Buffers)+1)
	for i := range p.Steps {
		for _, u := range p.Steps[i].Uses {
			a.starts[a.roots[u.Buffer].root+1]++
		}
	}
	for i := range p.Buffers {
		a.starts[i+1] += a.starts[i]
	}
	next := slices.Clone(a.starts)
	a.hits = make([]touch, a.starts[len(p.Buffers)])
	a.late = make([]int32, len(a.hits))
	a.queues = slices.Repeat([]int64{noUser}, len(p.Buffers))
	a.threads = slices.Clone(a.queues)
	for i := range p.Steps {
		for _, u := range p.Steps[i].Uses {
			root := a.roots[u.Buffer].root
			at := next[root]
			next[root]++
			a.hits[at] = a.touch(i, u)
			a.late[at] = int32(a.done(i))
			if at > a.starts[root] {
				a.late[at] = max(a.late[at], a.late[at-1])
			}
			a.note(int(root), i)
		}
	}
}

// Instead of the number of a queue or thread.
const (
	noUser = -1
	many   = -2
)

// mix joins two users: the one that is not none, or both if equal; many if they differ.
func mix(x, y int64) int64 {
	switch {
	case x == y || y == noUser:
		return x
	case x == noUser:
		return y
	default:
		return many
	}
}

// note notes on which queue a command uses a root, and who called.
func (a *Analysis) note(root, step int) {
	s := &a.Program.Steps[step]
	if s.Kind == KindCreate {
		return
	}
	a.queues[root] = mix(a.queues[root], int64(s.Queue))
	a.threads[root] = mix(a.threads[root], s.thread())
}

// thread returns who called.
func (s *Step) thread() int64 {
	if s.Thread == 0 {
		return noUser
	}
	return int64(s.Thread)
}

// crossed reports whether several threads use roots. In which order they did, only the run tells, not the program:
// whatever makes one wait for another is not in it.
func (a *Analysis) crossed(roots ...int) bool {
	all := int64(noUser)
	for _, root := range roots {
		all = mix(all, a.threads[root])
	}
	return all == many
}

// creators says who uses memory where that is not recorded: who made it.
func (a *Analysis) creators() {
	for i := range a.Program.Buffers {
		if made := a.Program.Buffers[i].Created; made < len(a.Program.Steps) {
			a.threads[i] = a.Program.Steps[made].thread()
		}
	}
}

// touch translates a use into bytes of its root.
func (a *Analysis) touch(step int, u Use) touch {
	s := &a.Program.Steps[step]
	size := a.Program.Buffers[u.Buffer].Size
	t := touch{step: int32(step), until: int32(step), reads: u.Reads || !u.Writes, writes: u.Writes || !u.Reads, hi: size}
	switch u.Extent {
	case Range:
		t.lo, t.hi = u.Offset, u.Offset+u.Bytes
		t.certain = s.Kind == KindWrite || s.Kind == KindFill || s.Kind == KindCopy || s.Kind == KindCreate || s.Kind == KindRead
	case Scattered:
		t.lo = min(u.Offset, size)
	case Whole, Unknown:
	}
	offset := a.roots[u.Buffer].offset
	t.lo, t.hi = t.lo+offset, t.hi+offset
	return t
}

// unmap makes maps last until the unmap that follows, of any part: which one it belongs to is not known, so that all
// open maps of a root last until the last of as many unmaps. A map that is never undone lasts for ever.
func (a *Analysis) unmap() {
	p := a.Program
	for b := range p.Buffers {
		touches := a.touches(b)
		var open []int
		closed := 0
		for i := range touches {
			switch p.Steps[touches[i].step].Kind {
			case KindMap:
				open = append(open, i)
			case KindUnmap:
				closed++
			default:
			}
			if len(open) > 0 && closed >= len(open) {
				for _, m := range open {
					touches[m].until = touches[i].step
				}
				open = open[:0]
			}
			if len(open) == 0 {
				closed = 0
			}
		}
		for _, m := range open {
			touches[m].until = int32(len(p.Steps))
		}
	}
}

func (a *Analysis) findReads() {
	p := a.Program
	a.reads = make([]int32, len(p.Steps)+1)
	last := int32(None)
	for i := range p.Steps {
		a.reads[i] = last
		if p.Steps[i].tells() {
			last = int32(i)
		}
	}
	a.reads[len(p.Steps)] = last
}

// tells reports whether the host learns by a step what a command computed.
func (s *Step) tells() bool {
	switch s.Kind {
	case KindRead, KindHostRead, KindNative:
		return true
	case KindMap:
		return slices.ContainsFunc(s.Uses, func(u Use) bool { return u.Reads || !u.Writes })
	default:
		return false
	}
}

// hostRead returns the last step in [from, to) by which the host learned something; None when there is none.
func (a *Analysis) hostRead(from, to int) int {
	if r := int(a.reads[to]); r >= from {
		return r
	}
	return None
}

// touches returns what touches a root, in the order of the steps; nothing for parts.
func (a *Analysis) touches(root int) []touch { return a.hits[a.starts[root]:a.starts[root+1]] }

// since returns the index of the first touch of a root at a step or later.
func (a *Analysis) since(root, step int) int {
	touches := a.touches(root)
	return sort.Search(len(touches), func(i int) bool { return int(touches[i].step) >= step })
}

// done returns the step at which a step is known to have completed, the end of the run when that is not known.
func (a *Analysis) done(step int) int {
	if d := a.Program.Steps[step].Done; d != None {
		return d
	}
	return len(a.Program.Steps)
}

// before reports whether a step has surely ended when a later one begins. A create is on no queue.
func (a *Analysis) before(first, then int) bool {
	x, y := &a.Program.Steps[first], &a.Program.Steps[then]
	return x.Queue == y.Queue && x.Kind != KindCreate && y.Kind != KindCreate || a.done(first) <= then ||
		a.order.before(a.Program, first, then)
}

// root reports whether a buffer has memory of its own.
func (a *Analysis) root(buffer int) bool { return a.Program.Buffers[buffer].Parent == None }

// mark is how far a queue is known to have come: to a step, and all before it on the same queue.
type mark struct {
	queue uint32
	step  int32
}

// mostMarks is how many queues are known of at a step. To forget some means to know less.
const mostMarks = 16

// order says how far other queues have surely come when a step begins, by the events that it and those before it on its queue
// wait for. Without events it is empty.
type order struct {
	at    []int32  // by step: its marks
	marks [][]mark // that many steps share; the first are none
}

func orderOf(p *Program) order {
	if !slices.ContainsFunc(p.Steps, func(s Step) bool { return len(s.After) > 0 }) {
		return order{}
	}
	o := order{at: make([]int32, len(p.Steps)), marks: [][]mark{nil}}
	last := map[uint32]int32{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Kind == KindCreate {
			continue
		}
		if len(s.After) > 0 {
			marks := slices.Clone(o.marks[last[s.Queue]])
			for _, x := range s.After {
				for _, m := range o.marks[o.at[x]] {
					marks = further(marks, m)
				}
				marks = further(marks, mark{p.Steps[x].Queue, int32(x)})
			}
			o.marks = append(o.marks, marks)
			last[s.Queue] = int32(len(o.marks) - 1)
		}
		o.at[i] = last[s.Queue]
	}
	return o
}

// further adds a mark, in the place of one of the same queue, or of the one that is furthest back where there are many.
func further(marks []mark, m mark) []mark {
	oldest := 0
	for i := range marks {
		if marks[i].queue == m.queue {
			marks[i].step = max(marks[i].step, m.step)
			return marks
		}
		if marks[i].step < marks[oldest].step {
			oldest = i
		}
	}
	if len(marks) < mostMarks {
		return append(marks, m)
	}
	if marks[oldest].step < m.step {
		marks[oldest] = m
	}
	return marks
}

// before reports whether a step on one queue has surely ended when one on another begins.
func (o *order) before(p *Program, first, then int) bool {
	if o.at == nil {
		return false
	}
	return slices.ContainsFunc(o.marks[o.at[then]], func(m mark) bool {
		return m.queue == p.Steps[first].Queue && int(m.step) >= first && p.Steps[first].Kind != KindCreate
	})
}
