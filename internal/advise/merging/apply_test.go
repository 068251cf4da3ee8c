package merging

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// machine runs a program, and the same program with its coalescings applied, side by side on symbolic bytes; 0 is
// undefined. Both must read the same wherever it is defined.
type machine struct {
	a             *Analysis
	copies        map[int]*Copy    // by step
	moved         map[[2]int]*Copy // content: the copy that is taken for it
	blocks        map[int]int      // of roots that share the block of another
	before, after [][]uint64       // memory, by root
	mapped        map[int][]uint64 // by root: what the host got
	err           error
}

func newMachine(a *Analysis, copies []Copy) *machine {
	m := &machine{a: a, copies: map[int]*Copy{}, moved: map[[2]int]*Copy{}, mapped: map[int][]uint64{}}
	for i := range copies {
		c := &copies[i]
		m.copies[c.Step] = c
		if c.Taken {
			m.moved[[2]int{c.Source, c.sourceContent}] = c
		}
	}
	for i := range a.Program.Buffers {
		m.before = append(m.before, make([]uint64, a.Program.Buffers[i].Size))
		m.after = append(m.after, make([]uint64, a.Program.Buffers[i].Size))
	}
	return m
}

func (m *machine) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

// share puts groups of buffers into the block of their first.
func (m *machine) share(groups [][]int) {
	m.blocks = map[int]int{}
	for _, g := range groups {
		var most uint64
		for _, b := range g {
			m.blocks[b] = g[0]
			most = max(most, m.a.Program.Buffers[b].Size)
		}
		m.after[g[0]] = make([]uint64, most)
	}
}

// at returns where a byte of a root is at a step after coalescings and reuses are applied.
func (m *machine) at(step, root int, b uint64) (int, uint64) {
	root, b = m.coalesced(step, root, b)
	if block, ok := m.blocks[root]; ok {
		root = block
	}
	return root, b
}

func (m *machine) coalesced(step, root int, b uint64) (int, uint64) {
	k := checker{Analysis: m.a}
	c := m.moved[[2]int{root, k.contentAt(root, step)}]
	if c == nil {
		return root, b
	}
	if created := m.a.Program.Buffers[c.Into].Created; created >= step && created >= c.First {
		m.fail("step %d: buffer %d goes into %d, which is not there yet", step, root, c.Into)
	}
	if m.a.Program.Align != 0 && c.At%m.a.Program.Align != 0 {
		m.fail("step %d: buffer %d goes into %d at byte %d", step, root, c.Into, c.At)
	}
	to := c.At + b - c.From
	if to >= m.a.Program.Buffers[c.Into].Size {
		m.fail("step %d: byte %d of buffer %d goes to byte %d of %d, which is smaller", step, b, root, to, c.Into)
		return root, b
	}
	return c.Into, to
}

func hash(parts ...uint64) uint64 {
	h := uint64(14695981039346656037)
	for _, p := range parts {
		h = (h ^ p) * 1099511628211
		h ^= h >> 29
	}
	return h | 1
}

// load compares bytes and returns them.
func (m *machine) load(t *touch, root int) []uint64 {
	var got []uint64
	for b := t.lo; b < t.hi; b++ {
		v := m.before[root][b]
		r, o := m.at(int(t.step), root, b)
		if v != 0 && m.after[r][o] != v {
			m.fail("step %d (%s) reads byte %d of buffer %d: not what it was", t.step, m.a.Program.Steps[t.step].Kind, b, root)
		}
		got = append(got, v)
	}
	return got
}

func (m *machine) store(step, root int, b, v uint64) {
	m.before[root][b] = v
	r, o := m.at(step, root, b)
	m.after[r][o] = v
}

// step runs one step.
func (m *machine) step(i int) {
	s := &m.a.Program.Steps[i]
	m.clash(i)
	if s.Kind == KindCopy && len(s.Uses) == 2 {
		m.copy(i)
		return
	}
	acc := uint64(i)
	for _, u := range s.Uses {
		t, root := m.a.touchOfUse(i, u), int(m.a.roots[u.Buffer].root)
		if !t.reads || s.Kind == KindUnmap {
			continue
		}
		got := m.load(&t, root)
		acc = hash(append(got, acc)...)
		if s.Kind == KindMap {
			m.mapped[root] = got
		}
	}
	for n, u := range s.Uses {
		t, root := m.a.touchOfUse(i, u), int(m.a.roots[u.Buffer].root)
		if t.writes && s.Kind != KindMap {
			m.write(&t, root, hash(acc, uint64(n)))
		}
	}
}

func (m *machine) write(t *touch, root int, acc uint64) {
	kind := m.a.Program.Steps[t.step].Kind
	for b := t.lo; b < t.hi; b++ {
		v := hash(acc, b)
		switch {
		case kind == KindUnmap && m.mapped[root] != nil && v>>7&1 == 0:
			v = m.mapped[root][b] // the whole map goes back
		case !t.certain && v>>9&3 == 0:
			continue
		}
		m.store(int(t.step), root, b, v)
	}
}

func (m *machine) copy(i int) {
	s := &m.a.Program.Steps[i]
	src, dst := m.a.touchOfUse(i, s.Uses[0]), m.a.touchOfUse(i, s.Uses[1])
	from, to := int(m.a.roots[s.Uses[0].Buffer].root), int(m.a.roots[s.Uses[1].Buffer].root)
	c := m.copies[i]
	if c.NoOp {
		return
	}
	got := m.load(&src, from)
	for j, v := range got {
		if c.Taken {
			m.before[to][dst.lo+uint64(j)] = v
			continue
		}
		m.store(i, to, dst.lo+uint64(j), v)
	}
}

// clash finds two buffers of a step that were separate and now overlap: the threads of a kernel have no order.
func (m *machine) clash(i int) {
	s := &m.a.Program.Steps[i]
	if c := m.copies[i]; c != nil && c.Taken {
		return
	}
	owner := map[[2]uint64]int{}
	wrote := map[[2]uint64]bool{}
	for _, u := range s.Uses {
		t, root := m.a.touchOfUse(i, u), int(m.a.roots[u.Buffer].root)
		for b := t.lo; b < t.hi; b++ {
			r, o := m.at(i, root, b)
			key := [2]uint64{uint64(r), o}
			if other, ok := owner[key]; ok && other != root && (t.writes || wrote[key]) {
				m.fail("step %d uses buffers %d and %d in one place", i, other, root)
			}
			owner[key], wrote[key] = root, wrote[key] || t.writes
		}
	}
}

// schedule returns an order in which a device may run the steps: each queue in order, after completed steps, and
// conflicting commands of the original program never swapped, because the program is correct.
func schedule(a *Analysis, rng *rand.Rand) []int {
	n := len(a.Program.Steps)
	pending := make([]int, n)
	after := make([][]int, n)
	for t := range n {
		for s := range t {
			if a.endsBefore(s, t) || a.conflict(s, t) {
				after[s] = append(after[s], t)
				pending[t]++
			}
		}
	}
	var ready, order []int
	for i := range n {
		if pending[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		j := rng.IntN(len(ready))
		s := ready[j]
		ready[j] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		order = append(order, s)
		for _, t := range after[s] {
			if pending[t]--; pending[t] == 0 {
				ready = append(ready, t)
			}
		}
	}
	return order
}

func (a *Analysis) conflict(s, t int) bool {
	for _, u := range a.Program.Steps[s].Uses {
		for _, v := range a.Program.Steps[t].Uses {
			x, y := a.touchOfUse(s, u), a.touchOfUse(t, v)
			if a.roots[u.Buffer].root == a.roots[v.Buffer].root && (x.writes || y.writes) && x.lo < y.hi && y.lo < x.hi {
				return true
			}
		}
	}
	return false
}

// randomProgram makes a program with many copies.
func randomProgram(rng *rand.Rand, queues int) *Program {
	p := &Program{Align: 4}
	if rng.IntN(4) == 0 {
		p.Align = 8
	}
	if rng.IntN(3) == 0 {
		for range 5 {
			p.randomBuffer(rng)
			p.Steps = append(p.Steps, Step{Kind: KindCreate, Done: len(p.Steps)})
		}
	}
	for range 8 + rng.IntN(22) {
		p.randomStep(rng, queues)
	}
	for i := range p.Buffers { // what is left is read at the end, mostly
		if rng.IntN(3) > 0 {
			p.Steps = append(p.Steps, Step{Kind: KindRead, Done: len(p.Steps), Uses: []Use{{Buffer: i, Reads: true}}})
		}
	}
	for i := range p.Buffers {
		p.Buffers[i].Released = None
	}
	return p
}

func (p *Program) randomStep(rng *rand.Rand, queues int) {
	s := Step{Done: None, Queue: uint32(rng.IntN(queues))}
	what := rng.IntN(20)
	if len(p.Buffers) < 2 {
		what = 0
	}
	switch {
	case what < 5 && len(p.Buffers) < 8:
		p.randomBuffer(rng)
		s.Kind, s.Done = KindCreate, len(p.Steps)
		if b := len(p.Buffers) - 1; rng.IntN(8) == 0 {
			s.Uses = []Use{{Buffer: b, Bytes: p.Buffers[b].Size, Extent: Range, Writes: true}}
		}
	case what == 5 && len(p.Buffers) < 8:
		b := rng.IntN(len(p.Buffers))
		if up := p.Buffers[b]; up.Parent == None && up.Size > 4 {
			p.Buffers = append(p.Buffers, Buffer{
				Size: 4, Parent: b, Offset: 4 * uint64(rng.IntN(int(up.Size/4))), Created: len(p.Steps), Released: None,
			})
		}
		s.Kind, s.Done = KindCreate, len(p.Steps)
	case what < 10:
		s.Kind, s.Uses = KindCopy, p.randomCopy(rng)
	case what < 15:
		s.Kind = KindKernel
		for range 1 + rng.IntN(2) {
			s.Uses = append(s.Uses, p.randomUse(rng))
		}
	case what == 15:
		for i := range p.Steps { // a finish
			if st := &p.Steps[i]; st.Queue == s.Queue && st.Done == None {
				st.Done = len(p.Steps)
			}
		}
		s.Kind, s.Done = KindSync, len(p.Steps)
	case what == 16 && rng.IntN(2) == 0:
		s.Kind, s.Uses = []Kind{KindMap, KindUnmap}[rng.IntN(2)], []Use{{Buffer: rng.IntN(len(p.Buffers))}}
		if p.Buffers[s.Uses[0].Buffer].Parent != None {
			s.Kind, s.Uses = KindOther, nil
		}
	default:
		b := rng.IntN(len(p.Buffers))
		s.Kind, s.Uses = KindFill, []Use{{Buffer: b, Bytes: p.Buffers[b].Size, Extent: Range, Writes: true}}
	}
	p.Steps = append(p.Steps, s)
}

func (p *Program) randomBuffer(rng *rand.Rand) {
	b := Buffer{Size: 4 * uint64(1+rng.IntN(4)), Parent: None, Created: len(p.Steps), Released: None}
	if rng.IntN(20) == 0 {
		b.Pinned = HostPtr
	}
	p.Buffers = append(p.Buffers, b)
}

func (p *Program) randomUse(rng *rand.Rand) Use {
	b := rng.IntN(len(p.Buffers))
	if rng.IntN(2) == 0 {
		b = len(p.Buffers) - 1
	}
	u := Use{Buffer: b}
	switch rng.IntN(4) {
	case 0:
		u.Reads = true
	case 1, 2:
		u.Writes = true
	default:
	}
	if rng.IntN(4) == 0 {
		u.Extent, u.Offset = Scattered, 4*uint64(rng.IntN(int(p.Buffers[b].Size/4)))
	}
	return u
}

func (p *Program) randomCopy(rng *rand.Rand) []Use {
	for range 20 {
		s, d := rng.IntN(len(p.Buffers)), rng.IntN(len(p.Buffers))
		n := p.Buffers[s].Size
		var so uint64
		if rng.IntN(4) == 0 {
			so = 4 * uint64(rng.IntN(int(n/4)))
			n = 4
		}
		if size := p.Buffers[d].Size; size >= n && s != d {
			do := 4 * uint64(rng.IntN(int((size-n)/4)+1))
			return []Use{
				{Buffer: s, Offset: so, Bytes: n, Extent: Range, Reads: true},
				{Buffer: d, Offset: do, Bytes: n, Extent: Range, Writes: true},
			}
		}
	}
	return nil
}

// TestCoalescingsAppliedChangeNothing tests what the conditions are for.
func TestCoalescingsAppliedChangeNothing(t *testing.T) {
	taken, chained, partial, refused := 0, 0, 0, map[Condition]int{}
	for seed := range uint64(8000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := randomProgram(rng, 1+int(seed%2))
		a, err := Analyse(p)
		if err != nil {
			t.Fatal(err)
		}
		copies := a.CheckCopies()
		for i := range copies {
			c := &copies[i]
			if c.Taken {
				taken++
				if c.Into != c.Destination {
					chained++
				}
				if c.Bytes < p.Buffers[c.Source].Size {
					partial++
				}
			}
			if len(c.Failed) == 1 {
				refused[c.Failed[0].Condition]++
			}
		}
		for range 2 {
			m := newMachine(a, copies)
			for _, s := range schedule(a, rng) {
				m.step(s)
			}
			if m.err != nil {
				t.Fatalf("seed %d: %v\n%+v\ncopies %+v", seed, m.err, *p, copies)
			}
		}
	}
	t.Logf("%d taken, %d further than one copy, %d of parts; alone in the way: %v", taken, chained, partial, refused)
	for c := LastUse; c <= Order; c++ {
		if c != Agreement && refused[c] == 0 {
			t.Errorf("%s was never alone in the way", c)
		}
	}
	if taken < 1000 || chained < 10 || partial < 100 {
		t.Errorf("%d taken, %d further than one copy, %d of parts: too few to tell", taken, chained, partial)
	}
}

// TestReusesAppliedChangeNothing does the same with the blocks of a grouping, after the coalescings.
func TestReusesAppliedChangeNothing(t *testing.T) {
	reuses, grown := 0, 0
	for seed := range uint64(6000) {
		rng := rand.New(rand.NewPCG(seed, 8))
		p := randomProgram(rng, 1+int(seed%2))
		a, err := Analyse(p)
		if err != nil {
			t.Fatal(err)
		}
		copies := a.CheckCopies()
		form := []Form{Uses, Completion}[seed%2]
		r, err := a.GroupForReuse(form, true, copies)
		if err != nil {
			t.Fatal(err)
		}
		reuses += r.Reuses
		for _, g := range r.Groups {
			for _, b := range g {
				if p.Buffers[b].Size > p.Buffers[g[0]].Size {
					grown++
				}
			}
		}
		m := newMachine(a, copies)
		m.share(r.Groups)
		for _, s := range schedule(a, rng) {
			m.step(s)
		}
		if m.err != nil {
			t.Fatalf("seed %d, %s: %v\n%+v\ngroups %v\ncopies %+v", seed, form, m.err, *p, r.Groups, copies)
		}
	}
	if reuses < 1000 || grown < 100 {
		t.Errorf("%d reuses, %d in blocks made larger: too few to tell", reuses, grown)
	}
}
